"""What the reports of tests tell of their items, and what all of them amount to."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.planning.plan import Plan
from pytest_llmeval.planning.plan import Way
from pytest_llmeval.runs.arms import InArm
from pytest_llmeval.runs.arms import audit_of
from pytest_llmeval.runs.debiased import debiased
from pytest_llmeval.runs.debiased import what_is_lacking
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import measure


@dataclass(frozen=True, slots=True)
class Reported:
    """What a test report says about its item; travels from worker to controller as a dict.

    ``outcome`` is that of the test, ``samples`` has one for every answer. ``others``: scorer
    → outcomes, truncated answers, tie and answers with all choices tied, under other scorers of the
    same answers. ``arms``:
    scorer → what became of the item in every arm of a permutation audit. ``unanswered``: an error
    before the model was sent anything, as where it could not be loaded.
    """

    outcome: str
    samples: Sequence[str]
    model: str
    scorer: str
    protocol: str
    fingerprint: str | None = None
    truncated: int = 0
    dropped_shots: bool = False
    encoded_apart: bool = False
    tie: bool = False
    all_tied: int = 0
    details: Sequence[str] = ()
    reused: bool = False
    contradicted: bool = False
    others: Mapping[str, tuple[Sequence[str], int, bool, int]] = field(default_factory=dict)
    unanswered: bool = False
    arms: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        # Not asdict, whose deep copy would cost more than the test that is reported.
        return {name: getattr(self, name) for name in self.__slots__}


class Outcomes:
    """The outcomes of a run, as they come in."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.by_nodeid: dict[str, Reported] = {}
        #: By index of model and result: fingerprints of the protocols, and of the weights seen.
        self.asked: dict[tuple[int, int], set[str]] = {}
        self._weights: dict[tuple[int, int], str] = {}

    def receive(self, nodeid: str, value: Mapping[str, Any]) -> None:
        """Take the outcome that a test report carries."""
        one = self.by_nodeid[nodeid] = Reported(**value)
        planned = self.plan.by_nodeid[nodeid]
        group = (planned.model, planned.result)
        self.asked.setdefault(group, set()).add(one.protocol)
        if one.fingerprint is not None:
            self._weights.setdefault(group, one.fingerprint)

    def lose(self, nodeid: str, reason: str) -> list[Record]:
        """Take an item whose test ended without an outcome; the records of its errors.

        There are as many as it may turn out to have been asked for.
        """
        planned = self.plan.by_nodeid[nodeid]
        result, spec = self.plan.results[planned.result], self.plan.models[planned.model]
        way = self.way(planned.model, planned.result)
        # A model that gives only text has one way to score it.
        scorers = self.plan.other_scorers(planned.result) if way == result.ways[0] else []
        others = [one.ways[0] for one in scorers]
        lost = [str(Outcome.ERROR)] * max(way.samples for way in result.ways)
        self.by_nodeid[nodeid] = Reported(
            lost[0],
            lost,
            spec,
            way.scorer,
            way.fingerprint,
            others={other.scorer: (lost, 0, False, 0) for other in others},
        )
        error = Record(
            model=spec,
            benchmark=result.benchmark,
            scorer=way.scorer,
            item=planned.item,
            subject=planned.subject,
            outcome=Outcome.ERROR,
            answer=None,
            gold="",
            error=reason,
            protocol=way.fingerprint,
            data=result.data_hash,
        )
        every = [
            error,
            *(
                replace(error, scorer=one.scorer, protocol=one.fingerprint, response_of=way.scorer)
                for one in others
            ),
        ]
        return [replace(one, sample=sample) for sample in range(len(lost)) for one in every]

    def remarks(self) -> Iterator[str]:
        """What is to be said of how the outcomes came about."""
        reported = self.by_nodeid.values()
        if reused := sum(one.reused for one in reported):
            yield f"{reused:,} answers were taken from what the run had on disk"
        contradicted = [len(one.samples) > 1 for one in reported if one.contradicted]
        if alone := contradicted.count(False):
            yield f"{alone:,} items count as correct by their test's body, against the scorer"
        if several := contradicted.count(True):
            yield (
                f"{several:,} items are judged otherwise by their test's body than by the"
                " scorer, whose outcomes of their samples count"
            )

    def way(self, model: int, result: int) -> Way:
        """How a model is asked for a result, as far as is known."""
        return self.plan.results[result].way_of(self.asked.get((model, result), ()))

    def label(self, spec: str) -> str:
        """What a model is called: its spec, or the name of the one a user's fixture made."""
        if not self.plan.own_model:
            return spec
        named = {one.model for one in self.by_nodeid.values()} - {spec}
        return min(named) if named else spec

    def measurements(
        self, stored: Callable[[], Iterable[Record]], notes: list[str]
    ) -> dict[tuple[int, int], Measurement]:
        """By index of model and planned result; an other scorer that scored nothing is left out.

        ``stored``: the records on disk, asked for where log-probabilities enter. ``notes`` is
        added to.
        """
        measurements: dict[tuple[int, int], Measurement] = {}
        for (model, number), items in self._by_result().items():
            result, label = self.plan.results[number], self.label(self.plan.models[model])
            if result.debias is not None and result.responses_of is not None:
                first = measurements[model, result.responses_of]
                mine = [one for one in stored() if one.model == label]
                items = debiased(result, first.fingerprint, first.items, mine, self.plan.seed)
                lacking = what_is_lacking(
                    f"{result.benchmark}[{result.scorer}]", first.items, items
                )
                notes += [] if lacking is None else [lacking]
            if result.responses_of is None:
                way = self.way(model, number)
            elif items:
                way = result.ways[0]
            else:
                continue
            asked = number if result.responses_of is None else result.responses_of
            weights = self._weights.get((model, asked))
            measured = measure(result, way, label, items, weights)
            audit = self._audit(model, asked, way.scorer)
            measurements[model, number] = replace(
                measured, result=replace(measured.result, audit=audit)
            )
        return measurements

    def _by_result(self) -> dict[tuple[int, int], dict[str, ItemOutcomes]]:
        """Index of model and planned result → item → outcomes; computed results have none yet."""
        planned, models = self.plan.results, range(len(self.plan.models))
        groups: dict[tuple[int, int], dict[str, ItemOutcomes]] = {
            (model, result): {} for model in models for result in range(len(planned))
        }
        others = {
            (one.responses_of, one.scorer): number
            for number, one in enumerate(planned)
            if one.responses_of is not None
        }
        for item in self.plan.items:
            one = self.by_nodeid.get(item.nodeid)
            if one is None:
                continue
            group = (item.model, item.result)
            groups[group][item.item] = ItemOutcomes(
                subject=item.subject,
                outcomes=tuple(map(Outcome, one.samples)),
                truncated=one.truncated,
                dropped_shots=one.dropped_shots,
                encoded_apart=one.encoded_apart,
                tie=one.tie,
                all_tied=one.all_tied,
                details=tuple(one.details),
            )
            for scorer, (samples, truncated, tie, all_tied) in one.others.items():
                groups[item.model, others[item.result, scorer]][item.item] = ItemOutcomes(
                    subject=item.subject,
                    outcomes=tuple(map(Outcome, samples)),
                    truncated=truncated,
                    dropped_shots=one.dropped_shots,
                    encoded_apart=one.encoded_apart,
                    tie=tie,
                    all_tied=all_tied,
                )
        return groups

    def _audit(self, model: int, result: int, scorer: str) -> Audit | None:
        """The permutation audit of a result under one of the scorers of its answers."""
        about = self.plan.results[result]
        if not about.arms:
            return None
        found = [
            (planned.item, [InArm(*entry) for entry in one.arms[scorer]])
            for planned in self.plan.items
            if (planned.model, planned.result) == (model, result)
            and (one := self.by_nodeid.get(planned.nodeid)) is not None
            and scorer in one.arms
        ]
        return audit_of(about.arms, found, about.same)
