"""Counts, results, and what metrics.json shows of them."""

from __future__ import annotations

import json
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import summarize

small = st.integers(0, 50)


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    parts = [draw(small) for _ in range(4)]
    return Counts(sum(parts) + draw(small), *parts)


def result(subjects: dict[str, Counts], chance: float | None = 0.25) -> Result:
    return Result("m", "b", "letter", "lmeval", chance, subjects)


def record(item: str, outcome: Outcome, subject: str = "s", **more: Any) -> Record:
    return Record("m", "b", "letter", item, subject, outcome, None, "A", **more)


def total(records: list[Record], sizes: dict[str, int]) -> Result:
    return aggregate(
        records,
        model="m",
        benchmark="b",
        scorer="letter",
        protocol="lmeval",
        chance=0.25,
        sizes=sizes,
    )


def test_counts_tell_what_is_missing() -> None:
    part = Counts(10, correct=3, wrong=2, unparsed=1, error=1)
    assert (part.answered, part.attempted, part.missing, part.complete) == (6, 7, 3, False)
    assert Counts(2, 1, 1).complete
    assert not Counts(2, 1, 0, 0, 1).complete
    assert Counts(0).complete


@pytest.mark.parametrize(
    "arguments", [(-1,), (1, -1), (1, 2), (3, 1, 1, 1, 1), (1.0,), (float("nan"),), (2, 1.0)]
)
def test_counts_refuse_nonsense(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|more than"):
        Counts(*arguments)


@given(counts(), counts(), counts())
def test_merging_is_associative_and_commutative(a: Counts, b: Counts, c: Counts) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Counts(0) == a
    assert (a + b).missing == a.missing + b.missing


@given(st.lists(st.tuples(counts(), st.integers(0, 3)), max_size=12))
def test_any_split_over_workers_gives_the_same_sum(parts: list[tuple[Counts, int]]) -> None:
    workers = [
        reduce(add, (part for part, worker in parts if worker == w), Counts(0)) for w in range(4)
    ]
    assert reduce(add, workers) == reduce(add, (part for part, _ in parts), Counts(0))


def test_workers_of_unequal_load_are_pooled() -> None:
    """Case e12: not the mean of the workers' own accuracies, 0.725."""
    pooled = Counts(60, correct=30, wrong=30) + Counts(40, correct=38, wrong=2)
    assert result({"s": pooled}).accuracy == 0.68


def test_same_text_in_two_subjects_is_two_items() -> None:
    """Case e10: identity is the item's id."""
    records = [
        record("anatomy/17", Outcome.CORRECT, "anatomy"),
        record("clinical/203", Outcome.WRONG, "clinical"),
    ]
    found = total(records, {"anatomy": 1, "clinical": 1})
    assert (found.counts.answered, found.accuracy) == (2, 0.5)


def test_unparsed_is_wrong_and_counted_apart() -> None:
    """Case e15: no guessing, no 1/K credit."""
    found = total([record("1", Outcome.UNPARSED), record("2", Outcome.CORRECT)], {"s": 2})
    shown = summarize(found)
    assert shown["accuracy"] == 0.5
    assert (shown["wrong"], shown["unparsed"], shown["unparsed_rate"]) == (0, 1, 0.5)


def test_errors_leave_the_result_incomplete() -> None:
    """Case e09: neither 80/90 nor 80/100 silently, but both."""
    shown = summarize(result({"s": Counts(100, correct=80, wrong=10, error=10)}))
    assert shown["accuracy"] is None
    assert shown["complete"] is False
    assert (shown["correct"], shown["answered"], shown["errors"]) == (80, 90, 10)
    assert shown["accuracy_answered"] == 80 / 90
    assert shown["accuracy_with_errors"] == 0.8
    assert shown["error_rate"] == 0.1
    for key in ("standard_error", "wilson95", "macro_accuracy", "normalized_gain"):
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


def test_one_item() -> None:
    """Case e06: no standard error, still valid JSON."""
    shown = summarize(result({"s": Counts(1, correct=1)}))
    assert (shown["accuracy"], shown["standard_error"]) == (1.0, None)
    json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize("subjects", [{}, {"s": Counts(0)}, {"s": Counts(5)}])
def test_nothing_ran(subjects: dict[str, Counts]) -> None:
    shown = summarize(result(subjects))
    for key in ("accuracy", "standard_error", "wilson95", "unparsed_rate", "error_rate"):
        assert shown[key] is None, key
    json.dumps(shown, allow_nan=False)


def test_without_a_chance_level_there_is_no_gain() -> None:
    assert result({"s": Counts(1, 1)}, chance=None).normalized_gain is None
    assert result({"s": Counts(1, 1)}, chance=1.0).normalized_gain is None


@given(st.dictionaries(st.text(max_size=4), counts(), max_size=6), st.randoms())
def test_the_summary_is_json_whatever_the_order(subjects: dict[str, Counts], random: Any) -> None:
    names = list(subjects)
    random.shuffle(names)
    text = json.dumps(summarize(result(subjects)), allow_nan=False)
    assert json.dumps(summarize(result({n: subjects[n] for n in names}))) == text
    assert json.loads(text)["complete"] == all(part.complete for part in subjects.values())


def test_a_later_record_replaces_an_earlier_one() -> None:
    records = [
        record("1", Outcome.ERROR, error="timeout"),
        record("1", Outcome.CORRECT, tie=True, dropped_shots=2),
    ]
    found = total(records, {"s": 1, "t": 3})
    assert found.subjects == {"s": Counts(1, correct=1), "t": Counts(3)}
    assert (found.ties, found.dropped_shots) == (1, 1)


outcomes = st.dictionaries(
    st.integers(0, 40).map(str), st.sampled_from(list(Outcome)), min_size=1, max_size=30
)


@given(outcomes, st.randoms())
def test_records_may_come_in_any_order(drawn: dict[str, Outcome], random: Any) -> None:
    records = [record(item, outcome) for item, outcome in drawn.items()]
    before = total(records, {"s": 41})
    random.shuffle(records)
    assert total(records, {"s": 41}) == before
    values = list(drawn.values())
    assert before.counts == Counts(
        41,
        values.count(Outcome.CORRECT),
        values.count(Outcome.WRONG),
        values.count(Outcome.UNPARSED),
        values.count(Outcome.ERROR),
    )


@pytest.mark.parametrize(
    ("stray", "message"),
    [
        (record("1", Outcome.CORRECT, "other"), "unknown subject 'other'"),
        (record("1", Outcome.CORRECT, sample=1), "several samples"),
        (
            Record("m", "b", "cloze", "1", "s", Outcome.CORRECT, None, "A"),
            "belongs to another result",
        ),
    ],
)
def test_stray_records_are_refused(stray: Record, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        total([stray], {"s": 1})


def test_more_records_than_items_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 1 items"):
        total([record("1", Outcome.CORRECT), record("2", Outcome.WRONG)], {"s": 1})


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan")])
def test_a_chance_level_is_a_proportion(chance: float) -> None:
    with pytest.raises(ValueError, match="chance"):
        result({}, chance)
