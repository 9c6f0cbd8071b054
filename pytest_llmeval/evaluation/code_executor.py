"""Execution of the jobs of responses while the model answers, each distinct job once."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import fields
from dataclasses import replace
from typing import Any
from typing import NamedTuple

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Score
from pytest_llmeval.evaluation.jobs import KINDS
from pytest_llmeval.evaluation.jobs import Job
from pytest_llmeval.evaluation.jobs import JobKind
from pytest_llmeval.evaluation.jobs import Result
from pytest_llmeval.evaluation.jobs import Runner
from pytest_llmeval.storage.verdict_log import VerdictLog

_MOST_REFERENCES = 32
# Share of failing reference solutions above which the sandbox does not suit the benchmark.
_MOST_FAILING = 0.1


class Scored(NamedTuple):
    """A job, and the function that scores its result. Equal jobs have equal scores."""

    job: Job
    score_of: Callable[[Result], Score]


class Executor:
    """Background execution of jobs of one kind in a runner, which the first job opens.

    Jobs are submitted by ``submit``, from one thread, run in another, and their scores are returned
    by ``finished``. Jobs that differ only in their id are run once.
    """

    def __init__(
        self,
        kind: JobKind,
        open_runner: Callable[[], Runner],
        ended: Callable[[], None],
        verdicts: VerdictLog,
    ) -> None:
        """Create an executor; ``ended`` is called, in another thread, when a score is ready.

        ``verdicts``: log of the scores of costly jobs.
        """
        self.kind = kind
        self._open = open_runner
        self._ended = ended
        self._verdicts = verdicts
        self._waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[str, Score] | BaseException] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._runner: Runner | None = None
        #: Digest of a job → ids that wait for it, or its score.
        self._runs: dict[str, list[str] | Score] = {}
        #: Id of a running job → its digest and scoring function.
        self._running: dict[str, tuple[str, Callable[[Result], Score]]] = {}
        self._repeated: list[tuple[str, Score]] = []
        self._failure: BaseException | None = None

    def check(self, references: Mapping[str, Scored]) -> dict[str, str]:
        """Open the runner and check that reference solutions are scored as correct.

        At most 32 of ``references`` (item id → its solution), spread evenly. Returns a line for
        every item whose solution fails. Raises ConfigError if more than a tenth do: the sandbox does
        not suit the benchmark, and its results would not be a measurement.
        """
        step = max(1, len(references) // _MOST_REFERENCES)
        chosen = list(references.items())[::step][:_MOST_REFERENCES]
        if self.kind.costly:
            with self._verdicts.alone():
                scores = self._scores_of(chosen)
        else:
            scores = self._scores_of(chosen)
        failing = {
            item: score.answer or score.error or "failed"
            for (item, _), score in zip(chosen, scores, strict=True)
            if score.outcome is not Outcome.CORRECT
        }
        if len(failing) > _MOST_FAILING * len(chosen):
            item, line = next(iter(failing.items()))
            raise ConfigError(
                f"the sandbox fails {len(failing)} of {len(chosen)} reference solutions, which are"
                f" known to be right; the first: {item}: {line}"
            )
        return failing

    def submit(self, scored: Scored) -> None:
        """Submit a job. Its id must be unique."""
        job, score_of = scored
        digest = digest_of(job)
        earlier = self._runs.get(digest) or self._stored_score(digest)
        if isinstance(earlier, Score):
            self._repeated.append((job.id, earlier))
            self._ended()
        elif earlier is not None:
            earlier.append(job.id)
        else:
            self._runs[digest] = [job.id]
            self._running[job.id] = digest, score_of
            self._start()
            self._waiting.put(job)

    def finished(self) -> list[tuple[str, Score]]:
        """Return ids and scores of jobs finished since the last call.

        Raises the exception that the runner raised, also in every later call.
        """
        if self._failure is not None:
            raise self._failure
        scores, self._repeated = self._repeated, []
        while not self._done.empty():
            ended = self._done.get()
            if isinstance(ended, BaseException):
                self._failure = ended
                raise ended
            name, score = ended
            digest, _ = self._running.pop(name)
            ids = self._runs.pop(digest)
            assert isinstance(ids, list)
            self._store_score(digest, score)
            scores += ((id_, score) for id_ in ids)
        return scores

    def close(self) -> None:
        """Close the runner. Jobs that have not finished are abandoned."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()
        if self._thread is not None:
            self._waiting.put(None)
        if self._runner is not None:
            self._runner.close()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _scores_of(self, references: Sequence[tuple[str, Scored]]) -> list[Score]:
        """Return the scores of references, in their order; run those without a stored score."""
        digests = [digest_of(scored.job) for _, scored in references]
        scores = {digest: score for digest in digests if (score := self._stored_score(digest))}
        to_run = {
            scored.job.id: (digest, scored)
            for digest, (_, scored) in zip(digests, references, strict=True)
            if digest not in scores
        }
        if to_run or not self.kind.costly:
            self._runner = self._runner or self._open()
            jobs = [scored.job for _, scored in to_run.values()]
            for result in self.kind.run_references(self._runner, jobs):
                digest, scored = to_run[result.id]
                scores[digest] = _scored(scored.score_of, result)
                self._store_score(digest, scores[digest])
        return [scores[digest] for digest in digests]

    def _stored_score(self, digest: str) -> Score | None:
        score = self._runs.get(digest)
        if isinstance(score, Score):
            return score
        return self._verdicts.get(digest) if self.kind.costly else None

    def _store_score(self, digest: str, score: Score) -> None:
        """Store a score for equal jobs, except an error: such a job is run again."""
        if score.outcome is Outcome.ERROR:
            return
        self._runs[digest] = score
        if self.kind.costly:
            self._verdicts.put(digest, score)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="llmeval-executor", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            if self._runner is None:
                self._runner = self._open()
            for result in self._runner.run(self._jobs()):
                _, score_of = self._running[result.id]
                self._done.put((result.id, _scored(score_of, result)))
                self._ended()
        except BaseException as error:
            self._done.put(error)
            self._ended()

    def _jobs(self) -> Iterable[Job]:
        while (job := self._waiting.get()) is not None:
            yield job


