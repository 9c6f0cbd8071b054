"""The verdict of several gates together, and verdicts in words."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import overall_verdict
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.metrics import Counts
from support.gate_results import ACCURACY
from support.gate_results import result
from support.gate_results import right
from support.gate_results import verdict_of
from support.gate_results import verdicts


def verdict(status: Any) -> Verdict:
    return Verdict("i", "m", "x", None, None, "accuracy", ">= 0", None, None, 0, status, "")


@pytest.mark.parametrize(
    ("statuses", "strict", "allowed"),
    [
        ([], "fail", "pass"),
        (["pass"], "pass", "pass"),
        (["pass", "not run"], "pass", "pass"),
        (["not run"], "fail", "pass"),
        (["undecided"], "fail", "pass"),
        (["pass", "undecided"], "fail", "pass"),
        (["pass", "fail"], "fail", "fail"),
        (["undecided", "fail", "not run"], "fail", "fail"),
    ],
)
def test_overall(statuses: list[str], strict: str, allowed: str) -> None:
    listed = [verdict(status) for status in statuses]
    assert overall_verdict(listed, allow_undecided=False) == strict
    assert overall_verdict(listed, allow_undecided=True) == allowed


def test_describe() -> None:
    assert verdict_line(verdict_of(ACCURACY + "0.28", right(3951, 14_042))) == (
        "PASS x::accuracy: 0.2814 (bound >= 0.28) [0.2740, 0.2889] 3,951 of 14,042 correct;"
        " detectable drop 0.0106"
    )
    assert verdict_line(verdict_of(ACCURACY + "0.28", result(Counts(5, error=1)))) == (
        "FAIL x::accuracy: - (bound >= 0.28) incomplete: 1 error (max_errors 0)"
    )
    assert verdict_line(verdict_of("[benchmarks.x]\nmax_errors = 2", right(1, 10))) == (
        "PASS x::max_errors: 0 (bound <= 2) 0 errors in 10 items"
    )
    absent = verdicts("[benchmarks.y]\naccuracy = 1")["y"]
    assert verdict_line(absent) == "NOT RUN y: not part of this run"


def test_describe_never_rounds_a_miss_to_the_bound() -> None:
    text = verdict_line(verdict_of(ACCURACY + "0.28", right(279_999, 1_000_000)))
    assert text.startswith("FAIL x::accuracy: 0.279999 (bound >= 0.28)")
    assert "0.2800 (" in verdict_line(verdict_of(ACCURACY + "0.28", right(7, 25)))
    long = verdict_of(ACCURACY + "0.333333333", right(1, 3))
    assert (long.status, verdict_line(long)[:30]) == ("pass", "PASS x::accuracy: 0.3333333333")
