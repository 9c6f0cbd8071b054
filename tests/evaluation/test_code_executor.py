"""The executor: jobs run beside the answering, each distinct one once, verdicts of costly ones kept."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Score
from pytest_llmeval.evaluation.code_executor import Executor
from pytest_llmeval.evaluation.code_executor import Scored
from pytest_llmeval.evaluation.code_executor import digest_of
from pytest_llmeval.evaluation.jobs import JobKind
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.storage.verdict_log import VerdictLog


class Runner:
    """Runs programs by their source: its first word is the status, the rest the detail."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.closed = False

    def run(self, jobs: Iterable[Program]) -> Iterator[Execution]:
        for job in jobs:
            self.ran.append(job.source)
            status, _, detail = job.source.partition(" ")
            if status == "raise":
                raise RuntimeError(detail)
            yield Execution(job.id, status, detail)  # type: ignore[arg-type]

    def close(self) -> None:
        self.closed = True


def score_of(execution: Execution) -> Score:
    if execution.status == "passed":
        return Score(Outcome.CORRECT, answer="passed")
    if execution.status == "error":
        return Score(Outcome.ERROR, error=execution.detail)
    return Score(Outcome.WRONG, answer=execution.status, log=execution.detail)


class Running:
    def __init__(self, path, *, costly: bool) -> None:
        self.runner = Runner()
        self.arrived = threading.Semaphore(0)
        kind = JobKind(
            lambda settings, processes: self.runner,
            lambda settings: "",
            lambda runner, jobs: runner.run(jobs),
            lambda settings, jobs: None,
            costly=costly,
        )
        self.executor = Executor(
            kind, lambda: self.runner, self.arrived.release, VerdictLog(path / "verdicts.jsonl")
        )
        self.count = 0

    def scored(self, source: str) -> Scored:
        self.count += 1
        return Scored(Program(f"{self.count}", source, "tests"), score_of)  # type: ignore[arg-type]

    def scores(self, *sources: str) -> list[Score]:
        """The scores of programs that are submitted at once, in their order."""
        jobs = [self.scored(source) for source in sources]
        for job in jobs:
            self.executor.submit(job)
        ended: dict[str, Score] = {}
        while len(ended) < len(jobs):
            assert self.arrived.acquire(timeout=10)
            ended |= self.executor.finished()
        return [ended[job.job.id] for job in jobs]

    def check(self, *sources: str) -> dict[str, str]:
        return self.executor.check(
            {f"i{n}": self.scored(source) for n, source in enumerate(sources)}
        )


@pytest.fixture
def make(tmp_path):
    made = []

    def running(*, costly: bool = False) -> Running:
        made.append(Running(tmp_path, costly=costly))
        return made[-1]

    yield running
    for each in made:
        each.executor.close()
        assert each.runner.closed or not each.runner.ran


def test_equal_jobs_run_once_whenever_they_are_given_in(make):
    running = make()
    assert running.scores("passed", "failed", "passed") == [
        Score(Outcome.CORRECT, answer="passed"),
        Score(Outcome.WRONG, answer="failed"),
        Score(Outcome.CORRECT, answer="passed"),
    ]
    assert running.scores("failed")[0].outcome is Outcome.WRONG
    assert running.runner.ran == ["passed", "failed"]


def test_an_error_is_run_again(make):
    running = make(costly=True)
    assert running.scores("error lost", "error lost")[0].error == "lost"
    running.scores("error lost")
    assert running.runner.ran == ["error lost"] * 2


def test_verdicts_of_costly_jobs_outlive_the_process(make):
    first, second = make(costly=True), make(costly=True)
    scores = first.scores("passed", "failed for a reason", "error x")
    assert second.scores("passed", "failed for a reason") == scores[:2]
    assert second.runner.ran == []
    # Also those of another process that still goes on.
    first.scores("timeout")
    assert second.scores("timeout")[0].answer == "timeout"
    assert second.runner.ran == []
    assert make(costly=False).scores("passed") == scores[:1]


def test_references_are_checked_and_kept(make):
    first, second = make(costly=True), make(costly=True)
    sources = ["passed"] * 11 + ["failed x"]
    assert first.check(*sources) == {"i11": "failed"}
    assert second.check(*sources) == {"i11": "failed"}
    assert second.runner.ran == []
    assert second.scores("passed", "failed x")[0].outcome is Outcome.CORRECT
    assert second.runner.ran == []


def test_at_most_32_references_are_run_spread_evenly(make):
    running = make()
    running.check(*(f"passed {number}" for number in range(320)))
    assert running.runner.ran == [f"passed {number}" for number in range(0, 320, 10)]


@pytest.mark.parametrize("costly", [False, True])
def test_more_than_a_tenth_failing_is_a_mistake(make, costly):
    with pytest.raises(ConfigError, match=r"fails 2 of 12 reference.*; the first: i3: lost"):
        make(costly=costly).check(*(["passed"] * 3), "error lost", *(["passed"] * 7), "failed")


def test_a_result_that_cannot_be_scored_is_an_error(make):
    running = make()

    def broken(execution):
        raise ValueError("no such thing")

    running.executor.submit(running.scored("passed")._replace(score_of=broken))
    assert running.arrived.acquire(timeout=10)
    ((_, score),) = running.executor.finished()
    assert score.outcome is Outcome.ERROR
    assert "no such thing" in str(score.error)


def test_a_runner_that_raises_does_so_for_good(make):
    running = make()
    running.executor.submit(running.scored("raise gone"))
    assert running.arrived.acquire(timeout=10)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="gone"):
            running.executor.finished()


def test_the_digest_is_of_all_but_the_id():
    program = Program("a", "source", "tests")
    assert digest_of(program) == digest_of(replace(program, id="b"))
    for changes in ({"source": "x"}, {"tests": "x"}, {"context": "x"}, {"timeout": 4.0}):
        assert digest_of(program) != digest_of(replace(program, **changes))
    assert digest_of(Program("", "a", "bc")) != digest_of(Program("", "ab", "c"))
