"""A place that is lost is replaced only by one with the same sandbox."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_llmeval.evaluation.node_jobs import NodeJobs
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program


class LostError(Exception):
    """Ray's error for an actor that has ended."""


class TaskError(LostError):
    """Ray's error for an exception in an actor."""


class Place:
    """Actor with a sandbox of some identity; a lost one answers nothing."""

    def __init__(self, identity: str | None) -> None:
        self.ran = 0
        self.identity = identity
        self.open = SimpleNamespace(remote=lambda: lambda: ("node-7", identity, ""))
        self.run = SimpleNamespace(remote=lambda job: lambda: self.answer(job))

    def answer(self, job: Program) -> Execution:
        if self.identity is None:
            raise LostError("the actor died")
        self.ran += 1
        return Execution(job.id, "passed")


def node_jobs(replacements: list[Place]) -> tuple[NodeJobs, list[Place]]:
    killed: list[Place] = []
    jobs: Any = object.__new__(NodeJobs)
    jobs._ray = SimpleNamespace(
        get=lambda ref, timeout=None: ref(),
        kill=killed.append,
        exceptions=SimpleNamespace(RayError=LostError, RayTaskError=TaskError),
    )
    jobs._identity, jobs._closed = "image-1", False
    jobs._places, jobs._nodes = [Place(None)], ["node-1"]
    jobs._make = iter(replacements).__next__
    return jobs, killed


def test_a_lost_place_is_replaced() -> None:
    jobs, killed = node_jobs([Place("image-1")])
    assert jobs._run(0, Program("a", "", "")).status == "passed"
    assert jobs._nodes == ["node-7"]
    assert killed == []


@pytest.mark.parametrize("count", [1, 2])
def test_another_sandbox_runs_nothing(count: int) -> None:
    others = [Place("image-2") for _ in range(2)]
    jobs, killed = node_jobs([*others, Place("image-1"), *others])
    results = [jobs._run(0, Program(str(number), "", "")) for number in range(count)]
    assert (results[0].status, results[0].node) == ("error", "node-1")
    assert "differs from the one here: image-2, here image-1" in results[0].detail
    assert killed == others
    assert [other.ran for other in others] == [0, 0]
    assert [result.status for result in results[1:]] == ["passed"] * (count - 1)
