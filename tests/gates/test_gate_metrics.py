"""Rates, pass@k, chance, several samples, and what a gate could have seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import detectable_drop
from pytest_llmeval.metrics import macro_effective_size
from pytest_llmeval.metrics import macro_interval
from pytest_llmeval.metrics import mean_pass_at_k
from pytest_llmeval.metrics import pass_at_k_interval
from pytest_llmeval.metrics import score_interval
from pytest_llmeval.metrics import tally_interval
from pytest_llmeval.metrics import wilson_interval
from support.gate_results import Answers
from support.gate_results import measured
from support.gate_results import result
from support.gate_results import right
from support.gate_results import verdict_of
from support.gate_results import verdicts

# Rates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "status", "measured", "reason"),
    [
        ("truncated_rate = 0.05", "pass", 0.05, "5 of 100 answers truncated"),
        ("truncated_rate = 0.04", "fail", 0.05, "5 of 100 answers truncated"),
        ("truncated_rate = { min = 0.06 }", "fail", 0.05, "5 of 100 answers truncated"),
        ("error_rate = 0", "pass", 0, "0 errors in 100 items"),
        ("unparsed_rate = 0.1", "pass", 0.1, "10 of 100 answers unparsed"),
        ("refused_rate = 0.04", "pass", 0.04, "4 of 100 answers refused"),
        ("refused_rate = 0.03", "fail", 0.04, "4 of 100 answers refused"),
    ],
)
def test_rates(gate: str, status: str, measured: float, reason: str) -> None:
    run = result(Counts(100, 50, 40, 10, truncated=5, refused=4))
    verdict = verdict_of(gate, run)
    assert (verdict.status, verdict.measured, verdict.reason) == (status, measured, reason)
    assert verdict.interval == pytest.approx(wilson_interval(round(measured * 100), 100))
    assert (verdict.n, verdict.detectable) == (100, None)


def test_an_error_rate_is_decided_by_itself() -> None:
    """Errors beyond max_errors are what it measures, not what keeps it from measuring."""
    run = result(Counts(100, 50, 40, error=10))
    text = "[benchmarks.x]\nerror_rate = {}\ntruncated_rate = 1\nmax_errors = 0"
    passed = verdicts(text.format(0.1), run)
    assert {v.metric: v.status for v in passed.values()} == {
        "error_rate": "pass",
        "truncated_rate": "fail",
        "max_errors": "fail",
    }
    assert passed["x::error_rate"].reason == "10 errors in 100 items"
    assert verdicts(text.format(0.09), run)["x::error_rate"].status == "fail"
    assert verdict_of("error_rate = 0.9", result(Counts(3, error=3))).status == "fail"
    assert verdict_of("error_rate = 1", result(Counts(4, 1, error=1))).status == "undecided"


@pytest.mark.parametrize(
    ("most", "status"),
    [(0.058, "pass"), (0.057, "undecided"), (0.011, "undecided"), (0.01, "fail")],
)
def test_confidence_of_a_rate(most: float, status: str) -> None:
    """Wilson's interval of 5 in 200 is [0.0107, 0.0572]."""
    gate = f"truncated_rate = {{ max = {most}, confidence = 0.95 }}"
    assert verdict_of(gate, result(Counts(200, 200, truncated=5))).status == status


def test_a_rate_over_samples_takes_an_items_answers_to_be_alike() -> None:
    run = measured({"s": ["cu"] * 10 + ["cc"] * 40}, samples=2)
    verdict = verdict_of("unparsed_rate = 0.1", run)
    assert (verdict.status, verdict.measured, verdict.n) == ("pass", 0.1, 100)
    assert verdict.interval == score_interval(0.1, 50)


# Macro accuracy ---------------------------------------------------------------------------


def test_confidence_of_macro_accuracy() -> None:
    subjects = {"a": Counts(100, 90, 10), "b": Counts(10, 5, 5)}
    tallies = {name: counts.tally for name, counts in subjects.items()}
    low, high = macro_interval(tallies, 0.9)
    gate = "macro_accuracy = {{ min = {}, confidence = 0.9 }}"
    passed = verdict_of(gate.format(low - 1e-6), result(subjects))
    assert (passed.status, passed.interval) == ("pass", (low, high))
    assert passed.measured == 0.7
    assert verdict_of(gate.format(low + 1e-6), result(subjects)).status == "undecided"
    assert verdict_of(gate.format(high + 1e-6), result(subjects)).status == "fail"
    seen = detectable_drop(0.7, macro_effective_size(tallies))
    assert passed.detectable == pytest.approx(seen)


# Several samples ----------------------------------------------------------------------------


