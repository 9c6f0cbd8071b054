"""Answering chunk by chunk: which requests are sent, which answers are on disk, which are next.

Runs where the model is: in the main process, or in every xdist worker.
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
from pytest_llmeval.evaluation.answers import Stored
from pytest_llmeval.evaluation.recorder import Recorder
from pytest_llmeval.evaluation.recorder import UnanswerableError
from pytest_llmeval.evaluation.recorder import answerable
from pytest_llmeval.evaluation.recorder import blanks_of
from pytest_llmeval.evaluation.scoring import response_of
from pytest_llmeval.evaluation.suite import Evaluated
from pytest_llmeval.models import Model
from pytest_llmeval.models.base import ArrivingResponses
from pytest_llmeval.models.base import CloseableResponses

_AS_IT_IS = Arm(ORIGINAL)
_END = object()


class Recovered(NamedTuple):
    """Records of an earlier session or of a worker that died.

    ``crashed``: node ids of tests that killed their worker, which are not sent again in this session.
    """

    records: Iterable[Record] = ()
    crashed: Iterable[str] = ()


class Evaluator:
    """Finds the answer of one test at a time, requesting whole chunks from the model.

    A chunk is requested when its first test is set up. Where a model answers in threads of its own
    (``prefetch``), responses to all chunks are written as they arrive, whichever test waits, also
    while the body of a test runs. From another model they are taken only until the wanted one has
    come, so that a test that kills the process is the one that waits; one chunk is ended before the
    next is begun, so that what the model holds is on disk when it goes on to something else.
    """

    def __init__(
        self,
        plan: Plan,
        evaluated: Sequence[Evaluated],
        items: Mapping[str, Item],
        recorder: Recorder,
        arrivals: Arrivals,
        recover: Callable[[], Recovered],
        upcoming: Callable[[], Iterable[int]],
        note_usage: Callable[[], None],
    ) -> None:
        """``items``: by node id. ``recover``: what became known since it was called last.

        ``arrivals``: what the recorder's programs, too, are noted in. ``upcoming``: the chunks that
        are to be answered here, as far as is known. The next ones are begun before this one has
        ended, for a model that says how many requests it wants waiting. ``note_usage`` has on disk
        what the models have used so far.
        """
        self.recorder = recorder
        #: Node ids whose answer was taken from an earlier session or another worker.
        self.reused: set[str] = set()
        self._plan = plan
        self._evaluated = evaluated
        self._items = items
        #: By index of model and result: the items with which content-free prompts are asked.
        self._carriers = self._find_carriers()
        #: By index of result and identity of the model: the protocol as the model answers it.
        self._protocols: dict[tuple[int, int], Protocol] = {}
        self._recover = recover
        self._stored = Stored(plan.own_model)
        self._crashed: set[str] = set()
        #: Steps of the chunks that were begun; a step that gives True waits for an arrival.
        self._chunks: dict[int, Iterator[bool]] = {}
        #: Responses to the chunks that a model works on by itself.
        self._begun: dict[int, ArrivingResponses] = {}
        #: The chunk that a model works on only while its responses are taken.
        self._open: int | None = None
        self._outstanding = 0
        self._arrivals = arrivals
        self._upcoming = upcoming
        self._note_usage = note_usage
        # Held by the thread that takes responses: that of the tests, or the one that saves.
        self._lock = threading.Lock()
        self._hopeless: UnanswerableError | None = None

    def records(self, nodeid: str, model: Model) -> tuple[Record, ...]:
        """The records of one planned test, by sample, answering its chunk as far as needed.

        Those of its arms follow.

        Raises UnanswerableError when no item of the session can be answered.
        """
        planned = self._plan.by_nodeid[nodeid]
        with self._lock:
            if self._hopeless is not None:
                self._save_what_comes()
                raise self._hopeless
            expected = self._expected(planned, model)
            ready = self.recorder.ready.setdefault(nodeid, {})
            try:
                if planned.chunk not in self._chunks:
                    self._begin(planned.chunk, model)
                while len(ready) < len(expected):
                    self._begin_ahead(planned, model)
                    self._go_on(planned, model, expected, ready)
                self._take_available()
            except UnanswerableError as error:
                self._hopeless = error
                self._save_what_comes()
                raise
            finally:
                self._note_usage()
            del self.recorder.ready[nodeid]
        return tuple(ready[answer] for answer in expected)

    def end(self) -> None:
        """Save what is here, and take no more. What is in flight is given up."""
        self._arrivals.end()
        self._save()

    def _save(self) -> None:
        """Take what has arrived; what went wrong is raised by the next test."""
        with self._lock:
            try:
                if self._hopeless is None:
                    self._take_available()
                self._note_usage()
            except UnanswerableError as error:
                self._hopeless = error

    def _go_on(
        self,
        planned: PlannedItem,
        model: Model,
        expected: Collection[AnswerKey],
        ready: Mapping[AnswerKey, Record],
    ) -> None:
        """Take what has arrived, of all chunks, and go on with the chunk of one test by a step."""
        self._arrivals.clear()
        self._take_available()
        if len(ready) == len(expected):
            return
        waits = next(self._chunks[planned.chunk], None)
        if waits:
            self._arrivals.wait()
        elif waits is None:
            # The chunk ended before this item: something left it by an exception.
            blank = self.blank(planned.nodeid, model.name)
            error = "the answering of its chunk was broken off"
            for failed in self._blanks_of_item(planned, model, blank, error):
                if failed.answer_key not in ready:
                    self.recorder.fail(planned, failed)

    def _protocol(self, result: int, model: Model) -> Protocol:
        """The protocol of a planned result as a model can answer it. Raises UnanswerableError."""
        key = (result, id(model))
        if key not in self._protocols:
            self._protocols[key] = answerable(self._evaluated[result].protocol, model)
        return self._protocols[key]

    def _expected(self, planned: PlannedItem, model: Model) -> Collection[AnswerKey]:
        """An item's answers: its samples, and after them those of its arms."""
        protocol = self._protocol(planned.result, model)
        samples = [("", sample) for sample in range(protocol.answers_per_item)]
        return [*samples, *((arm.name, 0) for arm, _ in self._arms_of(planned, protocol))]

    def _blanks_of_item(
        self, planned: PlannedItem, model: Model, shared: Record, error: str
    ) -> Iterator[Record]:
        """The records of an item's answers as errors."""
        protocol, item = self._protocol(planned.result, model), self._items[planned.nodeid]
        for arm in (_AS_IT_IS, *(arm for arm, _ in self._arms_of(planned, protocol))):
            yield from blanks_of(shared, item, arm, protocol, error=error)

    def _find_carriers(self) -> dict[tuple[int, int], frozenset[str]]:
        asked: dict[tuple[int, int], list[Item]] = {}
        for planned in self._plan.items:
            one = self._evaluated[planned.result]
            if len(one.orders) < len(one.arms):
                group = asked.setdefault((planned.model, planned.result), [])
                group.append(self._items[planned.nodeid])
        return {group: carrier_ids(items) for group, items in asked.items()}

    def _arms_of(self, planned: PlannedItem, protocol: Protocol) -> Iterator[tuple[Arm, Item]]:
        """The arms that an item is in, each with the item as it is shown there."""
        # A generated letter says nothing of how likely the others are.
        carries = protocol.ask == "choices" and planned.item in self._carriers.get(
            (planned.model, planned.result), ()
        )
        return arms_of_item(
            self._items[planned.nodeid], self._evaluated[planned.result].arms, carries
        )

    def _begin(self, chunk: int, model: Model) -> None:
        self._chunks[chunk] = progress = self._answer_chunk(chunk, model)
        if model.prefetch:
            # To where it is prepared, and to where its requests are with the model.
            next(progress, None)
            next(progress, None)

    def _begin_ahead(self, planned: PlannedItem, model: Model) -> None:
        """Begin the next chunks while the model wants more requests than it has."""
        if self._outstanding >= model.prefetch:
            return
        for chunk in self._upcoming():
            same_model = self._plan.chunks[chunk][0].model == planned.model
            if chunk not in self._chunks and same_model:
                self._begin(chunk, model)
                if self._outstanding >= model.prefetch:
                    return

    def _take_available(self) -> None:
        """Write the responses that are here, to whichever chunk: a killed run keeps them."""
        self.recorder.decide()
        if self._begun:
            self._note_usage()  # before what was paid for, which may be lost by a kill here
        for chunk in list(self._begun):
            while chunk in self._begun and self._begun[chunk].available:
                next(self._chunks[chunk], None)

    def _save_what_comes(self) -> None:
        """Write the answers to chunks begun ahead that come before the model gives up."""
        for chunk in list(self._begun):
            with contextlib.suppress(UnanswerableError):
                while chunk in self._begun:
                    self._arrivals.clear()
                    if next(self._chunks[chunk], None):
                        self._arrivals.wait()

    def blank(self, nodeid: str, own_model: str | None = None) -> Record:
        """The record of a planned test that has no answer (yet).

        A model is called by its spec; one that a user's fixture made, by its own name.
        """
        planned = self._plan.by_nodeid[nodeid]
        one = self._evaluated[planned.result]
        spec = self._plan.models[planned.model]
        return Record(
            model=(own_model or spec) if self._plan.own_model else spec,
            benchmark=one.benchmark.name,
            scorer=one.protocol.scorer,
            item=planned.item,
            subject=planned.subject,
            outcome=Outcome.ERROR,
            answer=None,
            gold=self._items[nodeid].gold_label,
            protocol=self._plan.results[planned.result].ways[0].fingerprint,
            data=one.data_hash,
        )

    def _answer_chunk(self, chunk: int, model: Model) -> Iterator[bool]:
        """Go on by a step each time: prepared, begun, then an answer a step.

        A step gives whether nothing more can be done before something arrives.
        """
        requests = self._requests(chunk, model)
        yield False
        for together in requests:
            yield from self._ask(chunk, model, together)
        while self.recorder.waits_for(chunk):
            yield True
            self.recorder.decide()

    def _end_open_chunk(self) -> None:
        """Take all responses to the chunk that a model works on: it is to begin another."""
        while self._open is not None:
            next(self._chunks[self._open], None)

    def _requests(self, chunk: int, model: Model) -> Iterable[list[tuple[Request, Record]]]:
        """What of a chunk is to be asked, each with its blank record.

        What shows the same shots stands together, so that their prefix is read once. Answers
        that are on disk are scored again instead.
        """
        first, *_ = members = self._plan.chunks[chunk]
        one = self._evaluated[first.result]
        protocol = self._protocol(first.result, model)
        way = next(way for way in self._plan.results[first.result].ways if way.ask == protocol.ask)
        self._check_name(one, protocol, model)
        shared = replace(
            self.blank(first.nodeid, model.name),
            scorer=way.scorer,
            protocol=way.fingerprint,
            model_fingerprint=model.fingerprint,
        )
        recovered = self._recover()
        self._stored.add(recovered.records)
        self._crashed.update(recovered.crashed)
        requests: dict[Reordering, list[tuple[Request, Record]]] = {}
        for planned in members:
            if planned.nodeid in self._crashed:
                continue
            item = self._items[planned.nodeid]
            pool = one.dataset.pool.get(item.subject, ())
            for arm, arranged in ((_AS_IT_IS, item), *self._arms_of(planned, protocol)):
                try:
                    request = protocol.request(
                        arranged,
                        pool,
                        self._plan.seed,
                        one.benchmark.name,
                        None if arm is _AS_IT_IS else partial(arrange, move=arm.shots),
                    )
                except Exception as error:
                    message = f"template {protocol.template.name}: {type(error).__name__}: {error}"
                    for failed in blanks_of(shared, item, arm, protocol, error=message):
                        self.recorder.fail(planned, failed)
                    continue
                prompt = {
                    "prompt_sha256": request.prompt.sha256,
                    "dropped_shots": protocol.shots - len(request.prompt.shots),
                }
                for blank in blanks_of(shared, item, arm, protocol, **prompt):
                    if self._reuse(planned, blank):
                        continue
                    if any(blank.answer_key):
                        request = replace(request, id=item.id, arm=blank.arm, sample=blank.sample)
                    requests.setdefault(arm.shots, []).append((request, blank))
        return requests.values()

    def _reuse(self, planned: PlannedItem, record: Record) -> bool:
        """Score an answer again that is on disk, if there is one: it is what was paid for."""
        stored = self._stored.take(record)
        if stored is None:
            return False
        # Written again where something else was written about it since.
        latest = stored if self._stored.is_last(stored) else None
        response = response_of(stored, record.dropped_shots)
        self.recorder.take(planned, record, response, from_disk=True, stored=latest)
        self.reused.add(planned.nodeid)
        return True

    def _check_name(self, one: Evaluated, protocol: Protocol, model: Model) -> None:
        """Refuse a scorer that a model's limits make the same as another test's."""
        for other in self._evaluated:
            if other is one or other.benchmark.name != one.benchmark.name:
                continue
            if answerable(other.protocol, model).scorer == protocol.scorer:
                raise UnanswerableError(
                    f"model {model.name} gives only text, so {one.test} and {other.test} would"
                    f" both give the result ({one.benchmark.name}, {protocol.scorer}): run one"
                )

    def _ask(
        self,
        chunk: int,
        model: Model,
        asked: list[tuple[Request, Record]],
    ) -> Iterator[bool]:
        members = {planned.item: planned for planned in self._plan.chunks[chunk]}
        failure = "the model gave no answer"
        awaited = AwaitedAnswers(asked)
        self._end_open_chunk()
        self._outstanding += len(asked)
        at_once = False
        try:
            answers = model.answer([request for request, _ in asked])
            responses = iter(answers)
            at_once = isinstance(answers, Collection)
            if at_once:
                self.recorder.hold()
            arriving = responses if isinstance(responses, ArrivingResponses) else None
            if arriving is not None:
                self._begun[chunk] = arriving
                arriving.listen(self._arrivals.note)
                self._arrivals.save_by(self._save)
            else:
                self._open = chunk
            yield False
            while True:
                while arriving is not None and not arriving.available:
                    yield True
                response = next(responses, _END)
                if response is _END:
                    break
                if not isinstance(response, Response):
                    raise TypeError(f"the model yielded {type(response).__name__}, not a Response")
                answered = awaited.pop(response)
                if answered is None:
                    # An answer given twice, or to something that was not asked: others stand.
                    if response.id not in members:
                        failure = f"the model answered {response.id!r} instead"
                    continue
                self._outstanding -= 1
                self.recorder.take(members[response.id], answered, response)
                self.recorder.decide()
                if not awaited:
                    # Nobody would come back here, and the model go on holding what it works with.
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
            self._begun.pop(chunk, None)
            self._open = None if self._open == chunk else self._open
        for blank in awaited:
            self._outstanding -= 1
            self.recorder.fail(members[blank.item], replace(blank, error=failure))
            yield False
