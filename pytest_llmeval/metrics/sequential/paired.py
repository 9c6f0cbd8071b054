"""Evidence on a regression gate: pairs of answers of a run and of a complete baseline.

A full run fails the gate if its accuracy is more than ``limit`` below the baseline's and the exact
McNemar test is significant at ``level``. Of the items that the baseline has right, a are newly wrong
in a full run; of the others, c are newly right. Both conditions depend on a and c only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.sequential.counts import Floats
from pytest_llmeval.metrics.sequential.counts import count_interval
from pytest_llmeval.metrics.sequential.counts import log_factorials

Ints = np.typing.NDArray[np.int64]
Bools = np.typing.NDArray[np.bool_]

_FOR_CHANGED = 0.01
"""Share of alpha that is spent on the number of changed items."""


@dataclass(frozen=True)
class Pairs:
    """Answers to items that the baseline has right, and to items that it has wrong."""

    right: int
    """Answered items that the baseline has right."""
    newly_wrong: int
    """Those of them that the run has wrong."""
    wrong: int
    """Answered items that the baseline has wrong."""
    newly_right: int
    """Those of them that the run has right."""

    def __post_init__(self) -> None:
        _validation.part("newly_wrong", self.newly_wrong, "right", self.right)
        _validation.part("newly_right", self.newly_right, "wrong", self.wrong)


@dataclass(frozen=True)
class DropEdge:
    """The edge between passing and failing a regression gate, in numbers of changed items.

    ``right`` and ``wrong``: items that the baseline has right and wrong, over the whole benchmark.
    """

    right: int
    wrong: int
    limit: float
    level: float
    tolerance: float = 1e-12

    @cached_property
    def fails_from(self) -> Ints:
        """For every number D = a + c of changed items, the smallest a that fails; D + 1 if none does.

        a - c increases and the p value decreases with a, so that both conditions have an edge. O(N
        log N).
        """
        # Imported here because scipy takes longer to import than pytest.
        from scipy.special import betainc

        size = self.right + self.wrong
        changed = np.arange(size + 1)
        most = (self.limit + self.tolerance) * size
        low, high = np.zeros_like(changed), changed + 1
        while (unfinished := low < high).any():
            middle = (low + high) // 2
            drop = 2 * middle - changed
            # P(X >= a) = I_1/2(a, D - a + 1) for X binomial(D, 1/2); a drop has a > D/2.
            tail = betainc(np.maximum(middle, 1), np.maximum(changed - middle, 0) + 1, 0.5)
            fails = (drop > most) & (drop > 0) & (2 * tail <= self.level)
            high = np.where(unfinished & fails, middle, high)
            low = np.where(unfinished & ~fails, middle + 1, low)
        return low

    def log_evidence(self, pairs: Pairs, alpha: float) -> tuple[float, float]:
        """Return the log evidence for passing and for failing.

        The numbers D of changed items that ``count_interval`` leaves possible at ``alpha`` are
        considered one by one. For each, which items of either kind are answered is random, and

            (a+j)_s (A-a-j)_(n-s) / ((a)_s (A-a)_(n-s))  ·  (c-j)_r (C-c+j)_(m-r) / ((c)_r (C-c)_(m-r)),

        the likelihood ratio of (a + j, c - j) to the edge (a, c), is a martingale on the edge and a
        supermartingale beyond it (A, C: items that the baseline has right and wrong; s of n newly
        wrong; r of m newly right). It is mixed with weights proportional to 1 / (j + isqrt(D)), with
        half of the weight, and the ratios for a change of only a or only c with a quarter each. The
        evidence is the least over D. If it reaches log(1 / ((1 - x) A)) at an interval of level x A,
        the verdict differs from that of a full run with probability at most A. Depends on counts
        only. O(N log N).
        """
        size, answered = self.right + self.wrong, pairs.right + pairs.wrong
        low, high = count_interval(size, answered, pairs.newly_wrong + pairs.newly_right, alpha)
        changed = np.arange(low, high + 1)
        # Numbers of newly wrong items that are possible with the pairs so far.
        least = np.maximum(
            pairs.newly_wrong, changed - (self.wrong - (pairs.wrong - pairs.newly_right))
        )
        most = np.minimum(
            self.right - (pairs.right - pairs.newly_wrong), changed - pairs.newly_right
        )
        possible = least <= most
        changed, least, most = changed[possible], least[possible], most[possible]
        edge = self.fails_from[changed]
        passing = self._least(changed, edge, edge <= most, -1, pairs)
        failing = self._least(changed, edge - 1, edge - 1 >= least, 1, pairs)
        return passing, failing

    def decide(self, pairs: Pairs, alpha: float) -> bool | None:
        """Return True for a pass, False for a fail, None while undecided.

        The verdict differs from that of a full run with probability at most ``alpha``.
        """
        passing, failing = self.log_evidence(pairs, _FOR_CHANGED * alpha)
        limit = -math.log((1 - _FOR_CHANGED) * alpha)
        if passing >= limit:
            return True
        return False if failing >= limit else None

    def _least(self, changed: Ints, edge: Ints, exists: Bools, sign: int, pairs: Pairs) -> float:
        """Return the least evidence against the edges that exist; ``inf`` if none does."""
        if not exists.any():
            return math.inf
        return float(self._mixture(changed[exists], edge[exists], sign, pairs).min())

    def _mixture(self, changed: Ints, edge: Ints, sign: int, pairs: Pairs) -> Floats:
        """Return the log of the mixed likelihood ratio to the edge, for every number of changes."""
        null = self._log_likelihood(edge, changed - edge, pairs)
        steps = mixture_steps(int(changed.max()) + 1)
        widths = np.diff(np.append(steps, steps[-1] + 1))
        shifts = np.sqrt(changed).astype(int)
        densities = widths / (steps + shifts[:, None])
        parts = []
        for share, wrong_step, right_step in ((0.5, 1, 1), (0.25, 1, 0), (0.25, 0, 1)):
            a = edge[:, None] + sign * wrong_step * steps
            c = (changed - edge)[:, None] - sign * right_step * steps
            exists = (a >= 0) & (a <= self.right) & (c >= 0) & (c <= self.wrong)
            weights = np.where(exists, densities, 0.0)
            total = np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            with np.errstate(divide="ignore"):
                parts.append(np.log(share * weights / total) + self._log_likelihood(a, c, pairs))
        values = np.concatenate(parts, axis=1)
        largest = values.max(axis=1)
        finite = np.isfinite(largest)
        shifted = np.exp(values[finite] - largest[finite, None])
        mixed: Floats = np.full(len(largest), -math.inf)
        mixed[finite] = largest[finite] + np.log(shifted.sum(axis=1))
        # An impossible edge is no evidence against the numbers beyond it.
        impossible = np.isneginf(null)
        return np.where(impossible, -math.inf, mixed - np.where(impossible, 0.0, null))

    def _log_likelihood(self, a: Ints, c: Ints, pairs: Pairs) -> Floats:
        """Return the log probability of the pairs, up to a constant, for newly wrong and right."""
        first = _log_probability(a, self.right, pairs.newly_wrong, pairs.right)
        second = _log_probability(c, self.wrong, pairs.newly_right, pairs.wrong)
        return first + second


def mixture_steps(most: int) -> Ints:
    """Return the distances of the mixture: 1 … 8, then each a quarter larger, up to ``most``."""
    steps, step = [], 1
    while step <= most:
        steps.append(step)
        step = max(step + 1, step * 5 // 4)
    return np.array(steps, dtype=np.int64)


def _log_probability(events: Ints, size: int, observed: int, answered: int) -> Floats:
    """Return log((e)_s (N-e)_(n-s)) for e events of N items and s of n answered; -inf if impossible."""
    logs = log_factorials(size)
    others = answered - observed
    possible = (events >= observed) & (size - events >= others)
    valid = np.where(possible, events, observed)
    value = logs[valid] - logs[valid - observed]
    value = value + logs[size - valid] - logs[size - valid - others]
    return np.where(possible, value, -math.inf)
