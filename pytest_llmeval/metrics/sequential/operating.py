"""Exact error probabilities and expected numbers of items of sequential gates on counts.

They are computed from the distribution of (answered items, right answers) under sampling without
replacement, not by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pytest_llmeval.metrics.sequential.counts import Floats
from pytest_llmeval.metrics.sequential.counts import log_evidence_at_least
from pytest_llmeval.metrics.sequential.counts import log_evidence_below

_NEGLIGIBLE = 1e-18  # probability of a number of right answers that is not followed further


@dataclass(frozen=True)
class Boundary:
    """Numbers of right answers at which a gate is decided, for every look.

    The gate passes from ``passes[i]`` right answers and fails up to ``fails[i]`` of ``looks[i]``.
    """

    population: int
    looks: Sequence[int]
    passes: Sequence[int]
    fails: Sequence[int]


@dataclass(frozen=True)
class Operating:
    """Probabilities of the verdicts, and the number of items that they need."""

    passed: float
    failed: float
    items: float
    """Expected number of items until the verdict."""
    bias: float
    """Expected difference between the share of right answers at the verdict and that of a full run."""


def wave_ends(population: int, wave: int) -> list[int]:
    """Return the numbers of items after which a gate is decided: multiples of ``wave``, and all."""
    return [*range(wave, population, wave), population]


def count_boundary(population: int, least: int, alpha: float, looks: Sequence[int]) -> Boundary:
    """Return the boundary of a gate that passes from ``least`` right answers of all items.

    O(looks N).
    """
    limit = -math.log(alpha)

    def passed(answered: int, correct: int) -> bool:
        return log_evidence_at_least(population, least, answered, correct) >= limit

    def not_failed(answered: int, correct: int) -> bool:
        return log_evidence_below(population, least, answered, correct) < limit

    # With one more answer a limit stays or increases by one.
    passes, fails, before = [], [], 0
    least_pass, least_open = int(not passed(0, 0)), int(not not_failed(0, 0))
    for n in looks:
        least_pass = _first(least_pass, n - before, partial(passed, n))
        least_open = _first(least_open, n - before, partial(not_failed, n))
        passes.append(least_pass)
        fails.append(least_open - 1)
        before = n
    return Boundary(population, looks, passes, fails)


def operating(boundary: Boundary, correct: int) -> Operating:
    """Return the operating characteristics if ``correct`` of all items have right answers.

    The last look must be after all items. O(N^2), less with concentrated distributions.
    """
    population = boundary.population
    if not boundary.looks or boundary.looks[-1] != population:
        raise ValueError("the last look must be after all items")
    chances, first = np.ones(1), 0
    passed = failed = items = bias = 0.0
    limits = zip(boundary.looks, boundary.passes, boundary.fails, strict=True)
    look, least, most = next(limits)
    for n in range(1, population + 1):
        chances = _after_one_more(chances, first, correct, population - n + 1)
        if n == look:
            counts = first + np.arange(len(chances))
            up, down = counts >= least, counts <= most
            decided = chances * (up | down)
            passed += float(chances[up].sum())
            failed += float(chances[down].sum())
            items += n * float(decided.sum())
            bias += float((decided * (counts / n - correct / population)).sum())
            chances = chances - decided
            look, least, most = next(limits, (0, 0, 0))
        kept = np.flatnonzero(chances > _NEGLIGIBLE)
        if not len(kept):
            break
        chances, first = chances[kept[0] : kept[-1] + 1], first + int(kept[0])
    return Operating(passed, failed, items, bias)


def _after_one_more(chances: Floats, first: int, correct: int, left: int) -> Floats:
    """Return the distribution of right answers after one more of the ``left`` items.

    ``chances[i]``: the probability of ``first + i`` right answers so far.
    """
    right = np.clip((correct - first - np.arange(len(chances))) / left, 0.0, 1.0)
    after = np.zeros(len(chances) + 1)
    after[1:] = chances * right
    after[:-1] += chances * (1 - right)
    return after


def _first(low: int, room: int, condition: Callable[[int], bool]) -> int:
    """Return the smallest number from ``low`` to ``low + room`` with a monotone condition.

    ``low + room`` if no smaller number has it.
    """
    high = low + room
    while low < high:
        middle = (low + high) // 2
        if condition(middle):
            high = middle
        else:
            low = middle + 1
    return low
