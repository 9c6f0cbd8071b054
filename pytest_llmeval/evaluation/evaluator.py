"""Evaluation chunk by chunk: sends requests, reuses stored answers, prefetches chunks.

Runs in the process of the model: the main process, or every xdist worker.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Generator
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Record
from pytest_llmeval.core import Response
from pytest_llmeval.core import replace_lone_surrogates
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.core.record import AnswerKey
from pytest_llmeval.evaluation.answers import Arrivals
from pytest_llmeval.evaluation.recorder import Recorder
from pytest_llmeval.evaluation.recorder import UnanswerableError
from pytest_llmeval.evaluation.requests import Batch
from pytest_llmeval.evaluation.requests import ChunkRequests
from pytest_llmeval.models import Model
from pytest_llmeval.models.awaited import AwaitedAnswers
from pytest_llmeval.models.base import ArrivingResponses
from pytest_llmeval.models.base import CloseableResponses

_END = object()


class BatchFailedError(LlmevalError):
    """An exception of the model while it answered a batch, as text: one request may be the cause."""


class Evaluator:
    """Provider of the records of one test at a time, which requests whole chunks from the model.

    A chunk is requested when its first test is set up. If a model answers in its own threads
    (``prefetch``), responses to all chunks are written as they arrive, whichever test waits and
    while test bodies run. From any other model, responses are taken only until the current test has
    its own, so that a crash occurs in the test that causes it; a chunk is completed before the next
    one starts, so that its responses are on disk before the model continues.
    """

    def __init__(
        self,
        plan: Plan,
        requests: ChunkRequests,
        recorder: Recorder,
        arrivals: Arrivals,
        upcoming: Callable[[], Iterable[int]],
        note_usage: Callable[[], None],
    ) -> None:
        """Create an evaluator of a plan.

        ``arrivals``: also signalled by the recorder's programs. ``upcoming``: the next chunks of
        this process, as far as they are known; a model with ``prefetch`` starts them early.
        ``note_usage``: writes the models' usage so far to disk.
        """
        self._plan = plan
        self.requests = requests
        self.recorder = recorder
        #: Chunk → its steps; a step that yields True has to wait for an arrival.
        self._chunks: dict[int, Iterator[bool]] = {}
        #: Chunks in flight → their responses, which arrive in the background.
        self._in_flight: dict[int, ArrivingResponses] = {}
        #: The chunk of a model that works only while its responses are iterated.
        self._open_chunk: int | None = None
        self._outstanding = 0
        self._arrivals = arrivals
        self._upcoming = upcoming
        self._note_usage = note_usage
        # Held by the thread that takes responses: the tests' or the saving one.
        self._lock = threading.Lock()
        self._fatal_error: UnanswerableError | None = None

    def records(self, nodeid: str, model: Model) -> tuple[Record, ...]:
        """Return the records of a planned test, by sample and then by arm, answering its chunk as needed.

        Raises UnanswerableError if no item of the session can be answered.
        """
        planned = self._plan.by_nodeid[nodeid]
        with self._lock:
            if self._fatal_error is not None:
                self._drain_in_flight()
                raise self._fatal_error
            expected = self.requests.expected_keys(planned, model)
            ready = self.recorder.ready.setdefault(nodeid, {})
            try:
                if planned.chunk not in self._chunks:
                    self._start_chunk(planned.chunk, model)
                while len(ready) < len(expected):
                    self._prefetch(planned, model)
                    self._advance(planned, model, expected, ready)
                self._drain_ready()
            except UnanswerableError as error:
                self._fatal_error = error
                self._drain_in_flight()
                raise
            finally:
                self._note_usage()
            del self.recorder.ready[nodeid]
        return tuple(ready[answer] for answer in expected)

    def end(self) -> None:
        """Save the available responses and stop. Requests in flight are abandoned."""
        self._arrivals.end()
        self._save()

    def _save(self) -> None:
        """Take available responses; an error is raised in the next test."""
        with self._lock:
            try:
                if self._fatal_error is None:
                    self._drain_ready()
                self._note_usage()
            except UnanswerableError as error:
                self._fatal_error = error

    def _advance(
        self,
        planned: PlannedItem,
        model: Model,
        expected: Collection[AnswerKey],
        ready: Mapping[AnswerKey, Record],
    ) -> None:
        """Take available responses of all chunks, and advance the chunk of one test by a step."""
        self._arrivals.clear()
        self._drain_ready()
        if len(ready) == len(expected):
            return
        must_wait = next(self._chunks[planned.chunk], None)
        if must_wait:
            self._arrivals.wait()
        elif must_wait is None:
            # The chunk ended before this item: an exception left it.
            error = "the evaluation of its chunk was interrupted"
            for failed in self.requests.blanks_of_item(planned, model, error):
                if failed.answer_key not in ready:
                    self.recorder.fail(planned, failed)

    def _start_chunk(self, chunk: int, model: Model) -> None:
        self._chunks[chunk] = progress = self._answer_chunk(chunk, model)
        if model.prefetch:
            # The first step prepares the requests, the second sends them.
            next(progress, None)
            next(progress, None)

    def _prefetch(self, planned: PlannedItem, model: Model) -> None:
        """Start the next chunks while fewer requests are in flight than the model prefetches."""
        if self._outstanding >= model.prefetch:
            return
        for chunk in self._upcoming():
            same_model = self._plan.chunks[chunk][0].model == planned.model
            if chunk not in self._chunks and same_model:
                self._start_chunk(chunk, model)
                if self._outstanding >= model.prefetch:
                    return

    def _drain_ready(self) -> None:
        """Write the available responses of all chunks, so that a killed run keeps them."""
        self.recorder.collect_executions()
        if self._in_flight:
            self._note_usage()  # first: a kill may lose responses, but not their cost
        for chunk in list(self._in_flight):
            while chunk in self._in_flight and self._in_flight[chunk].available:
                next(self._chunks[chunk], None)

    def _drain_in_flight(self) -> None:
        """Write the responses to prefetched chunks that still arrive before the model fails."""
        for chunk in list(self._in_flight):
            with contextlib.suppress(UnanswerableError):
                while chunk in self._in_flight:
                    self._arrivals.clear()
                    if next(self._chunks[chunk], None):
                        self._arrivals.wait()

    def _answer_chunk(self, chunk: int, model: Model) -> Iterator[bool]:
        """Evaluate a chunk stepwise: prepare its requests, send them, then yield after every response.

        A step yields True if it has to wait for an arrival.
        """
        batches = deque(self.requests.batches(chunk, model))
        yield False
        while batches:
            batch = batches.popleft()
            unanswered = yield from self._send_batch(chunk, model, batch)
            middle = len(unanswered) // 2
            batches.extendleft(half for half in (unanswered[middle:], unanswered[:middle]) if half)
        while self.recorder.waits_for(chunk):
            yield True
            self.recorder.collect_executions()

    def _finish_open_chunk(self) -> None:
        """Take all responses to the open chunk, before another one starts."""
        while self._open_chunk is not None:
            next(self._chunks[self._open_chunk], None)

    def _send_batch(
        self,
        chunk: int,
        model: Model,
        batch: Batch,
    ) -> Generator[bool, None, Batch]:
        """Send a batch and take its responses.

        Returns the requests to send again, in halves: those without a response when the model
        raised an exception, unless there is only one, which is then the cause. Raises
        UnanswerableError if no item of the session can be answered.
        """
        members = {planned.item: planned for planned in self._plan.chunks[chunk]}
        failure = "the model gave no answer"
        awaited = AwaitedAnswers(batch)
        self._finish_open_chunk()
        self._outstanding += len(batch)
        at_once = False
        try:
            with _raised_by_model():
                answers = model.answer([request for request, _ in batch])
                responses = iter(answers)
            at_once = isinstance(answers, Collection)
            if at_once:
                self.recorder.hold()
            arriving = responses if isinstance(responses, ArrivingResponses) else None
            if arriving is not None:
                self._in_flight[chunk] = arriving
                arriving.listen(self._arrivals.note)
                self._arrivals.save_by(self._save)
            else:
                self._open_chunk = chunk
            yield False
            while True:
                while arriving is not None and not arriving.available:
                    yield True
                with _raised_by_model():
                    response = next(responses, _END)
                if response is _END:
                    break
                if not isinstance(response, Response):
                    raise TypeError(f"the model yielded {type(response).__name__}, not a Response")
                blank = awaited.pop(response)
                if blank is None:
                    # A repeated or unrequested response does not affect the others.
                    if response.id not in members:
                        failure = f"the model answered {response.id!r} instead"
                    continue
                self._outstanding -= 1
                self.recorder.take(members[response.id], blank, response)
                self.recorder.collect_executions()
                if not awaited:
                    # Close the iterator now: the generator would otherwise keep the batch's memory.
                    if isinstance(responses, CloseableResponses):
                        responses.close()
                    break
                if not at_once:
                    yield False
        except (ConfigError, ModelError, pytest.exit.Exception) as error:
            raise UnanswerableError(f"model {model.name}: {error}") from None
        except UnanswerableError:
            raise
        except BatchFailedError as error:
            if len(unanswered := awaited.requests()) > 1:
                self._outstanding -= len(unanswered)
                return unanswered
            failure = str(error)
        except Exception as error:
            failure = replace_lone_surrogates(f"{type(error).__name__}: {error}")
        finally:
            if at_once:
                self.recorder.release()
            self._in_flight.pop(chunk, None)
            self._open_chunk = None if self._open_chunk == chunk else self._open_chunk
        for blank in awaited:
            self._outstanding -= 1
            self.recorder.fail(members[blank.item], replace(blank, error=failure))
            yield False
        return []


@contextlib.contextmanager
def _raised_by_model() -> Iterator[None]:
    """Turn an exception that concerns some of the requests into a BatchFailedError."""
    try:
        yield
    except (LlmevalError, pytest.exit.Exception):
        raise
    except Exception as error:
        message = replace_lone_surrogates(f"{type(error).__name__}: {error}")
        raise BatchFailedError(message) from error
