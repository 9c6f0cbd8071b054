"""Rules that decide a gate from the answers to a random part of its items.

Each rule is about one quantity of the full run, from which the full run's verdict follows: a number
of right answers, a sum of scores, or the numbers of items that changed since a baseline. An error
counts as a wrong answer for a pass and as a right answer for a fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics.sequential.counts import count_interval
from pytest_llmeval.metrics.sequential.counts import log_evidence_at_least
from pytest_llmeval.metrics.sequential.counts import log_evidence_below
from pytest_llmeval.metrics.sequential.means import Scores
from pytest_llmeval.metrics.sequential.means import log_evidence_of_total
from pytest_llmeval.metrics.sequential.means import plain_scores
from pytest_llmeval.metrics.sequential.means import weighted_scores
from pytest_llmeval.metrics.sequential.paired import DropEdge
from pytest_llmeval.metrics.sequential.paired import Pairs

Answered = Sequence[tuple[str, ItemOutcomes]]
"""Item id and outcomes of the answered items of a gate, in their random order."""


@dataclass(frozen=True)
class Decision:
    """A verdict that a full run has as well, except with a known probability."""

    status: Status
    log_evidence: float
    """Natural logarithm; ``inf`` if the answers leave no other verdict."""


@dataclass(frozen=True)
class InterimEstimate:
    """The value of a metric over the answered items, and its confidence sequence."""

    value: float
    low: float
    high: float
    text: str
    """The counts behind the value."""


class Rule(Protocol):
    """A rule for one gate."""

    @property
    def population(self) -> int:
        """Number of items of the gate in the benchmark."""

    def decide(self, answered: Answered, alpha: float) -> Decision | None:
        """Return the verdict of a full run, wrong with probability at most ``alpha``; None if unclear."""

    def estimate(self, answered: Answered, alpha: float) -> InterimEstimate:
        """Return the value so far with a confidence sequence of ``alpha`` on either side."""


@dataclass(frozen=True)
class CountRule:
    """Rule for a verdict that depends on the number of items with an event, such as right answers.

    ``statuses``: (smallest number, verdict) of every range of numbers with the same verdict of a full
    run, ascending from 0. ``events``: the fewest and the most events that an item may have, which
    differ for errors; None if the item has no place in the metric. ``value``: number of events in
    the full run → value of the metric.
    """

    population: int
    statuses: Sequence[tuple[int, Status]]
    events: Callable[[ItemOutcomes], tuple[int, int] | None]
    value: Callable[[int], float]
    noun: str

    def decide(self, answered: Answered, alpha: float) -> Decision | None:
        """Decide by the evidence at both ends of every range.

        A range at the end of the numbers has one neighbour, so that it has all of ``alpha``; any
        other has half of it on either side.
        """
        counted = self._count(answered)
        if counted is None:
            return None
        fewest, most = counted
        n, edges = len(answered), [start for start, _ in self.statuses[1:]]
        half, last = alpha / 2, len(edges) - 1
        above = [log_evidence_at_least(self.population, edge, n, fewest) for edge in edges]
        below = [log_evidence_below(self.population, edge, n, most) for edge in edges]
        # Below the first edge and from the last edge on, a wrong verdict is on one side only.
        reached = [
            value >= -math.log(alpha if place == 0 else half) for place, value in enumerate(above)
        ]
        excluded = [
            value >= -math.log(alpha if place == last else half)
            for place, value in enumerate(below)
        ]
        for place, (_, status) in enumerate(self.statuses):
            needed = [above[place - 1]] if place else []
            needed += [below[place]] if place <= last else []
            if (not place or reached[place - 1]) and (place > last or excluded[place]):
                return Decision(status, min(needed, default=math.inf))
        return None

    def estimate(self, answered: Answered, alpha: float) -> InterimEstimate:
        """Return the share of events among the answered items, and the numbers of a full run."""
        fewest, most = self._count(answered) or (0, len(answered))
        n = len(answered)
        level = min(2 * alpha, 0.999)
        low, _ = count_interval(self.population, n, fewest, level)
        _, high = count_interval(self.population, n, most, level)
        share = fewest / n if n else 0.0
        value = self._interpolated(share)
        return InterimEstimate(
            value, self.value(low), self.value(high), f"{fewest:,} of {n:,} {self.noun}"
        )

    def _count(self, answered: Answered) -> tuple[int, int] | None:
        fewest = most = 0
        for _, item in answered:
            events = self.events(item)
            if events is None:
                return None
            fewest += events[0]
            most += events[1]
        return fewest, most

    def _interpolated(self, share: float) -> float:
        """Return the value at a share of events: all metrics of counts are affine."""
        return self.value(0) * (1 - share) + self.value(self.population) * share


@dataclass(frozen=True)
class MeanRule:
    """Rule for the mean of scores in [0, 1]: several samples, ``pass@k``, macro accuracy.

    A full run passes if the mean is at least ``minimum`` and at most ``maximum``. ``scores``: the
    smallest and the largest score that an item may have; None without a score. ``weights``: subject
    → weight of its items, which average to 1; ``sizes``: subject → number of its items.
    """

    minimum: float
    maximum: float
    scores: Callable[[ItemOutcomes], tuple[float, float] | None]
    sizes: Mapping[str, int]
    weights: Mapping[str, float] | None = None
    value: Callable[[float], float] = float
    """Mean of the scores → value of the metric."""

    @property
    def population(self) -> int:
        """Number of items of the gate in the benchmark."""
        return sum(self.sizes.values())

    def decide(self, answered: Answered, alpha: float) -> Decision | None:
        """Decide by the evidence at the bounds."""
        if not answered:
            return None
        smallest, largest = self._scores(answered, 0), self._scores(answered, 1)
        if smallest is None or largest is None:
            return None
        size = self.population
        inside, outside = [], []
        if self.minimum > -math.inf:
            inside.append(_last(smallest, self.minimum * size, above=True))
            outside.append(_last(largest, self.minimum * size, above=False))
        if self.maximum < math.inf:
            inside.append(_last(largest, self.maximum * size, above=False))
            outside.append(_last(smallest, self.maximum * size, above=True))
        if min(inside) >= -math.log(alpha):
            return Decision("pass", min(inside))
        # A value inside both bounds has two neighbours.
        if max(outside) >= -math.log(alpha / len(outside)):
            return Decision("fail", max(outside))
        return None

    def estimate(self, answered: Answered, alpha: float) -> InterimEstimate:
        """Return the mean so far, weighted as in the full run, and the means that are not excluded."""
        smallest, largest = self._scores(answered, 0), self._scores(answered, 1)
        text = f"{len(answered):,} items"
        if smallest is None or largest is None or not answered:
            return InterimEstimate(self.value(0.0), self.value(0.0), self.value(1.0), text)
        bounds = [x for x in (self.minimum, self.maximum) if 0 <= x <= 1]
        grid = sorted({*(step / _GRID for step in range(_GRID + 1)), *bounds})
        size, limit = self.population, -math.log(alpha)
        low, high = 0.0, 1.0
        for mean in grid:
            if _last(smallest, mean * size, above=True) < limit:
                break
            low = mean
        for mean in reversed(grid):
            if _last(largest, mean * size, above=False) < limit:
                break
            high = mean
        total = math.fsum(smallest.weights.tolist())
        value = math.fsum(smallest.values.tolist()) / total if total else 0.0
        return InterimEstimate(self.value(value), self.value(low), self.value(high), text)

    def _scores(self, answered: Answered, side: int) -> Scores | None:
        """Return the smallest (0) or the largest (1) scores of the items; None if one has none."""
        limits = [self.scores(item) for _, item in answered]
        values = [pair[side] for pair in limits if pair is not None]
        if len(values) < len(limits):
            return None
        if self.weights is None:
            return plain_scores(values, self.population)
        counts: dict[float, int] = {}
        for subject, size in self.sizes.items():
            counts[self.weights[subject]] = counts.get(self.weights[subject], 0) + size
        return weighted_scores(values, [self.weights[item.subject] for _, item in answered], counts)


_GRID = 200  # steps of the confidence sequence of a mean


def _last(scores: Scores, total: float, *, above: bool) -> float:
    """Return the evidence after the last item that the sum of all scores is above (below) a total."""
    return float(log_evidence_of_total(scores, total, 1 if above else -1)[-1])


@dataclass(frozen=True)
class DropRule:
    """Rule for a drop against a complete baseline, with one answer per item.

    ``baseline``: item id → whether the baseline has it right, of all items of the gate. ``passing``
    and ``failing``: the edges for a pass and for a fail. They differ for a subject, whose p value is
    adjusted over all subjects: it is at least the subject's own, and at most that times the number of
    subjects.
    """

    baseline: Mapping[str, bool]
    passing: DropEdge
    failing: DropEdge

    @property
    def population(self) -> int:
        """Number of items of the gate in the benchmark."""
        return len(self.baseline)

    def decide(self, answered: Answered, alpha: float) -> Decision | None:
        """Decide by the numbers of newly wrong and newly right items."""
        worst, best = self._pairs(answered, Outcome.WRONG), self._pairs(answered, Outcome.CORRECT)
        if self.passing.decide(worst, alpha) is True:
            return Decision("pass", self.passing.log_evidence(worst, alpha / 100)[0])
        if self.failing.decide(best, alpha) is False:
            return Decision("fail", self.failing.log_evidence(best, alpha / 100)[1])
        return None

    def estimate(self, answered: Answered, alpha: float) -> InterimEstimate:
        """Return the drop over the answered items, and that of a full run."""
        worst, best = self._pairs(answered, Outcome.WRONG), self._pairs(answered, Outcome.CORRECT)
        n, right = len(answered), sum(self.baseline.values())
        level = min(2 * alpha, 0.999)
        drop = (worst.newly_wrong - worst.newly_right) / n if n else 0.0
        least, _ = count_interval(self.population, n, _right(worst), level)
        _, most = count_interval(self.population, n, _right(best), level)
        low, high = ((right - total) / self.population for total in (most, least))
        text = f"{worst.newly_wrong:,} newly wrong, {worst.newly_right:,} newly right of {n:,}"
        return InterimEstimate(drop, low, high, text)

    def _pairs(self, answered: Answered, error: Outcome) -> Pairs:
        """Return the pairs so far, with errors as this outcome."""
        counts = {(False, False): 0, (False, True): 0, (True, False): 0, (True, True): 0}
        for item, outcomes in answered:
            outcome = outcomes.outcomes[0]
            outcome = error if outcome is Outcome.ERROR else outcome
            counts[self.baseline[item], outcome is Outcome.CORRECT] += 1
        return Pairs(
            right=counts[True, True] + counts[True, False],
            newly_wrong=counts[True, False],
            wrong=counts[False, True] + counts[False, False],
            newly_right=counts[False, True],
        )


def _right(pairs: Pairs) -> int:
    return pairs.right - pairs.newly_wrong + pairs.newly_right


def merged_statuses(statuses: Sequence[tuple[int, Status]]) -> list[tuple[int, Status]]:
    """Return the ranges without those that have the verdict of the range before."""
    kept = list(statuses[:1])
    kept += [entry for before, entry in pairwise(statuses) if entry[1] != before[1]]
    return kept
