"""Requests of a chunk: prompts of its items in all samples and arms, less what is on disk."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pytest_llmeval.bias.arms import ORIGINAL
from pytest_llmeval.bias.arms import Arm
from pytest_llmeval.bias.arms import Reordering
from pytest_llmeval.bias.arms import arrange
from pytest_llmeval.bias.content_free import arms_of_item
from pytest_llmeval.bias.content_free import carrier_ids
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Record
from pytest_llmeval.core import Request
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.core.record import AnswerKey
from pytest_llmeval.evaluation.answers import ReusableAnswers
from pytest_llmeval.evaluation.order_tests import OrderTestPlan
from pytest_llmeval.evaluation.recorder import Recorder
from pytest_llmeval.evaluation.recorder import UnanswerableError
from pytest_llmeval.evaluation.recorder import answerable_protocol
from pytest_llmeval.evaluation.recorder import blank_order_record
from pytest_llmeval.evaluation.recorder import blank_records
from pytest_llmeval.evaluation.scoring import stored_response
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.models import Model

_ORIGINAL_ARM = Arm(ORIGINAL)

#: Requests that are sent in one call of the model, each with its record, still without an answer.
Batch = list[tuple[Request, Record]]


class RecoveredRecords(NamedTuple):
    """Records of an earlier session or of a crashed worker."""

    records: Iterable[Record] = ()
    #: Node ids of tests that crashed their worker; they are not sent again in this session.
    crashed: Iterable[str] = ()


class ChunkRequests:
    """Builder of the requests of chunks. Answers on disk are scored again instead of requested."""

    def __init__(
        self,
        plan: Plan,
        evaluations: Sequence[Evaluation],
        items: Mapping[str, Item],
        recorder: Recorder,
        recover: Callable[[], RecoveredRecords],
    ) -> None:
        """Create a builder.

        ``items``: by node id. ``recover``: returns the records that were recovered since its last
        call.
        """
        #: Node ids whose answer comes from an earlier session or another worker.
        self.reused: set[str] = set()
        self._plan = plan
        self._evaluations = evaluations
        self._items = items
        self._recorder = recorder
        #: By index of model and result: ids of the items that carry content-free prompts.
        self._carriers = self._find_carriers()
        #: By index of result and identity of the model: the protocol that the model answers.
        self._protocols: dict[tuple[int, int], Protocol] = {}
        self._recover = recover
        self._reusable = ReusableAnswers(plan.own_model)
        self._crashed: set[str] = set()

    def protocol(self, result: int, model: Model) -> Protocol:
        """Return the protocol of a planned result that a model can answer. Raises UnanswerableError."""
        key = (result, id(model))
        if key not in self._protocols:
            self._protocols[key] = answerable_protocol(self._evaluations[result].protocol, model)
        return self._protocols[key]

    def expected_keys(self, planned: PlannedItem, model: Model) -> Collection[AnswerKey]:
        """Return the keys of an item's answers: its samples, then its arms."""
        protocol = self.protocol(planned.result, model)
        samples = [("", sample) for sample in range(protocol.answers_per_item)]
        arms = [arm.name for arm, _ in self._arms_of(planned, protocol)]
        tests = [test.arm for test in self._order_tests_of(planned)]
        return [*samples, *((arm, 0) for arm in (*arms, *tests))]

    def blanks_of_item(self, planned: PlannedItem, model: Model, error: str) -> Iterator[Record]:
        """Yield the records of an item's answers as errors."""
        shared = self.blank(planned.nodeid, model.name)
        protocol, item = self.protocol(planned.result, model), self._items[planned.nodeid]
        for arm in (_ORIGINAL_ARM, *(arm for arm, _ in self._arms_of(planned, protocol))):
            yield from blank_records(shared, item, arm, protocol, error=error)
        for test in self._order_tests_of(planned):
            request = self._order_request(test, planned)
            yield blank_order_record(shared, item, test, request, error=error)

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

    def _order_tests_of(self, planned: PlannedItem) -> Iterator[OrderTestPlan]:
        """Yield the order tests of which an item carries a request."""
        if self._plan.results[planned.result].contamination:
            tests = self._evaluations[planned.result].order_tests
            yield from (test for test in tests if planned.item in test.groups)

    def _order_request(self, test: OrderTestPlan, planned: PlannedItem) -> Request:
        name = self._evaluations[planned.result].benchmark.name
        return test.request(planned.item, self._plan.seed, name)

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

    def batches(self, chunk: int, model: Model) -> Iterable[Batch]:
        """Return the requests of a chunk with their blank records, in batches.

        Requests with the same shots share a batch, so that their prefix is encoded once. Answers on
        disk are scored again instead.
        """
        first, *_ = members = self._plan.chunks[chunk]
        evaluation = self._evaluations[first.result]
        protocol = self.protocol(first.result, model)
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
        requests: dict[Reordering | str, Batch] = {}
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
                        self._recorder.fail(planned, failed)
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
            for test in self._order_tests_of(planned):
                request = self._order_request(test, planned)
                blank = blank_order_record(shared, item, test, request)
                if "choices" not in model.asks:
                    self._recorder.fail(
                        planned, replace(blank, error="the model returns only text")
                    )
                elif not self._reuse(planned, blank):
                    requests.setdefault(test.arm, []).append((request, blank))
        return requests.values()

    def _reuse(self, planned: PlannedItem, record: Record) -> bool:
        """Score the stored answer of a record, if there is one; return false if there is none."""
        stored = self._reusable.pop_matching(record)
        if stored is None:
            return False
        # The record is written again if a later record replaced it.
        latest = stored if self._reusable.is_latest(stored) else None
        response = stored_response(stored, record.dropped_shots)
        self._recorder.take(planned, record, response, from_disk=True, stored=latest)
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
