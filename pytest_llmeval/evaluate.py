"""Answering: chunk by chunk, from requests to scored records on disk.

Runs where the model is: in the main process, or in every xdist worker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from typing import Any
from typing import NamedTuple

from pytest_llmeval.contentfree import arms_of
from pytest_llmeval.contentfree import carriers
from pytest_llmeval.contentfree import shown
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Record
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core import RunError
from pytest_llmeval.core import Score
from pytest_llmeval.core import mend
from pytest_llmeval.executing import Executor
from pytest_llmeval.models import Model
from pytest_llmeval.permutations import ORIGINAL
from pytest_llmeval.permutations import Arm
from pytest_llmeval.permutations import Move
from pytest_llmeval.permutations import arrange
from pytest_llmeval.permutations import order
from pytest_llmeval.plan import Plan
from pytest_llmeval.plan import PlannedItem
from pytest_llmeval.plan import Way
from pytest_llmeval.plan import arm_fingerprint
from pytest_llmeval.runs.records import RecordWriter
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.scorers.execution import reference_program
from pytest_llmeval.scorers.execution import score_of
from pytest_llmeval.scoring import filled_in
from pytest_llmeval.scoring import in_original_order
from pytest_llmeval.scoring import read
from pytest_llmeval.scoring import response_of
from pytest_llmeval.scoring import reusable
from pytest_llmeval.scoring import stored_key
from pytest_llmeval.suite import Evaluated

_AS_IT_IS = Arm(ORIGINAL)


class Unanswerable(Exception):
    """The whole session cannot go on: no model, or no place to write the records."""


class Recovered(NamedTuple):
    """What others left behind: records of an earlier session or of a worker that died, and the
    node ids of tests that killed their worker and are not to be asked again in this session.
    """

    records: Iterable[Record] = ()
    crashed: Iterable[str] = ()


@dataclass(frozen=True)
class _Undecided:
    """A response of which a scorer waits for programs to end: program id → scorer."""

    planned: PlannedItem
    blank: Record
    response: Response
    verdicts: dict[str, Score]
    waiting: dict[str, str]
    from_disk: bool
    stored: Record | None


class Evaluator:
    """Finds the answer of one test at a time, asking the model for whole chunks.

    A chunk is asked for when its first test is set up. Responses are taken from the model
    only until the wanted one has come, so records reach the disk as they are made and a slow
    item holds up nobody but itself.
    """

    def __init__(
        self,
        plan: Plan,
        evaluated: Iterable[Evaluated],
        items: dict[str, Item],
        writer: RecordWriter,
        recover: Callable[[], Recovered],
        upcoming: Callable[[], Iterable[int]],
        open_sandbox: Callable[[], Sandbox],
    ) -> None:
        """``items``: by node id. ``recover``: what became known since it was called last.

        ``upcoming``: the chunks that are to be answered here, as far as is known. The next ones
        are begun before this one has ended, for a model that says how many requests it wants
        waiting. ``open_sandbox`` is called when a program is to be run.
        """
        #: What is odd about the sandbox, to be told once.
        self.warnings: list[str] = []
        #: Node ids whose answer was taken from an earlier session or another worker.
        self.reused: set[str] = set()
        self._plan = plan
        self._evaluated = list(evaluated)
        self._items = items
        #: By index of model and result: the items with which content-free prompts are asked.
        self._carriers = self._find_carriers()
        self._writer = writer
        self._recover = recover
        self._stored: dict[tuple[Any, ...], Record] = {}
        self._last: dict[tuple[Any, ...], Record] = {}
        self._crashed: set[str] = set()
        self._chunks: dict[int, Iterator[None]] = {}
        #: Responses to the chunks that a model works on, where it says whether there are any.
        self._begun: dict[int, Any] = {}
        self._outstanding = 0
        self._upcoming = upcoming
        self._programs = Executor(open_sandbox)
        self._undecided: dict[str, _Undecided] = {}
        #: Planned results whose reference solutions were run.
        self._checked: set[int] = set()
        self._ready: dict[str, dict[int, Record]] = {}
        self._written: dict[tuple[str, int], Record] = {}
        self._others: dict[str, dict[int, tuple[Record, ...]]] = {}
        self._hopeless: Unanswerable | None = None

    def records(self, nodeid: str, model: Model) -> tuple[Record, ...]:
        """The records of one planned test, by sample, answering its chunk as far as needed.

        Those of a permutation audit's arms follow; their ``order`` is set.

        Raises Unanswerable when no item of the session can be answered.
        """
        if self._hopeless is not None:
            raise self._hopeless
        planned = self._plan.by_nodeid[nodeid]
        expected = self._expected(planned, model)
        ready = self._ready.setdefault(nodeid, {})
        try:
            if planned.chunk not in self._chunks:
                self._begin(planned.chunk, model)
            while len(ready) < len(expected):
                self._begin_ahead(planned, model)
                if next(self._chunks[planned.chunk], StopIteration) is StopIteration:
                    # The chunk ended before this item: something left it by an exception.
                    blank = replace(
                        self.blank(nodeid, model.name),
                        error="the answering of its chunk was broken off",
                    )
                    for sample in expected - ready.keys():
                        self._finish(planned, replace(blank, sample=sample))
            self._save_available()
        except Unanswerable as error:
            self._hopeless = error
            self._save_what_comes()
            raise
        del self._ready[nodeid]
        return tuple(ready[sample] for sample in sorted(expected))

    def _expected(self, planned: PlannedItem, model: Model) -> set[int]:
        """The numbers of an item's answers: its samples, and after them those of its arms."""
        protocol = answerable(self._evaluated[planned.result].protocol, model)
        moved = (number for number, _, _ in self._arms_of(planned, protocol))
        return {*range(protocol.answers_per_item), *moved}

    def _find_carriers(self) -> dict[tuple[int, int], frozenset[str]]:
        asked: dict[tuple[int, int], list[Item]] = {}
        for planned in self._plan.items:
            one = self._evaluated[planned.result]
            if len(one.orders) < len(one.arms):
                group = asked.setdefault((planned.model, planned.result), [])
                group.append(self._items[planned.nodeid])
        return {group: carriers(items) for group, items in asked.items()}

    def _arms_of(self, planned: PlannedItem, protocol: Protocol) -> Iterator[tuple[int, Arm, Item]]:
        """The arms that an item is in, numbered, with the item as each shows it."""
        # A generated letter says nothing of how likely the others are.
        carries = protocol.ask == "choices" and planned.item in self._carriers.get(
            (planned.model, planned.result), ()
        )
        return arms_of(self._items[planned.nodeid], self._evaluated[planned.result].arms, carries)

    def _begin(self, chunk: int, model: Model) -> None:
        self._chunks[chunk] = progress = self._answer_chunk(chunk, model)
        if hasattr(model, "wanted"):
            # To where it is prepared, and to where its requests are with the model.
            next(progress, None)
            next(progress, None)

    def _begin_ahead(self, planned: PlannedItem, model: Model) -> None:
        """Begin the next chunks while the model wants more requests than it has."""
        wanted = getattr(model, "wanted", 0)
        if self._outstanding >= wanted:
            return
        for chunk in self._upcoming():
            same_model = self._plan.chunks[chunk][0].model == planned.model
            if chunk not in self._chunks and same_model:
                self._begin(chunk, model)
                if self._outstanding >= wanted:
                    return

    def _save_available(self) -> None:
        """Write the answers to chunks begun ahead that are here: a killed run keeps them."""
        for chunk, responses in list(self._begun.items()):
            while chunk in self._begun and responses.available:
                next(self._chunks[chunk], None)

    def _save_what_comes(self) -> None:
        """Write the answers to chunks begun ahead that come before the model gives up."""
        for chunk in list(self._begun):
            with contextlib.suppress(Unanswerable):
                for _ in self._chunks[chunk]:
                    pass

    def settle(self, nodeid: str, record: Record) -> None:
        """Write a test's final record, unless the disk says the same already."""
        written = self._written.pop((nodeid, record.sample), None)
        if written is None or (written.outcome, written.left_out, written.error) != (
            record.outcome,
            record.left_out,
            record.error,
        ):
            known = self._others.setdefault(nodeid, {})
            # A body that overrules the scorer says nothing about other scorers.
            others = known.get(record.sample) or self._unscored(
                self._plan.by_nodeid[nodeid].result, record
            )
            known[record.sample] = tuple(
                replace(other, left_out=record.left_out)
                if record.outcome is not Outcome.ERROR
                else replace(other, outcome=record.outcome, error=record.error)
                for other in others
            )
            self._save(record, known[record.sample])

    def close(self) -> None:
        """Give up what runs in the sandbox, and remove it."""
        self._programs.close()

    def others(self, nodeid: str, moved: bool = False) -> dict[str, list[Record]]:
        """Scorer → records by sample, of the other scorers of a settled test.

        With ``moved``, those of a permutation audit's arms, too.
        """
        found: dict[str, list[Record]] = {}
        for _, records in sorted(self._others.get(nodeid, {}).items()):
            for record in records:
                if moved or not record.order:
                    found.setdefault(record.scorer, []).append(record)
        return found

    def _save(self, record: Record, others: Iterable[Record]) -> None:
        try:
            self._writer.append(record, *others)
        except RunError as error:
            raise Unanswerable(str(error)) from None

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

    def _answer_chunk(self, chunk: int, model: Model) -> Iterator[None]:
        members = {planned.item: planned for planned in self._plan.chunks[chunk]}
        result = self._plan.chunks[chunk][0].result
        one = self._evaluated[result]
        protocol = answerable(one.protocol, model)
        way = next(way for way in self._plan.results[result].ways if way.ask == protocol.ask)
        self._check_name(one, protocol, model)
        shared = replace(
            self.blank(self._plan.chunks[chunk][0].nodeid, model.name),
            scorer=way.scorer,
            protocol=way.fingerprint,
            model_fingerprint=model.fingerprint,
        )
        recovered = self._recover()
        for record in recovered.records:
            # An error that was met later takes nothing back of an answer that was paid for.
            if record.logprobs or record.text is not None:
                self._stored[stored_key(record)] = record
            if not record.response_of:
                self._last[self._about(record)] = record
        self._crashed.update(recovered.crashed)
        requests: dict[Move, list[tuple[Request, Record]]] = {}
        for name, planned in members.items():
            if planned.nodeid in self._crashed:
                continue
            item = self._items[planned.nodeid]
            record = replace(shared, item=name, subject=item.subject, gold=item.gold_label)
            pool = one.dataset.pool.get(item.subject, ())
            for number, arm, arranged in (
                (0, _AS_IT_IS, item),
                *self._arms_of(planned, protocol),
            ):
                blanks = _blanks(record, item, number, arm, protocol)
                try:
                    request = protocol.request(
                        arranged,
                        pool,
                        self._plan.seed,
                        one.benchmark.name,
                        partial(arrange, move=arm.shots) if number else None,
                    )
                except Exception as error:
                    message = f"template {protocol.template.name}: {type(error).__name__}: {error}"
                    for empty in blanks:
                        self._finish(planned, replace(empty, error=message))
                    continue
                for empty in blanks:
                    asked = replace(
                        empty,
                        prompt_sha256=request.prompt.sha256,
                        dropped_shots=protocol.shots - len(request.prompt.shots),
                    )
                    if not self._reuse(planned, asked):
                        moved = number > 0
                        sampled = replace(request, id=name, sample=asked.sample, moved=moved)
                        requests.setdefault(arm.shots, []).append((sampled, asked))
        yield
        # Requests that show the same shots go together: their prefix is read once.
        for together in requests.values():
            yield from self._ask(chunk, model, together, members)
        while any(one.planned.chunk == chunk for one in self._undecided.values()):
            self._decide(wait=True)
            yield

    def _reuse(self, planned: PlannedItem, record: Record) -> bool:
        """Score an answer again that is on disk, if there is one: it is what was paid for."""
        stored = self._stored.pop(stored_key(record), None)
        if stored is None or not reusable(stored, record):
            return False
        # Written again where something else was written about it since.
        latest = self._last.get(self._about(record)) is stored
        response = response_of(stored, record.dropped_shots)
        self._take(planned, record, response, from_disk=True, stored=stored if latest else None)
        self.reused.add(planned.nodeid)
        return True

    def _about(self, record: Record) -> tuple[Any, ...]:
        """Which answer a record is, whatever a user's own model was called when it was lost."""
        model = "" if self._plan.own_model else record.model
        return (model, record.benchmark, record.item, record.sample)

    def _check_name(self, one: Evaluated, protocol: Protocol, model: Model) -> None:
        """Refuse a scorer that a model's limits make the same as another test's."""
        for other in self._evaluated:
            if other is one or other.benchmark.name != one.benchmark.name:
                continue
            if answerable(other.protocol, model).scorer == protocol.scorer:
                raise Unanswerable(
                    f"model {model.name} gives only text, so {one.test} and {other.test} would"
                    f" both give the result ({one.benchmark.name}, {protocol.scorer}): run one"
                )

    def _ask(
        self,
        chunk: int,
        model: Model,
        asked: list[tuple[Request, Record]],
        members: dict[str, PlannedItem],
    ) -> Iterator[None]:
        failure = "the model gave no answer"
        # By item and sample, in the order asked: of this call alone, so that an answer that does
        # not say which it is (a function's) is to what was asked in it.
        blank: dict[str, dict[int, Record]] = {}
        for request, record in asked:
            blank.setdefault(request.id, {})[request.sample] = record
        self._outstanding += len(asked)
        try:
            responses = iter(model.answer([request for request, _ in asked]))
            if hasattr(responses, "available"):
                self._begun[chunk] = responses
            yield
            for response in responses:
                if not isinstance(response, Response):
                    raise TypeError(f"the model yielded {type(response).__name__}, not a Response")
                waiting = blank.get(response.id, {})
                sample = next(iter(waiting), 0) if response.sample is None else response.sample
                answered = waiting.pop(sample, None)
                if answered is None:
                    # An answer given twice, or to something that was not asked: others stand.
                    if response.id not in members:
                        failure = f"the model answered {response.id!r} instead"
                    continue
                self._outstanding -= 1
                self._take(members[response.id], answered, response)
                self._decide()
                if not any(blank.values()):
                    # Nobody would come back here, and the model go on holding what it works with.
                    if callable(close := getattr(responses, "close", None)):
                        close()
                    break
                yield
        except (ConfigError, ModelError) as error:
            raise Unanswerable(f"model {model.name}: {error}") from None
        except Unanswerable:
            raise
        except Exception as error:
            failure = mend(f"{type(error).__name__}: {error}")
        finally:
            self._begun.pop(chunk, None)
        for item, unanswered in blank.items():
            for record in unanswered.values():
                self._outstanding -= 1
                self._finish(members[item], replace(record, error=failure))
                yield

    def _finish(self, planned: PlannedItem, record: Record) -> None:
        """Save and keep the record of an error."""
        others = self._unscored(planned.result, record)
        self._save(record, others)
        self._keep(planned, record, record, others)

    def _keep(
        self,
        planned: PlannedItem,
        record: Record,
        written: Record | None,
        others: tuple[Record, ...],
    ) -> None:
        self._ready.setdefault(planned.nodeid, {})[record.sample] = record
        if written is not None:
            self._written[planned.nodeid, record.sample] = written
        if others:
            self._others.setdefault(planned.nodeid, {})[record.sample] = others

    def _take(
        self,
        planned: PlannedItem,
        blank: Record,
        response: Response,
        from_disk: bool = False,
        stored: Record | None = None,
    ) -> None:
        """Score a response under all scorers; where programs are to be run, begin with that.

        ``from_disk``: the response is there already; ``stored`` is the record, if it is the last
        word about it.
        """
        item = self._items[planned.nodeid]
        # What a scorer draws is drawn for the sample, and neither a function nor a record says it.
        response = replace(response, sample=blank.sample)
        if blank.order:
            arm = self._evaluated[planned.result].arms[blank.sample - 1]
            item = shown(item, arm) or item
        scorers = (blank.scorer, *(one.scorer for one in self._unscored(planned.result, blank)))
        verdicts: dict[str, Score] = {}
        waiting: dict[str, str] = {}
        for scorer in scorers:
            try:
                made = read(item, response, scorer)
            except ModelError as error:
                # What was answered is kept: to be scored when the scorer has its model.
                unscored = Score(Outcome.ERROR, error=f"scorer {scorer}: {error}")
                if not from_disk:
                    self._save(filled_in(blank, response, unscored), ())
                raise Unanswerable(unscored.error) from None
            if isinstance(made, Score):
                verdicts[scorer] = in_original_order(made, blank.order)
            else:
                program = replace(made, id=f"{planned.nodeid} {blank.sample} {scorer}")
                waiting[program.id] = scorer
                self._executor(planned).submit(program)
        scoring = sum(score.seconds for score in verdicts.values())
        if scoring and response.seconds is not None and not from_disk:
            # Part of what the answer cost, beside answers that are read without a model.
            response = replace(response, seconds=response.seconds + scoring)
        one = _Undecided(planned, blank, response, verdicts, waiting, from_disk, stored)
        if not waiting:
            self._enter(one)
            return
        for name in waiting:
            self._undecided[name] = one
        if not from_disk:
            # A killed run keeps the response, which is paid for; its programs are run again then.
            unscored = Score(Outcome.ERROR, error="its program has not been run")
            self._save(filled_in(blank, response, unscored), ())

    def _decide(self, wait: bool = False) -> None:
        """Enter responses whose programs have all ended; with ``wait``, wait for one program."""
        if not self._undecided:
            return
        try:
            executions = self._programs.finished(wait)
        except ConfigError as error:
            raise Unanswerable(str(error)) from None
        except Exception as error:
            raise Unanswerable(f"sandbox: {type(error).__name__}: {error}") from None
        for execution in executions:
            one = self._undecided.pop(execution.id)
            one.verdicts[one.waiting.pop(execution.id)] = score_of(execution)
            if not one.waiting:
                self._enter(one)

    def _executor(self, planned: PlannedItem) -> Executor:
        """The executor, which has seen that the benchmark's own solutions pass."""
        if planned.result not in self._checked:
            self._checked.add(planned.result)
            dataset = self._evaluated[planned.result].dataset
            solved = [item for item in dataset.items if "solution" in item.fields]
            try:
                failing = self._programs.check([reference_program(item) for item in solved])
            except ConfigError as error:
                raise Unanswerable(str(error)) from None
            self.warnings += failing
        return self._programs

    def _enter(self, one: _Undecided) -> None:
        """Save and keep a response whose scores are all known."""
        scored = filled_in(one.blank, one.response, one.verdicts[one.blank.scorer])
        others = tuple(
            replace(
                filled_in(other, one.response, one.verdicts[other.scorer]),
                text=None,
                reasoning=None,
                logprobs=(),
                seconds=None,
            )
            for other in self._unscored(one.planned.result, scored)
        )
        if one.from_disk:
            self._keep(one.planned, scored, one.stored, others)
        else:
            self._save(scored, others)
            self._keep(one.planned, scored, scored, others)

    def _unscored(self, result: int, record: Record) -> tuple[Record, ...]:
        """What becomes of a record's response under other scorers, without a response."""
        ways = self._plan.results[result].ways
        arm = self._evaluated[result].arms[record.sample - 1].name if record.order else ""

        def of_arm(way: Way) -> str:
            return arm_fingerprint(way.fingerprint, arm) if arm else way.fingerprint

        if record.protocol != of_arm(ways[0]):
            return ()  # a model that gives only text has one way to score it
        return tuple(
            replace(
                record,
                scorer=other.scorer,
                protocol=of_arm(other.ways[0]),
                response_of=record.scorer,
                answer=None,
                text=None,
                reasoning=None,
                logprobs=(),
                prompt_sha256="",
                prompt_tokens=None,
                completion_tokens=None,
                seconds=None,
                tie=False,
                detail="",
            )
            for other in self._plan.other_scorers(result)
        )


def _blanks(record: Record, item: Item, number: int, arm: Arm, protocol: Protocol) -> list[Record]:
    """The blank records of an item in an arm that it is in.

    As it is (number 0) it has one a sample, in every other arm one.
    """
    if number == 0:
        return [replace(record, sample=sample) for sample in range(protocol.answers_per_item)]
    positions = order(item, arm.item) or ()
    moved = replace(
        record,
        sample=number,
        protocol=arm_fingerprint(record.protocol, arm.name),
        order="".join(LABELS[index] for index in positions),
    )
    # Nothing is right where nothing was asked.
    return [moved if arm.instead is None else replace(moved, gold="")]


def answerable(protocol: Protocol, model: Model) -> Protocol:
    """The protocol as this model can answer it.

    A model that gives only text is asked to generate the letter instead, which is another
    scorer and another fingerprint. Raises Unanswerable where there is no such way.
    """
    if protocol.ask in model.asks:
        return protocol
    if "text" in model.asks:
        return protocol.with_generation()
    raise Unanswerable(
        f"model {model.name} compares choices only; protocol {protocol.name!r} needs it to"
        " generate text"
    )