def test_accuracy_over_samples_has_an_interval_over_items() -> None:
    run = measured({"a": ["ccc"] * 20 + ["www"] * 20, "b": ["ccw"] * 8}, samples=3)
    verdict = verdict_of("accuracy = 0.5", run)
    assert (verdict.status, verdict.measured, verdict.n) == ("pass", 76 / 144, 144)
    assert verdict.reason == "76 of 144 answers correct (48 items, 3 samples each)"
    assert verdict.interval == tally_interval(run.counts.tally)
    assert verdict.interval[0] < wilson_interval(76, 144)[0]
    assert verdict_of("max_errors = 0", run).reason == "0 errors in 144 answers"


def test_errors_of_samples_are_as_wrong_and_as_right() -> None:
    run = measured({"s": ["cce"] * 2 + ["eee"] + ["ccc"] * 3 + ["www"] * 4}, samples=3)
    verdict = verdicts("[benchmarks.x]\naccuracy = 0.43\nmax_errors = 5", run)["x::accuracy"]
    assert (verdict.status, verdict.measured) == ("pass", 13 / 30)
    worst = tally_interval({(3, 2): 2, (3, 0): 5, (3, 3): 3})
    best = tally_interval({(3, 0): 4, (3, 3): 6})
    assert verdict.interval == (worst[0], best[1])
    assert "counting 5 errors, 13 of 25 answered" in verdict.reason
    most = verdicts("[benchmarks.x]\naccuracy = { max = 0.6 }\nmax_errors = 5", run)
    assert (most["x::accuracy"].status, most["x::accuracy"].measured) == ("pass", 18 / 30)


def test_samples_that_were_not_run_decide_nothing() -> None:
    verdict = verdict_of("accuracy = 0", measured({"s": ["cc", "c"]}, samples=2))
    assert (verdict.status, verdict.reason) == (
        "undecided",
        "only 3 of 4 answers were run",
    )
    assert verdict.detectable is None


# pass@k ---------------------------------------------------------------------------------------

CODE = {"s": ["ccw"] * 10 + ["www"] * 10}


@pytest.mark.parametrize(
    ("gate", "status", "measured"),
    [
        ('"pass@1" = 0.33', "pass", 1 / 3),
        ('"pass@1" = 0.34', "fail", 1 / 3),
        ('"pass@2" = 0.5', "pass", 0.5),
        ('"pass@3" = 0.51', "fail", 0.5),
        ('"pass^2" = 0.16', "pass", 1 / 6),
        ('"pass^3" = 0', "pass", 0),
    ],
)
def test_pass_at_k(gate: str, status: str, measured: float) -> None:
    verdict = verdict_of(gate, _code())
    assert (verdict.status, verdict.measured) == (status, pytest.approx(measured))
    assert verdict.id == f"x::{gate.split(chr(34))[1]}"
    assert (verdict.n, verdict.detectable) == (20, None)
    assert "(20 items, 3 samples each)" in verdict.reason


def _code(answers: Answers = CODE) -> Result:
    return measured(answers, samples=3)


def test_confidence_of_pass_at_k_is_the_bootstraps() -> None:
    run = _code()
    limits = pass_at_k_interval(run.counts.tally, 2, 0.9)
    assert limits is not None
    gate = '"pass@2" = {{ min = {}, confidence = 0.9 }}'
    passed = verdict_of(gate.format(limits[0] - 1e-6), run)
    assert (passed.status, passed.interval) == ("pass", limits)
    assert verdict_of(gate.format(limits[0] + 1e-6), run).status == "undecided"
    assert verdict_of(gate.format(limits[1] + 1e-6), run).status == "fail"


def test_pass_at_k_without_all_answers_is_undecided() -> None:
    run = _code({"s": ["cce"] + ["ccc"] * 9})
    unanswered = verdicts('[benchmarks.x]\n"pass@1" = 0\nmax_errors = 1', run)["x::pass@1"]
    assert (unanswered.status, unanswered.measured) == ("undecided", None)
    assert unanswered.reason == "pass@1 needs every answer: 1 error"
    assert verdict_of('"pass@1" = 0', run).status == "fail"
    verdict = verdict_of('"pass@4" = 0', _code())
    assert verdict.reason == "pass@4 needs 4 answers to every item, this run has 3"
    verdict = verdict_of('"pass@3" = 0', _code({"s": ["ccc", "cc"]}))
    assert (verdict.status, verdict.reason) == ("undecided", "only 5 of 6 answers were run")


def test_pass_at_k_of_a_subject() -> None:
    run = _code({"a": ["ccw"] * 4, "b": ["www"] * 4})
    by_gate = verdicts('[benchmarks.x]\nevery_subject."pass@2" = 0.5', run)
    assert {id: v.status for id, v in by_gate.items()} == {
        "x::every_subject::a::pass@2": "pass",
        "x::every_subject::b::pass@2": "fail",
    }
    assert mean_pass_at_k({(3, 2): 4}, 2) == by_gate["x::every_subject::a::pass@2"].measured


