"""From responses to records: scored under every scorer, on disk at once, kept for their tests."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.bias.arms import Arm
from pytest_llmeval.bias.arms import option_order
from pytest_llmeval.bias.content_free import item_in_arm
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import LlmevalError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Record
from pytest_llmeval.core import Response
from pytest_llmeval.core import RunError
from pytest_llmeval.core import Score
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.core.record import AnswerKey
from pytest_llmeval.evaluation.code_executor import Executor
from pytest_llmeval.evaluation.code_executor import Executors
from pytest_llmeval.evaluation.code_executor import Scored
from pytest_llmeval.evaluation.scoring import filled_in
from pytest_llmeval.evaluation.scoring import for_other_scorers
from pytest_llmeval.evaluation.scoring import in_original_order
from pytest_llmeval.evaluation.scoring import read
from pytest_llmeval.evaluation.suite import Evaluated
from pytest_llmeval.models import Model
from pytest_llmeval.scorers import Jobs
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.storage.records import RecordWriter


class UnanswerableError(LlmevalError):
    """No further item can be answered: no model, or no place to write the records."""


@dataclass(frozen=True)
class _Undecided:
    """A response of which a scorer waits for jobs to end: job id → scorer."""

    planned: PlannedItem
    blank: Record
    response: Response
    verdicts: dict[str, Score]
    waiting: dict[str, str]
    from_disk: bool
    stored: Record | None


def _settled(record: Record) -> tuple[object, ...]:
    """What a test, or a later version of the scorer, may change in a record on disk."""
    return record.outcome, record.left_out, record.error, record.all_tied


class Recorder:
    """Scores responses and writes what becomes of them, as they come.

    A response is on disk when ``take`` returns, scored or with its jobs still to be run, unless it
    is held (``hold``).
    """

    def __init__(
        self,
        plan: Plan,
        evaluated: Sequence[Evaluated],
        items: Mapping[str, Item],
        writer: RecordWriter,
        executors: Executors,
    ) -> None:
        """``items``: by node id."""
        #: By node id and answer: records that their test has not asked for yet.
        self.ready: dict[str, dict[AnswerKey, Record]] = {}
        #: What is odd about the sandbox, to be told once.
        self.warnings: list[str] = []
        self._plan = plan
        self._evaluated = evaluated
        self._items = items
        self._writer = writer
        self._executors = executors
        #: By planned result and scorer whose reference solutions were run: items that cannot be
        #: scored here, with the reason.
        self._unfit: dict[tuple[int, str], Mapping[str, str]] = {}
        #: By id of a job: what waits for it.
        self._undecided: dict[str, _Undecided] = {}
        #: By node id and answer: the last record on disk, and those of other scorers.
        self._written: dict[tuple[str, AnswerKey], Record] = {}
        self._others: dict[str, dict[AnswerKey, tuple[Record, ...]]] = {}
        #: Records that are written together, while such come; None otherwise.
        self._held: list[Record] | None = None

    def take(
        self,
        planned: PlannedItem,
        blank: Record,
        response: Response,
        from_disk: bool = False,
        stored: Record | None = None,
    ) -> None:
        """Score a response under all scorers; where jobs are to be run, begin with that.

        ``from_disk``: the response is there already; ``stored`` is the record, if it is the last
        word about it.
        """
        item = self._items[planned.nodeid]
        drawn_for = blank.sample
        if blank.arm:
            place, arm = self._evaluated[planned.result].arm(blank.arm)
            item = item_in_arm(item, arm) or item
            drawn_for = 1 + place
        if response.sample != drawn_for:
            # What a scorer draws is drawn for the sample, which a function or a record leaves out,
            # or for the arm's place, so that every order has a draw of its own.
            response = replace(response, sample=drawn_for)
        others = for_other_scorers(self._plan, planned.result, blank)
        verdicts: dict[str, Score] = {}
        waiting: dict[str, str] = {}
        submitted: list[tuple[Executor, Scored]] = []
        for scorer in (blank.scorer, *(one.scorer for one in others)):
            try:
                made = read(item, response, scorer)
            except ModelError as error:
                # What was answered is kept: to be scored when the scorer has its model.
                unscored = Score(Outcome.ERROR, error=f"scorer {scorer}: {error}")
                if not from_disk:
                    self._save(filled_in(blank, response, unscored), ())
                raise UnanswerableError(unscored.error) from None
            jobs = get_scorer(scorer).jobs
            if isinstance(made, Score) or jobs is None:
                assert isinstance(made, Score)
                verdicts[scorer] = in_original_order(made, blank.order)
                continue
            executor = self._executors.of(jobs.kind)
            unfit = self._check(planned.result, scorer, jobs, executor).get(item.id)
            if unfit is not None:
                verdicts[scorer] = Score(Outcome.ERROR, error=unfit)
                continue
            job = replace(made, id=f"{planned.nodeid} {blank.arm} {blank.sample} {scorer}")
            waiting[job.id] = scorer
            submitted.append((executor, Scored(job, partial(jobs.score_of, item, job))))
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
        for executor, scored in submitted:
            executor.submit(scored)
        if not from_disk:
            # A killed run keeps the response, which is paid for; its jobs are run then.
            unscored = Score(Outcome.ERROR, error="its program has not been run")
            self._save(filled_in(blank, response, unscored), ())

    def fail(self, planned: PlannedItem, record: Record) -> None:
        """Save and keep the record of an error."""
        others = for_other_scorers(self._plan, planned.result, record)
        self._save(record, others)
        self._keep(planned, record, record, others)

    def waits_for(self, chunk: int) -> bool:
        """Whether jobs of a chunk's responses are still to end."""
        return any(one.planned.chunk == chunk for one in self._undecided.values())

    def decide(self) -> None:
        """Enter responses whose jobs have all ended."""
        if not self._undecided:
            return
        try:
            ended = self._executors.finished()
        except ConfigError as error:
            raise UnanswerableError(str(error)) from None
        except Exception as error:
            raise UnanswerableError(f"sandbox: {type(error).__name__}: {error}") from None
        for name, score in ended:
            one = self._undecided.pop(name)
            one.verdicts[one.waiting.pop(name)] = score
            if not one.waiting:
                self._enter(one)

    def settle(self, nodeid: str, record: Record) -> None:
        """Write a test's final record, unless the disk says the same already."""
        written = self._written.pop((nodeid, record.answer_key), None)
        if written is None or _settled(written) != _settled(record):
            known = self._others.setdefault(nodeid, {})
            # A body that overrules the scorer says nothing about other scorers.
            others = known.get(record.answer_key) or for_other_scorers(
                self._plan, self._plan.by_nodeid[nodeid].result, record
            )
            known[record.answer_key] = tuple(
                replace(other, left_out=record.left_out)
                if record.outcome is not Outcome.ERROR
                else replace(other, outcome=record.outcome, error=record.error)
                for other in others
            )
            self._save(record, known[record.answer_key])

    def hold(self) -> None:
        """Write nothing until ``release``: responses are taken that a model gave all at once."""
        self._held = []

    def release(self) -> None:
        """Write all that was held, in one piece. Raises UnanswerableError."""
        held, self._held = self._held, None
        if held:
            self._write(held)

    def close(self) -> None:
        """Give up what runs in the sandbox, remove it, and close the file of records."""
        self._executors.close()
        self._writer.close()

    def _check(self, result: int, scorer: str, jobs: Jobs, executor: Executor) -> Mapping[str, str]:
        """Items that cannot be scored here, once it is seen that the benchmark's solutions pass."""
        if (result, scorer) not in self._unfit:
            if executor.kind.costly:
                items = {
                    one.item: self._items[one.nodeid]
                    for one in self._plan.items
                    if one.result == result
                }
            else:
                items = {item.id: item for item in self._evaluated[result].dataset.items}
            references = {
                name: Scored(job := jobs.reference(item), partial(jobs.score_of, item, job))
                for name, item in items.items()
                if "solution" in item.fields
            }
            try:
                failing = executor.check(references)
            except (ConfigError, RunError) as error:
                raise UnanswerableError(str(error)) from None
            lines = [
                f"reference solution {name}: {why} in this sandbox" for name, why in failing.items()
            ]
            self.warnings += [line for line in lines if line not in self.warnings]
            self._unfit[result, scorer] = (
                {name: f"its own solution fails here: {why}" for name, why in failing.items()}
                if executor.kind.costly
                else {}
            )
        return self._unfit[result, scorer]

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
            for other in for_other_scorers(self._plan, one.planned.result, scored)
        )
        if one.from_disk:
            self._keep(one.planned, scored, one.stored, others)
        else:
            self._save(scored, others)
            self._keep(one.planned, scored, scored, others)

    def _keep(
        self,
        planned: PlannedItem,
        record: Record,
        written: Record | None,
        others: tuple[Record, ...],
    ) -> None:
        answer = record.answer_key
        self.ready.setdefault(planned.nodeid, {})[answer] = record
        if written is not None:
            self._written[planned.nodeid, answer] = written
        if others:
            self._others.setdefault(planned.nodeid, {})[answer] = others

    def _save(self, record: Record, others: Iterable[Record]) -> None:
        if self._held is None:
            self._write([record, *others])
        else:
            self._held += [record, *others]

    def _write(self, records: Iterable[Record]) -> None:
        try:
            self._writer.append(*records)
        except RunError as error:
            raise UnanswerableError(str(error)) from None


