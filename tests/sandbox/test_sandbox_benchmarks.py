"""Programs that are known to be right pass, and empty ones do not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import Sandbox

_ODD = {
    126: "its function is named sum",
    367: "its setup builds trees of the candidate's class",
    596: "its check uses a module that only the candidate imports",
    601: "its checks build the candidate's pairs",
    927: "its setup builds trees of the candidate's class",
}


def _not_passed(sandbox: Sandbox, programs: list[Program]) -> list[str]:
    return sorted(
        execution.id for execution in sandbox.run(programs) if execution.status != "passed"
    )


def _humaneval(problem: dict[str, Any], body: str) -> Program:
    name = problem["entry_point"]
    return Program(
        problem["task_id"],
        problem["prompt"] + body,
        f"{problem['test']}\ncheck({name})\n",
        problem["prompt"],
        name,
        10.0,
    )


def _problems(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_humaneval_passes_with_its_own_solutions(sandbox: Sandbox, humaneval_file: Path) -> None:
    problems = _problems(humaneval_file)
    programs = [_humaneval(problem, problem["canonical_solution"]) for problem in problems]
    assert len(programs) == 164
    assert _not_passed(sandbox, programs) == []


def test_humaneval_fails_with_empty_bodies(sandbox: Sandbox, humaneval_file: Path) -> None:
    programs = [_humaneval(problem, "    pass\n") for problem in _problems(humaneval_file)]
    assert {execution.status for execution in sandbox.run(programs)} == {"failed"}


@pytest.mark.parametrize("number", _ODD, ids=_ODD.get)
def test_mbpp_passes_where_checks_are_odd(sandbox: Sandbox, mbpp_file: Path, number: int) -> None:
    with mbpp_file.open(encoding="utf-8") as file:
        (task,) = (row for row in map(json.loads, file) if row["task_id"] == number)
    tests = "\n".join([task["test_setup_code"], *task["test_list"]])
    name = "sum" if number == 126 else None
    assert _not_passed(sandbox, [Program("a", task["code"], tests, "", name, 10.0)]) == []


def test_a_right_program_that_is_slow_passes_within_the_default_limit(sandbox: Sandbox) -> None:
    source = "import time\ndef area(w, h):\n    time.sleep(0.3)\n    return w * h\n"
    checks = "assert area(3, 4) == 12\nassert area(0, 9) == 0\n"
    assert _not_passed(sandbox, [Program("a", source, checks, "", "area")]) == []
