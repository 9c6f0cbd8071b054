"""What metrics.json shows of a result."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import standard_error
from pytest_llmeval.metrics import summarize
from pytest_llmeval.metrics import wilson_interval
from support.metric_results import CORRECT
from support.metric_results import UNPARSED
from support.metric_results import counts
from support.metric_results import item
from support.metric_results import result
from support.metric_results import single
from support.metric_results import total

SEVERAL = ("pass@k", "pass^k", "variance")


def test_unparsed_is_wrong_and_counted_apart() -> None:
    """No guessing, no 1/K credit."""
    shown = summarize(total([item(UNPARSED), item(CORRECT)], {"s": 2}))
    assert shown["accuracy"] == 0.5
    assert (shown["wrong"], shown["unparsed"], shown["unparsed_rate"]) == (0, 1, 0.5)


def test_refused_answers_are_unparsed_ones() -> None:
    items = [item(UNPARSED, refused=1), item(UNPARSED), item(CORRECT), item(CORRECT)]
    shown = summarize(total(items, {"s": 4}))
    assert (shown["unparsed"], shown["refused"], shown["refused_rate"]) == (2, 1, 0.25)
    with pytest.raises(ValueError, match="1 refused of 0 unparsed"):
        Counts(4, correct=4, refused=1)


def test_errors_leave_the_result_incomplete() -> None:
    """Neither 80/90 nor 80/100 silently, but both."""
    shown = summarize(result({"s": Counts(100, correct=80, wrong=10, error=10)}))
    assert shown["accuracy"] is None
    assert shown["complete"] is False
    assert (shown["correct"], shown["answered"], shown["errors"]) == (80, 90, 10)
    assert shown["accuracy_answered"] == 80 / 90
    assert shown["accuracy_with_errors"] == 0.8
    assert shown["error_rate"] == 0.1
    for key in ("standard_error", "wilson95", "normalized_gain"):
        assert shown[key] is None, key
    for key in ("macro_accuracy", "macro_standard_error", "macro_interval95", "sampled"):
        assert shown[key] is None, key
    assert shown["subjects"]["s"]["accuracy"] is None


def test_an_error_in_one_subject_leaves_the_other_alone() -> None:
    shown = summarize(result({"a": Counts(2, 1, 1), "b": Counts(2, 1, 0, 0, 1)}))
    assert shown["accuracy"] is None
    assert shown["subjects"]["a"]["accuracy"] == 0.5
    assert shown["subjects"]["b"]["accuracy"] is None


def test_a_limited_run_has_an_accuracy_and_is_not_complete() -> None:
    shown = summarize(result({"a": Counts(10, 2, 2), "b": Counts(10)}))
    assert (shown["accuracy"], shown["macro_accuracy"], shown["normalized_gain"]) == (
        0.5,
        0.5,
        pytest.approx(1 / 3),
    )
    assert (shown["complete"], shown["missing"], shown["n_total"]) == (False, 16, 20)
    assert shown["subjects"]["b"]["accuracy"] is None
    assert shown["sampled"] is None


def test_a_sample_estimates_the_whole_benchmark() -> None:
    """Equal draws from unequal subjects: the mean over the items drawn is 0.5, and biased."""
    subjects = {"large": Counts(90, 8, 2), "small": Counts(10, 2, 8)}
    shown = summarize(result(subjects, drawn={"large": 10, "small": 10}))
    assert shown["accuracy"] == 0.5
    assert (shown["items"], shown["sampled"]["items"]) == (100, 20)
    assert shown["sampled"]["accuracy"] == pytest.approx(0.9 * 0.8 + 0.1 * 0.2)
    low, high = shown["sampled"]["interval95"]
    assert 0.45 < low < 0.74 < high < 0.95


def test_one_item() -> None:
    """No standard error, still valid JSON."""
    shown = summarize(result({"s": Counts(1, correct=1)}))
    assert (shown["accuracy"], shown["standard_error"]) == (1.0, None)
    assert shown["macro_standard_error"] is None
    json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize("subjects", [{}, {"s": Counts(0)}, {"s": Counts(5)}])
def test_nothing_ran(subjects: dict[str, Counts]) -> None:
    shown = summarize(result(subjects))
    for key in ("accuracy", "standard_error", "wilson95", "unparsed_rate", "error_rate"):
        assert shown[key] is None, key
    assert (shown["truncated_rate"], shown["macro_interval95"]) == (None, None)
    json.dumps(shown, allow_nan=False)


@given(single())
def test_single_answers_have_the_error_and_interval_of_a_proportion(part: Counts) -> None:
    shown = summarize(result({"s": part, "t": Counts(3)}))
    assert not set(SEVERAL) & set(shown)
    assert (shown["samples"], shown["items"]) == (1, part.total + 3)
    if shown["accuracy"] is not None:
        for core in (shown, shown["subjects"]["s"]):
            assert core["standard_error"] == standard_error(part.correct, part.answered)
            assert core["wilson95"] == list(wilson_interval(part.correct, part.answered))
        assert shown["truncated_rate"] == part.truncated / part.answered


def test_several_samples() -> None:
    part = Counts(8, 5, 3, spread={(4, 4): 1, (4, 1): 1})
    shown = summarize(result({"s": part}, samples=4))
    assert (shown["items"], shown["samples"], shown["n_total"], shown["accuracy"]) == (
        2,
        4,
        8,
        0.625,
    )
    assert {k: entry["value"] for k, entry in shown["pass@k"].items()} == {"1": 0.625, "2": 0.75}
    assert {k: entry["value"] for k, entry in shown["pass^k"].items()} == {"1": 0.625, "2": 0.5}
    for entry in (*shown["pass@k"].values(), *shown["pass^k"].values()):
        assert entry["interval95"][0] <= entry["value"] <= entry["interval95"][1]
    # Means 1 and 1/4: between 0.28125 less what one sample's variance of 0.125 adds to a mean.
    assert shown["variance"] == {
        "between_items": pytest.approx(0.28125 - 0.125 / 4),
        "within_items": pytest.approx(0.125),
        "items_share": pytest.approx(0.25 / 0.28125),
    }
    assert shown["standard_error"] == pytest.approx((0.28125 / 2) ** 0.5)


def test_items_without_all_their_answers_have_no_pass_at_k() -> None:
    shown = summarize(
        result({"s": Counts(4, 2, 1, 0, 0, spread={(2, 1): 1, (1, 1): 1})}, samples=2)
    )
    assert shown["accuracy"] == 2 / 3
    assert shown["pass@k"]["1"]["value"] == 0.75
    assert shown["pass@k"]["2"] is shown["pass^k"]["2"] is shown["variance"] is None
    failed = summarize(result({"s": Counts(2, 1, error=1, spread={(1, 1): 1})}, samples=2))
    assert [failed[key] for key in SEVERAL] == [None, None, None]


@given(st.dictionaries(st.text(max_size=4), counts, max_size=4), st.integers(1, 5), st.randoms())
def test_the_summary_is_json_whatever_the_order(
    subjects: dict[str, Counts], samples: int, random: Any
) -> None:
    names = list(subjects)
    random.shuffle(names)
    shown = summarize(result(subjects, samples=samples))
    text = json.dumps(shown, allow_nan=False)
    shuffled: Result = result({name: subjects[name] for name in names}, samples=samples)
    assert json.dumps(summarize(shuffled)) == text
    assert json.loads(text)["complete"] == all(part.complete for part in subjects.values())
    for low, high in (shown["wilson95"] or (0, 1), shown["macro_interval95"] or (0, 1)):
        assert 0 <= low <= high <= 1


def test_a_summary_of_single_answers_loads_neither_numpy_nor_scipy() -> None:
    """They take longer to load than pytest, and every session makes a summary."""
    program = (
        "import sys\n"
        "from pytest_llmeval.metrics import Counts, Result, summarize\n"
        "parts = {'s': Counts(30, 5, 5), 't': Counts(3, 2, 1)}\n"
        "summarize(Result('m', 'b', 's', 'p', 0.25, parts, drawn={'s': 10, 't': 3}))\n"
        "assert not {'numpy', 'scipy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
