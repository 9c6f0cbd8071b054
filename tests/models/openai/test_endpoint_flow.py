"""The flow: jobs in a background thread, and their results when something fails."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator

import pytest

from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Response
from pytest_llmeval.models.openai.background_loop import ConcurrencyWindow
from pytest_llmeval.models.openai.background_loop import Job
from pytest_llmeval.models.openai.background_loop import JobRunner
from pytest_llmeval.models.openai.limits import Lease
from pytest_llmeval.models.openai.limits import SharedState


@pytest.fixture
def flow() -> Iterator[JobRunner]:
    made = JobRunner(ConcurrencyWindow(4, fixed=True))
    yield made
    made.close()


def job(name: str, seconds: float = 0.0) -> Job:
    async def run() -> list[Response]:
        await asyncio.sleep(seconds)
        return [Response(name)]

    return run


def failing(error: Exception) -> Job:
    async def run() -> list[Response]:
        raise error

    return run


def test_responses_come_as_completed_and_ready_ones_first(flow: JobRunner) -> None:
    batch = flow.submit([job("slow", 0.2), job("quick")], [Response("ready")])
    assert [response.id for response in batch] == ["ready", "quick", "slow"]


def test_jobs_start_before_their_responses_are_read(flow: JobRunner) -> None:
    started = threading.Event()

    async def run() -> list[Response]:
        started.set()
        return [Response("a")]

    batch = flow.submit([run])
    assert started.wait(5)
    assert [response.id for response in batch] == ["a"]


@pytest.mark.parametrize("error", [ModelError("gone"), KeyError("a mistake of ours")])
def test_a_failure_ends_all_requests_without_waiting(flow: JobRunner, error: Exception) -> None:
    waiting = flow.submit([job("a", 60)] * 2)
    broken = flow.submit([job("b"), failing(error), *[job("d", 60)] * 8])
    for batch in (broken, waiting, flow.submit([job("c")])):
        with pytest.raises(ModelError, match=r"gone|KeyError: 'a mistake of ours'"):
            list(batch)


def test_iterating_a_closed_flow_raises(flow: JobRunner) -> None:
    batch = flow.submit([job("a", 60)] * 8)
    flow.close()
    with pytest.raises(ModelError, match="closed"):
        list(batch)


def test_a_lease_holds_the_flow_to_its_part() -> None:
    most = running = 0

    def counted() -> Job:
        async def run() -> list[Response]:
            nonlocal most, running
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return [Response("a")]

        return run

    flow = JobRunner(ConcurrencyWindow(50, fixed=True), Lease(3, SharedState()))
    assert len(list(flow.submit([counted() for _ in range(30)]))) == 30
    # And again after a pause, in which its part was given back.
    assert len(list(flow.submit([counted() for _ in range(30)]))) == 30
    flow.close()
    assert most == 3


def test_the_thread_ends_and_closes_its_connections() -> None:
    messages: list[str] = []

    async def last() -> None:
        messages.append("goodbye")

    flow = JobRunner(ConcurrencyWindow(4, fixed=True), None, last)
    flow.submit([job("a", 60)])
    (thread,) = [each for each in threading.enumerate() if each.name == "llmeval-endpoint"]
    flow.close()
    assert messages == ["goodbye"]
    assert not thread.is_alive()


def test_a_flow_that_is_forgotten_ends_its_thread() -> None:
    flow = JobRunner(ConcurrencyWindow(4, fixed=True))
    list(flow.submit([job("a")]))
    (thread,) = [each for each in threading.enumerate() if each.name == "llmeval-endpoint"]
    del flow
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()