# Chance -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("correct", "status", "reason"),
    [
        (25, "pass", "the 99 % interval contains chance 0.25"),
        (16, "pass", "the 99 % interval contains chance 0.25"),
        (40, "fail", "is above chance 0.25, but the gate requires chance level"),
        (10, "fail", "is below chance 0.25, but the gate requires chance level"),
    ],
)
def test_chance_is_two_sided(correct: int, status: str, reason: str) -> None:
    verdict = verdict_of("accuracy = { chance = true, confidence = 0.99 }", right(correct, 100))
    assert verdict.status == status
    assert reason in verdict.reason
    assert verdict.reason.startswith(f"{correct} of 100 correct; ")
    assert verdict.interval == wilson_interval(correct, 100, 0.99)
    assert (verdict.min, verdict.max) == (0.25, 0.25)
    assert "(bound = chance (99 % interval))" in verdict_line(verdict)


def test_chance_is_tested_at_95_percent_by_default() -> None:
    """36 of 100: [0.2727, 0.4576] at 95 %, [0.2492, 0.4881] at 99 %."""
    assert verdict_of("accuracy.chance = true", right(36, 100)).status == "fail"
    gate = "accuracy = { chance = true, confidence = 0.99 }"
    assert verdict_of(gate, right(36, 100)).status == "pass"


def test_chance_of_a_subject_is_the_whole_benchmarks() -> None:
    run = result({"a": Counts(100, 30, 70), "b": Counts(100, 50, 50)}, chance=0.3)
    by_gate = verdicts("[benchmarks.x]\nevery_subject.accuracy.chance = true", run)
    assert [v.status for v in by_gate.values()] == ["pass", "fail"]
    for verdict in by_gate.values():
        assert "chance 0.3 of the whole benchmark" in verdict.reason
    near = result({"a": Counts(100, 30, 70), "b": Counts(100, 36, 64)}, chance=0.3)
    both = verdicts("[benchmarks.x]\nevery_subject.accuracy.chance = true", near)
    (folded,) = group_subject_verdicts([*both.values()], {"pass"})
    assert folded.reason == "worst of 2 subjects: b"


def test_no_chance_level_no_verdict() -> None:
    verdict = verdict_of("accuracy.chance = true", right(25, 100, chance=None))
    assert (verdict.status, verdict.reason) == ("undecided", "no chance level to compare with")
    assert verdict_of("accuracy.chance = true", result(Counts(100, 25))).status == "undecided"


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 20))
def test_a_chance_gate_with_errors_passes_only_in_the_worst_case(
    correct: int, wrong: int, error: int
) -> None:
    run = result(Counts(correct + wrong + error, correct, wrong, error=error))
    gate = "[benchmarks.x]\naccuracy.chance = true\nmax_errors = 20"
    status = verdicts(gate, run)["x::accuracy"].status
    if correct + wrong == 0:
        assert status == "undecided"
        return
    total = correct + wrong + error
    worlds = {
        verdicts(gate, right(correct + some, total))["x::accuracy"].status
        for some in range(error + 1)
    }
    assert worlds == {status} if status in ("pass", "fail") else len(worlds) > 1


# What a gate could have seen ----------------------------------------------------------------------


def test_the_smallest_drop_seen() -> None:
    accuracy = verdict_of("accuracy = 0.28", right(3951, 14_042))
    assert accuracy.detectable == detectable_drop(3951 / 14_042, 14_042)
    assert accuracy.detectable == pytest.approx(0.0106, abs=5e-5)
    gain = verdict_of("normalized_gain = 0", right(3951, 14_042))
    assert gain.detectable == pytest.approx(accuracy.detectable / 0.75)
    assert verdict_line(gain).endswith("; detectable drop 0.0142")
    assert verdict_of("accuracy = 0.28", result(Counts(14_042, 100))).detectable is None


def test_more_samples_see_smaller_drops_where_items_are_alike() -> None:
    single = verdict_of("accuracy = 0", measured({"s": ["c", "w"] * 20}))
    several = verdict_of("accuracy = 0", measured({"s": ["ccww"] * 39 + ["cccw"]}, samples=4))
    assert single.detectable is not None
    assert several.detectable is not None
    assert several.detectable < 0.6 * single.detectable


def test_a_warning_replaces_pass() -> None:
    warned = Verdict(
        *("i", "m", "x", "s", None, "max_drop", "<= 0.01", 0.02, None, 9, "pass", "why"),
        max=0.01,
        detectable=0.03,
        warning="but",
    )
    assert verdict_line(warned) == "WARN i: 0.0200 (bound <= 0.01) why; but; detectable drop 0.0300"