class Executors:
    """The executors of all kinds of jobs, each created on first use."""

    def __init__(
        self,
        open_runner: Callable[[JobKind], Runner],
        ended: Callable[[], None],
        verdicts: VerdictLog,
    ) -> None:
        """Take the arguments of ``Executor``; ``open_runner`` is called with the kind."""
        self._open = open_runner
        self._ended = ended
        self._verdicts = verdicts
        self._by_kind: dict[str, Executor] = {}

    def of(self, kind: str) -> Executor:
        """Return the executor of a kind of ``jobs.KINDS``."""
        if kind not in self._by_kind:
            job_kind = KINDS[kind]
            self._by_kind[kind] = Executor(
                job_kind, lambda: self._open(job_kind), self._ended, self._verdicts
            )
        return self._by_kind[kind]

    def finished(self) -> list[tuple[str, Score]]:
        """Return the results of ``Executor.finished`` for all kinds."""
        return [result for executor in self._by_kind.values() for result in executor.finished()]

    def close(self) -> None:
        for executor in self._by_kind.values():
            executor.close()
        self._verdicts.close()


def digest_of(job: Job) -> str:
    """Return the SHA-256 of a job without its id, in hexadecimal."""
    parts: list[Any] = [type(job).__name__]
    parts += (getattr(job, field.name) for field in fields(job) if field.name != "id")
    text = "\0".join(f"{len(part)}:{part}" for part in map(str, parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _scored(score_of: Callable[[Result], Score], result: Result) -> Score:
    try:
        return replace(score_of(result), node=result.node)
    except Exception as error:
        return Score(Outcome.ERROR, error=f"the result cannot be scored: {error!r}")
