"""How far a run has come, from its records as they are written; no I/O here.

A record line is not an item: an item may have several samples, a record for each other scorer of
the same response, and a second record where the body of its test overrules the scorer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.metrics.intervals import tally_interval

_ANY = ""  # a project's own model is one, whatever its records call it


@dataclass
class Tracked:
    """One model on one planned result.

    ``items``: the planned ids. ``samples``: protocol fingerprint → answers per item. ``scorer`` is
    the planned one until a record tells that the model was asked another way.
    """

    model: str
    benchmark: str
    scorer: str
    samples: dict[str, int]
    items: set[str]
    done: int = 0
    #: (answered, correct) of an item → how many items have it.
    tally: Counter[tuple[int, int]] = field(default_factory=Counter)
    seen: dict[str, _Seen] = field(default_factory=dict)
    weights: str | None = None
    #: When its last record came, in the order of records.
    moved: int = 0

    @property
    def name(self) -> str:
        """``mmlu[letter]``."""
        return f"{self.benchmark}[{self.scorer}]"

    def accuracy(self) -> tuple[float, tuple[float, float]] | None:
        """Accuracy of the answers so far with its 95 % interval; errors left out."""
        answered = sum(n * items for (n, _), items in self.tally.items())
        if not answered:
            return None
        correct = sum(c * items for (_, c), items in self.tally.items())
        return correct / answered, tally_interval(+self.tally)

    def put(self, item: str, sample: int, outcome: str, expected: int, weights: str | None) -> None:
        """Take what became of one sample; a later word on it replaces an earlier."""
        seen = self.seen.get(item)
        if seen is None:
            seen = self.seen[item] = _Seen(weights)
        else:
            self._count(seen, -1)
        seen.outcomes[sample], seen.expected = outcome, expected
        self._count(seen, 1)

    def forget(self, weights: str | None) -> None:
        """Drop what other weights answered: it will be asked for again."""
        for item in [item for item, seen in self.seen.items() if seen.weights != weights]:
            self._count(self.seen.pop(item), -1)

    def _count(self, seen: _Seen, sign: int) -> None:
        self.done += sign * (len(seen.outcomes) >= seen.expected)
        outcomes = list(seen.outcomes.values())
        answered = len(outcomes) - outcomes.count(Outcome.ERROR)
        if answered:
            self.tally[answered, outcomes.count(Outcome.CORRECT)] += sign


@dataclass
class _Seen:
    """What is known of an item: outcomes by sample, and the weights that gave the first."""

    weights: str | None
    outcomes: dict[int, str] = field(default_factory=dict)
    expected: int = 1


class Tracking:
    """All models and results of a plan. Records of an earlier session are fed with ``earlier``."""

    def __init__(self, plan: Plan) -> None:
        self._own_model = plan.own_model
        self._groups: dict[tuple[str, str, str], Tracked] = {}
        self._moves = 0
        groups: dict[tuple[int, int], Tracked] = {}
        for planned in plan.items:
            key = (planned.model, planned.result)
            if key not in groups:
                result, model = plan.results[planned.result], plan.models[planned.model]
                samples = {way.fingerprint: way.samples for way in result.ways}
                made = Tracked(model, result.benchmark, result.scorer, samples, set())
                groups[key] = made
                for fingerprint in samples:
                    name = _ANY if plan.own_model else model
                    self._groups[name, result.benchmark, fingerprint] = made
            groups[key].items.add(planned.item)
        self._scorers = {way.fingerprint: way.scorer for one in plan.results for way in one.ways}
        self.groups = list(groups.values())

    @property
    def total(self) -> int:
        """Planned items: of every model and result."""
        return sum(len(group.items) for group in self.groups)

    @property
    def done(self) -> int:
        """Items that have all their samples."""
        return sum(group.done for group in self.groups)

    def feed(self, lines: Iterable[bytes], earlier: bool = False) -> None:
        """Take lines of ``records.jsonl``. What is no record is for others to complain about.

        ``earlier``: of an earlier session, whose errors and unsettled answers are asked for again.
        """
        for line in lines:
            try:
                record = json.loads(line)
                self._put(record, earlier)
            except (ValueError, KeyError, TypeError):
                continue

    def _put(self, record: dict[str, Any], earlier: bool) -> None:
        name = _ANY if self._own_model else record["model"]
        protocol, item, outcome = record["protocol"], record["item"], record["outcome"]
        group = self._groups.get((name, record["benchmark"], protocol))
        if group is None or item not in group.items:
            return  # another scorer of the same response, say
        weights = record.get("model_fingerprint")
        if earlier and (outcome == Outcome.ERROR or record.get("left_out")):
            return
        if not earlier:
            self._moves += 1
            if weights is not None and weights != group.weights:
                group.weights = weights
                group.forget(weights)
        group.moved = self._moves
        group.scorer = self._scorers[protocol]
        group.put(item, record.get("sample", 0), outcome, group.samples[protocol], weights)
