"""Evaluation chunk by chunk: sends requests, reuses stored answers, prefetches chunks.

Runs in the process of the model: the main process, or every xdist worker.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest

from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.bias.arms import Arm
from pytest_llmeval.bias.arms import Reordering
from pytest_llmeval.bias.arms import arrange
from pytest_llmeval.bias.content_free import arms_of_item
from pytest_llmeval.bias.content_free import carrier_ids
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Record
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core import replace_lone_surrogates
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.core.record import AnswerKey
from pytest_llmeval.evaluation.answers import Arrivals
from pytest_llmeval.evaluation.answers import AwaitedAnswers
from pytest_llmeval.evaluation.answers import ReusableAnswers
from pytest_llmeval.evaluation.recorder import Recorder
from pytest_llmeval.evaluation.recorder import UnanswerableError
from pytest_llmeval.evaluation.recorder import answerable_protocol
from pytest_llmeval.evaluation.recorder import blank_records
from pytest_llmeval.evaluation.scoring import stored_response
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.models import Model
from pytest_llmeval.models.base import ArrivingResponses
from pytest_llmeval.models.base import CloseableResponses

_ORIGINAL_ARM = Arm(ORIGINAL)
_END = object()


class RecoveredRecords(NamedTuple):
    """Records of an earlier session or of a crashed worker."""

    records: Iterable[Record] = ()
    #: Node ids of tests that crashed their worker; they are not sent again in this session.
    crashed: Iterable[str] = ()


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
        evaluations: Sequence[Evaluation],
        items: Mapping[str, Item],
        recorder: Recorder,
        arrivals: Arrivals,
        recover: Callable[[], RecoveredRecords],
        upcoming: Callable[[], Iterable[int]],
        note_usage: Callable[[], None],
    ) -> None:
        """Create an evaluator of a plan.

        ``items``: by node id. ``recover``: returns the records that were recovered since its last
        call. ``arrivals``: also signalled by the recorder's programs. ``upcoming``: the next chunks
        of this process, as far as they are known; a model with ``prefetch`` starts them early.
        ``note_usage``: writes the models' usage so far to disk.
        """
        self.recorder = recorder
        #: Node ids whose answer comes from an earlier session or another worker.
        self.reused: set[str] = set()
        self._plan = plan
        self._evaluations = evaluations
        self._items = items
        #: By index of model and result: ids of the items that carry content-free prompts.
        self._carriers = self._find_carriers()
        #: By index of result and identity of the model: the protocol that the model answers.
        self._protocols: dict[tuple[int, int], Protocol] = {}
        self._recover = recover
        self._reusable = ReusableAnswers(plan.own_model)
        self._crashed: set[str] = set()
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
            expected = self._expected_keys(planned, model)
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
            blank = self.blank(planned.nodeid, model.name)
            error = "the evaluation of its chunk was interrupted"
            for failed in self._blanks_of_item(planned, model, blank, error):
                if failed.answer_key not in ready:
                    self.recorder.fail(planned, failed)

    def _protocol(self, result: int, model: Model) -> Protocol:
        """Return the protocol of a planned result that a model can answer. Raises UnanswerableError."""
        key = (result, id(model))
        if key not in self._protocols:
            self._protocols[key] = answerable_protocol(self._evaluations[result].protocol, model)
        return self._protocols[key]

    def _expected_keys(self, planned: PlannedItem, model: Model) -> Collection[AnswerKey]:
        """Return the keys of an item's answers: its samples, then its arms."""
        protocol = self._protocol(planned.result, model)
        samples = [("", sample) for sample in range(protocol.answers_per_item)]
        return [*samples, *((arm.name, 0) for arm, _ in self._arms_of(planned, protocol))]

    def _blanks_of_item(
        self, planned: PlannedItem, model: Model, shared: Record, error: str
    ) -> Iterator[Record]:
        """Yield the records of an item's answers as errors."""
        protocol, item = self._protocol(planned.result, model), self._items[planned.nodeid]
        for arm in (_ORIGINAL_ARM, *(arm for arm, _ in self._arms_of(planned, protocol))):
            yield from blank_records(shared, item, arm, protocol, error=error)

    def _find_carriers(self) -> dict[tuple[int, int], frozenset[str]]:
        groups: dict[tuple[int, int], list[Item]] = {}
        for planned in self._plan.items:
            evaluation = self._evaluations[planned.result]
            if len(evaluation.orders) < len(evaluation.arms):
                members = groups.setdefault((planned.model, planned.result), [])
                members.append(self._items[planned.nodeid])
        return {group: carrier_ids(items) for group, items in groups.items()}

    def _arms_of(self, planned: PlannedItem, protocol: Protocol) -> Iterator[tuple[Arm, Item]]:
        """Yield the arms of an item, each with the item in that arm."""
        # A generated letter does not give the probabilities of the others.
        carries = protocol.ask == "choices" and planned.item in self._carriers.get(
            (planned.model, planned.result), ()
        )
        return arms_of_item(
            self._items[planned.nodeid], self._evaluations[planned.result].arms, carries
        )

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

    def blank(self, nodeid: str, own_model: str | None = None) -> Record:
        """Return the record of a planned test without an answer.

        Its model is the spec, or ``own_model`` for the custom model of a fixture.
        """
        planned = self._plan.by_nodeid[nodeid]
        evaluation = self._evaluations[planned.result]
        spec = self._plan.models[planned.model]
        return Record(
            model=(own_model or spec) if self._plan.own_model else spec,
            benchmark=evaluation.benchmark.name,
            scorer=evaluation.protocol.scorer,
            item=planned.item,
            subject=planned.subject,
            outcome=Outcome.ERROR,
            answer=None,
            gold=self._items[nodeid].gold_label,
            protocol=self._plan.results[planned.result].ways[0].fingerprint,
            data=evaluation.data_hash,
        )

    def _answer_chunk(self, chunk: int, model: Model) -> Iterator[bool]:
        """Evaluate a chunk stepwise: prepare its requests, send them, then yield after every response.

        A step yields True if it has to wait for an arrival.
        """
        requests = self._requests(chunk, model)
        yield False
        for batch in requests:
            yield from self._send_batch(chunk, model, batch)
        while self.recorder.waits_for(chunk):
            yield True
            self.recorder.collect_executions()

    def _finish_open_chunk(self) -> None:
        """Take all responses to the open chunk, before another one starts."""
        while self._open_chunk is not None:
            next(self._chunks[self._open_chunk], None)

    def _requests(self, chunk: int, model: Model) -> Iterable[list[tuple[Request, Record]]]:
        """Return the requests of a chunk with their blank records, in batches.

        Requests with the same shots share a batch, so that their prefix is encoded once. Answers on
        disk are scored again instead.
        """
        first, *_ = members = self._plan.chunks[chunk]
        evaluation = self._evaluations[first.result]
        protocol = self._protocol(first.result, model)
        variants = self._plan.results[first.result].ways
        variant = next(variant for variant in variants if variant.ask == protocol.ask)
        self._check_name(evaluation, protocol, model)
        shared = replace(
            self.blank(first.nodeid, model.name),
            scorer=variant.scorer,
            protocol=variant.fingerprint,
            model_fingerprint=model.fingerprint,
        )
        recovered = self._recover()
        self._reusable.add(recovered.records)
        self._crashed.update(recovered.crashed)
        requests: dict[Reordering, list[tuple[Request, Record]]] = {}
        for planned in members:
            if planned.nodeid in self._crashed:
                continue
            item = self._items[planned.nodeid]
            pool = evaluation.dataset.pool.get(item.subject, ())
            for arm, arranged in ((_ORIGINAL_ARM, item), *self._arms_of(planned, protocol)):
                try:
                    request = protocol.request(
                        arranged,
                        pool,
                        self._plan.seed,
                        evaluation.benchmark.name,
                        None if arm is _ORIGINAL_ARM else partial(arrange, move=arm.shots),
                    )
                except Exception as error:
                    message = f"template {protocol.template.name}: {type(error).__name__}: {error}"
                    for failed in blank_records(shared, item, arm, protocol, error=message):
                        self.recorder.fail(planned, failed)
                    continue
                prompt = {
                    "prompt_sha256": request.prompt.sha256,
                    "dropped_shots": protocol.shots - len(request.prompt.shots),
                }
                for blank in blank_records(shared, item, arm, protocol, **prompt):
                    if self._reuse(planned, blank):
                        continue
                    if any(blank.answer_key):
                        request = replace(request, id=item.id, arm=blank.arm, sample=blank.sample)
                    requests.setdefault(arm.shots, []).append((request, blank))
        return requests.values()

    def _reuse(self, planned: PlannedItem, record: Record) -> bool:
        """Score the stored answer of a record, if there is one; return false if there is none."""
        stored = self._reusable.pop_matching(record)
        if stored is None:
            return False
        # The record is written again if a later record replaced it.
        latest = stored if self._reusable.is_latest(stored) else None
        response = stored_response(stored, record.dropped_shots)
        self.recorder.take(planned, record, response, from_disk=True, stored=latest)
        self.reused.add(planned.nodeid)
        return True

    def _check_name(self, evaluation: Evaluation, protocol: Protocol, model: Model) -> None:
        """Refuse a scorer that becomes another test's because of the model's limits.

        Raises UnanswerableError.
        """
        for other in self._evaluations:
            if other is evaluation or other.benchmark.name != evaluation.benchmark.name:
                continue
            if answerable_protocol(other.protocol, model).scorer == protocol.scorer:
                raise UnanswerableError(
                    f"model {model.name} returns only text, so {evaluation.test} and {other.test} would"
                    f" both give the result ({evaluation.benchmark.name}, {protocol.scorer}): run one"
                )

    def _send_batch(
        self,
        chunk: int,
        model: Model,
        batch: list[tuple[Request, Record]],
    ) -> Iterator[bool]:
        members = {planned.item: planned for planned in self._plan.chunks[chunk]}
        failure = "the model gave no answer"
        awaited = AwaitedAnswers(batch)
        self._finish_open_chunk()
        self._outstanding += len(batch)
        at_once = False
        try:
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