def blanks_of(
    shared: Record, item: Item, arm: Arm, protocol: Protocol, **about: Any
) -> list[Record]:
    """The blank records of an item in an arm that it is in.

    In the original order it has one a sample, in every other arm one. ``shared``: the fields that all
    items of the chunk have in common; ``about``: further fields of this one.
    """
    about |= {"item": item.id, "subject": item.subject, "gold": item.gold_label}
    if arm.name == ORIGINAL:
        return [replace(shared, sample=n, **about) for n in range(protocol.answers_per_item)]
    if arm.instead is not None:
        about["gold"] = ""  # nothing is right where nothing was asked
    positions = option_order(item, arm.item) or ()
    return [
        replace(
            shared,
            arm=arm.name,
            protocol=arm_fingerprint(shared.protocol, arm.name),
            order="".join(LABELS[index] for index in positions),
            **about,
        )
    ]


def answerable(protocol: Protocol, model: Model) -> Protocol:
    """The protocol as this model can answer it.

    A model that gives only text is asked to generate the letter instead, which is another
    scorer and another fingerprint. Raises UnanswerableError where there is no such way.
    """
    if protocol.ask in model.asks:
        return protocol
    if "text" in model.asks:
        return protocol.with_generation()
    raise UnanswerableError(
        f"model {model.name} compares choices only; protocol {protocol.name!r} needs it to"
        " generate text"
    )
