"""Recorded logs of SWE-bench with their verdicts: ``data/outputs/swebench``, see its README."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_llmeval.scorers.swebench.grading import Expected
from pytest_llmeval.scorers.swebench.grading import Grade
from pytest_llmeval.scorers.swebench.grading import grade
from support.paths import DATA

RECORDED = DATA / "outputs" / "swebench"

needs_recorded = pytest.mark.skipif(
    not RECORDED.is_dir(), reason="no recorded logs of SWE-bench (LLMEVAL_DATA/outputs/swebench)"
)

_APPLIED = ">>>>> Applied Patch (pred)"
_BAD = (">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out")


def lines(name: str) -> list[dict[str, Any]]:
    """The records of a JSONL file, packed or not."""
    path = RECORDED / name
    if path.suffix == ".xz":
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
            return [json.loads(line) for line in file]
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def document(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((RECORDED / name).read_text(encoding="utf-8"))
    return value


def tests_of(value: Any) -> tuple[str, ...]:
    """A list of tests, which older rows have as JSON."""
    return tuple(json.loads(value) if isinstance(value, str) else value)


def expected_of(row: Mapping[str, Any]) -> Expected:
    return Expected(tests_of(row["FAIL_TO_PASS"]), tests_of(row["PASS_TO_PASS"]), row["log_parser"])


def grade_of_1x(row: Mapping[str, Any], log: str) -> Grade:
    """The grade of a log of the harness 1.x, which has no markers around the output of the tests."""
    if _APPLIED not in log:
        return Grade("not_found", reason="not applied")
    if any(marker in log for marker in _BAD):
        return Grade("not_found", reason="bad marker")
    return grade(expected_of(row), log.rpartition(_APPLIED)[2], None)
