"""From responses to records: scored by every scorer, written at once, held for their tests."""

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
from pytest_llmeval.core import Request
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
from pytest_llmeval.evaluation.order_tests import OrderTestPlan
from pytest_llmeval.evaluation.scoring import for_other_scorers
from pytest_llmeval.evaluation.scoring import in_original_order
from pytest_llmeval.evaluation.scoring import score_orders
from pytest_llmeval.evaluation.scoring import score_response
from pytest_llmeval.evaluation.scoring import scored_record
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.models import Model
from pytest_llmeval.scorers import Jobs
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.storage.records import RecordWriter


class UnanswerableError(LlmevalError):
    """No further item can be answered: the model failed, or records cannot be written."""


@dataclass(frozen=True)
class _PendingExecution:
    """A response whose jobs are running."""

    planned: PlannedItem
    blank: Record
    response: Response
    #: Scorer → its score.
    verdicts: dict[str, Score]
    #: Id of a running program → its scorer.
    waiting: dict[str, str]
    from_disk: bool
    stored: Record | None


def _final_fields(record: Record) -> tuple[object, ...]:
    """Return the fields that a test, or a later version of the scorer, may change on disk."""
    return record.outcome, record.left_out, record.error, record.all_tied


class Recorder:
    """Scorer of responses that writes a record of each as it arrives.

    A response is on disk when ``take`` returns, scored or with its jobs pending, unless writing is
    suspended (``hold``).
    """

    def __init__(
        self,
        plan: Plan,
        evaluations: Sequence[Evaluation],
        items: Mapping[str, Item],
        writer: RecordWriter,
        executors: Executors,
    ) -> None:
        """Create a recorder; ``items``: by node id."""
        #: By node id and answer key: records that their test has not requested yet.
        self.ready: dict[str, dict[AnswerKey, Record]] = {}
        #: Warnings about the sandbox, each to be printed once.
        self.warnings: list[str] = []
        self._plan = plan
        self._evaluations = evaluations
        self._items = items
        self._writer = writer
        self._executors = executors
        #: (planned result, scorer) whose reference solutions were run → items that this machine
        #: cannot score, with the reason.
        self._unfit: dict[tuple[int, str], Mapping[str, str]] = {}
        #: Job id → the response that waits for it.
        self._pending: dict[str, _PendingExecution] = {}
        #: By node id and answer key: the last record on disk, and the records of other scorers.
        self._written: dict[tuple[str, AnswerKey], Record] = {}
        self._others: dict[str, dict[AnswerKey, tuple[Record, ...]]] = {}
        #: Records held back by `hold`; None if records are written immediately.
        self._held: list[Record] | None = None

    def take(
        self,
        planned: PlannedItem,
        blank: Record,
        response: Response,
        from_disk: bool = False,
        stored: Record | None = None,
    ) -> None:
        """Score a response by all scorers; submit its jobs, if there are any.

        ``from_disk``: the response is on disk already; ``stored``: its record, if no later record
        replaces it. Raises UnanswerableError if a scorer's model cannot be used.
        """
        if blank.order_test:
            verdict = {blank.scorer: score_orders(blank, response)}
            self._commit(
                _PendingExecution(planned, blank, response, verdict, {}, from_disk, stored)
            )
            return
        item = self._items[planned.nodeid]
        sample = blank.sample
        if blank.arm:
            place, arm = self._evaluations[planned.result].arm(blank.arm)
            item = item_in_arm(item, arm) or item
            sample = 1 + place
        if response.sample != sample:
            # Tie-breaking depends on the sample index, which custom models and stored records omit,
            # or on the index of the arm, so that it is independent in every order.
            response = replace(response, sample=sample)
        others = for_other_scorers(self._plan, planned.result, blank)
        verdicts: dict[str, Score] = {}
        waiting: dict[str, str] = {}
        submitted: list[tuple[Executor, Scored]] = []
        for scorer in (blank.scorer, *(other.scorer for other in others)):
            try:
                result = score_response(item, response, scorer)
            except ModelError as error:
                # The response is saved: it can be scored once the scorer's model is available.
                unscored = Score(Outcome.ERROR, error=f"scorer {scorer}: {error}")
                if not from_disk:
                    self._save(scored_record(blank, response, unscored), ())
                raise UnanswerableError(unscored.error) from None
            jobs = get_scorer(scorer).jobs
            if isinstance(result, Score) or jobs is None:
                assert isinstance(result, Score)
                verdicts[scorer] = in_original_order(result, blank.order)
                continue
            executor = self._executors.of(jobs.kind)
            unfit = self._check(planned.result, scorer, jobs, executor).get(item.id)
            if unfit is not None:
                verdicts[scorer] = Score(Outcome.ERROR, error=unfit)
                continue
            job = replace(result, id=f"{planned.nodeid} {blank.arm} {blank.sample} {scorer}")
            waiting[job.id] = scorer
            submitted.append((executor, Scored(job, partial(jobs.score_of, item, job))))
        scoring = sum(score.seconds for score in verdicts.values())
        if scoring and response.seconds is not None and not from_disk:
            # The time of scoring by a model is part of the cost of the answer.
            response = replace(response, seconds=response.seconds + scoring)
        pending = _PendingExecution(planned, blank, response, verdicts, waiting, from_disk, stored)
        if not waiting:
            self._commit(pending)
            return
        for name in waiting:
            self._pending[name] = pending
        for executor, scored in submitted:
            executor.submit(scored)
        if not from_disk:
            # A killed run keeps the response; its jobs are run when it is resumed.
            unscored = Score(Outcome.ERROR, error="its program has not been run")
            self._save(scored_record(blank, response, unscored), ())

    def fail(self, planned: PlannedItem, record: Record) -> None:
        """Write the record of an error and hold it for its test."""
        others = for_other_scorers(self._plan, planned.result, record)
        self._save(record, others)
        self._remember(planned, record, record, others)

    def waits_for(self, chunk: int) -> bool:
        """Return true while jobs of a chunk's responses are running."""
        return any(pending.planned.chunk == chunk for pending in self._pending.values())

    def collect_executions(self) -> None:
        """Commit responses whose jobs have all finished. Raises UnanswerableError."""
        if not self._pending:
            return
        try:
            ended = self._executors.finished()
        except ConfigError as error:
            raise UnanswerableError(str(error)) from None
        except Exception as error:
            raise UnanswerableError(f"sandbox: {type(error).__name__}: {error}") from None
        for name, score in ended:
            pending = self._pending.pop(name)
            pending.verdicts[pending.waiting.pop(name)] = score
            if not pending.waiting:
                self._commit(pending)

    def write_final(self, nodeid: str, record: Record) -> None:
        """Write the final record of a test, unless the same is on disk already."""
        written = self._written.pop((nodeid, record.answer_key), None)
        if written is None or _final_fields(written) != _final_fields(record):
            by_answer = self._others.setdefault(nodeid, {})
            # A test body that overrules its scorer does not affect other scorers.
            others = by_answer.get(record.answer_key) or for_other_scorers(
                self._plan, self._plan.by_nodeid[nodeid].result, record
            )
            by_answer[record.answer_key] = tuple(
                replace(other, left_out=record.left_out)
                if record.outcome is not Outcome.ERROR
                else replace(other, outcome=record.outcome, error=record.error)
                for other in others
            )
            self._save(record, by_answer[record.answer_key])

    def hold(self) -> None:
        """Suspend writing until ``release``, for responses that a model returns all at once."""
        self._held = []

    def release(self) -> None:
        """Write the records held back, in one write. Raises UnanswerableError."""
        held, self._held = self._held, None
        if held:
            self._write(held)

    def close(self) -> None:
        """Abandon running programs, close the sandbox and the file of records."""
        self._executors.close()
        self._writer.close()

    def _check(self, result: int, scorer: str, jobs: Jobs, executor: Executor) -> Mapping[str, str]:
        """Run reference solutions once; return the items that this machine cannot score, with reasons."""
        if (result, scorer) not in self._unfit:
            if executor.kind.costly:
                items = {
                    planned.item: self._items[planned.nodeid]
                    for planned in self._plan.items
                    if planned.result == result
                }
            else:
                items = {item.id: item for item in self._evaluations[result].dataset.items}
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

    def _commit(self, pending: _PendingExecution) -> None:
        """Write a response with all its scores and hold it for its test."""
        scored = scored_record(
            pending.blank, pending.response, pending.verdicts[pending.blank.scorer]
        )
        others = tuple(
            replace(
                scored_record(other, pending.response, pending.verdicts[other.scorer]),
                text=None,
                reasoning=None,
                logprobs=(),
                seconds=None,
            )
            for other in for_other_scorers(self._plan, pending.planned.result, scored)
        )
        if pending.from_disk:
            self._remember(pending.planned, scored, pending.stored, others)
        else:
            self._save(scored, others)
            self._remember(pending.planned, scored, scored, others)

    def _remember(
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


def blank_records(
    shared: Record, item: Item, arm: Arm, protocol: Protocol, **fields: Any
) -> list[Record]:
    """Return the blank records of an item in one of its arms.

    There is one per sample in the original order, and one in every other arm. ``shared``: the fields
    that all items of the chunk have in common; ``fields``: further fields of this item.
    """
    fields |= {"item": item.id, "subject": item.subject, "gold": item.gold_label}
    if arm.name == ORIGINAL:
        return [replace(shared, sample=n, **fields) for n in range(protocol.answers_per_item)]
    if arm.instead is not None:
        fields["gold"] = ""  # content-free prompts have no correct answer
    positions = option_order(item, arm.item) or ()
    return [
        replace(
            shared,
            arm=arm.name,
            protocol=arm_fingerprint(shared.protocol, arm.name),
            order="".join(LABELS[index] for index in positions),
            **fields,
        )
    ]


def blank_order_record(
    shared: Record, item: Item, test: OrderTestPlan, request: Request, **fields: Any
) -> Record:
    """Return the blank record of the likelihoods of an order test; ``shared`` as in `blank_records`.

    Its fingerprint is that of the test, which is independent of the protocol.
    """
    return replace(
        shared,
        item=item.id,
        subject=item.subject,
        gold="",
        arm=test.arm,
        protocol=arm_fingerprint(test.document["fingerprint"], test.arm),
        detail=f"{len(request.choices)} orders",
        prompt_sha256=request.prompt.sha256,
        **fields,
    )


def answerable_protocol(protocol: Protocol, model: Model) -> Protocol:
    """Return the protocol, or its variant that this model can answer.

    A model that returns only text generates the letter, which is another scorer and another
    fingerprint. Raises UnanswerableError if the model supports neither.
    """
    if protocol.ask in model.asks:
        return protocol
    if "text" in model.asks:
        try:
            return protocol.with_generation()
        except ConfigError as error:
            raise UnanswerableError(f"model {model.name} returns only text; {error}") from None
    raise UnanswerableError(
        f"model {model.name} compares choices only; protocol {protocol.name!r} needs it to"
        " generate text"
    )
