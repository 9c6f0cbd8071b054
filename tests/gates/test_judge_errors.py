"""Errors and items without an answer, counted against the gate or leaving it undecided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from support.gate_results import ACCURACY
from support.gate_results import result
from support.gate_results import some_subjects
from support.gate_results import verdict_of
from support.gate_results import verdicts


def test_errors_fail_with_a_reason() -> None:
    """Without max_errors there is no number."""
    verdict = verdict_of(ACCURACY + "0.1", result(Counts(100, correct=80, wrong=10, error=10)))
    assert (verdict.status, verdict.measured) == ("fail", None)
    assert verdict.reason == "incomplete: 10 errors (max_errors 0)"


def test_a_scorer_that_always_raises_fails_its_gate() -> None:
    by_gate = verdicts(ACCURACY + "0\nmax_errors = 2", result(Counts(3, error=3)))
    assert {v.status for v in by_gate.values()} == {"fail"}
    assert by_gate["x::accuracy"].reason == "incomplete: 3 errors (max_errors 2)"


def test_allowed_errors_are_counted_against_the_gate() -> None:
    """With max_errors both denominators are shown, the smaller value decides."""
    ten = result(Counts(100, correct=80, wrong=10, error=10))
    by_gate = verdicts(ACCURACY + "0.8\nmax_errors = 10", ten)
    assert (by_gate["x::accuracy"].status, by_gate["x::accuracy"].measured) == ("pass", 0.8)
    assert "80 of 100 correct" in by_gate["x::accuracy"].reason
    assert "80 of 90 answered" in by_gate["x::accuracy"].reason
    assert by_gate["x::max_errors"].status == "pass"
    assert by_gate["x::max_errors"].measured == 10
    assert verdicts(ACCURACY + "0.81\nmax_errors = 10", ten)["x::accuracy"].status == "fail"


def test_allowed_errors_count_as_correct_against_a_maximum() -> None:
    ten = result(Counts(100, correct=20, wrong=70, error=10))
    passed = verdicts(ACCURACY + "{ max = 0.3 }\nmax_errors = 10", ten)["x::accuracy"]
    assert (passed.status, passed.measured) == ("pass", 0.3)
    failed = verdicts(ACCURACY + "{ max = 0.29 }\nmax_errors = 10", ten)["x::accuracy"]
    assert failed.status == "fail"


def test_an_error_is_no_unparsed_answer() -> None:
    counts = Counts(100, correct=50, wrong=39, unparsed=1, error=10)
    text = "[benchmarks.x]\nunparsed_rate = 0.012\nmax_errors = 10"
    verdict = verdicts(text, result(counts))["x::unparsed_rate"]
    assert (verdict.status, verdict.measured) == ("pass", 1 / 90)
    assert "1 of 90" in verdict.reason
    assert "10 errors" in verdict.reason


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        (Counts(14_042, correct=285), "only 285 of 14,042 items were run"),
        (Counts(10), "none of 10 items was run"),
        (Counts(0), "no items"),
    ],
)
def test_unrun_items_are_undecided(counts: Counts, reason: str) -> None:
    """For every metric, whatever the bound."""
    text = (
        "[benchmarks.x]\naccuracy = 0\nmacro_accuracy = 0\nnormalized_gain = -1\n"
        "unparsed_rate = 1\nmax_errors = 0\nevery_subject.accuracy = 0\nsubjects.s.accuracy = 0"
    )
    by_gate = verdicts(text, result(counts))
    assert len(by_gate) == 7
    assert {(v.status, v.reason) for v in by_gate.values()} == {("undecided", reason)}


def test_collected_without_any_result_is_undecided() -> None:
    by_gate = verdicts(
        ACCURACY + "0\nevery_subject.accuracy = 0\nsubjects.s.accuracy = 0\nmax_errors = 0\n"
        "scorers.cloze.accuracy = 0"
    )
    assert set(by_gate) == {
        "x::accuracy",
        "x::max_errors",
        "x::every_subject::accuracy",
        "x::subjects.s::accuracy",
        "x::scorers.cloze::accuracy",
    }
    assert {(v.status, v.reason) for v in by_gate.values()} == {("undecided", "no item was run")}


def test_only_errors_within_the_allowance_decide_nothing() -> None:
    verdict = verdicts(ACCURACY + "0\nmax_errors = 3", result(Counts(3, error=3)))["x::accuracy"]
    assert (verdict.status, verdict.reason) == ("undecided", "no item was answered: 3 errors")


def test_errors_outrank_missing_items() -> None:
    by_gate = verdicts(ACCURACY + "0\nmax_errors = 0", result(Counts(10, 5, error=1)))
    assert {v.status for v in by_gate.values()} == {"fail"}


@given(some_subjects, st.integers(0, 40))
def test_a_gate_with_errors_passes_only_in_the_worst_case(
    drawn: dict[str, Counts], limit: int
) -> None:
    """Brute force over what the errors of each subject could have been, up to symmetry."""
    text = f"[benchmarks.x]\naccuracy = 0.4\nmacro_accuracy = {{ max = 0.6 }}\nmax_errors = {limit}"
    by_gate = verdicts(text, result(drawn))

    def resolved(as_correct: bool) -> Result:
        return result(
            {
                name: Counts(
                    c.total,
                    c.correct + (c.error if as_correct else 0),
                    c.wrong + (0 if as_correct else c.error),
                    c.unparsed,
                )
                for name, c in drawn.items()
            }
        )

    for metric in ("accuracy", "macro_accuracy"):
        id = f"x::{metric}"
        worlds = {verdicts(text, resolved(as_correct))[id].status for as_correct in (True, False)}
        if by_gate[id].status == "pass":
            assert worlds == {"pass"}
        elif by_gate[id].status == "undecided":
            total = sum(drawn.values(), Counts(0))
            assert "undecided" in worlds or total.answered == 0
