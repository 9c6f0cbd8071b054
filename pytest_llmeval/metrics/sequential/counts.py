"""Evidence on the number of right answers among all items, from a random part of them.

The functions depend on the numbers of answered items and of right answers only, not on their order.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pytest_llmeval.metrics import _validation

Floats = np.typing.NDArray[np.float64]


def log_evidence_at_least(population: int, least: int, answered: int, correct: int) -> float:
    """Return the log evidence that at least ``least`` of all items have right answers.

    With N = ``population``, k = ``least``, n = ``answered``, s = ``correct`` and falling factorials
    (a)_b it is the logarithm of

        E = sum_j w_j (k-1+j)_s (N-k+1-j)_(n-s) / ((k-1)_s (N-k+1)_(n-s)),   j = 1 ... N-k+1,

    a mixture of the likelihood ratios of K = k - 1 + j right answers to K = k - 1, the nearest
    number that is too small. The weights w_j are proportional to 1 / (j + isqrt(N)): uniform in the
    logarithm of the distance, except for distances that only the last items show. E is a martingale
    for K = k - 1, as long as right and wrong answers are left. For smaller K it is a supermartingale,
    because the next ratio is larger after a right answer than after a wrong one, and right answers
    are less likely. Mixtures of this kind:
    Robbins 1970, Ann. Math. Stat. 41, 1397-1409; without replacement: Waudby-Smith & Ramdas 2020,
    "Confidence sequences for sampling without replacement".

    ``inf`` with ``least`` right answers, ``-inf`` if too few items remain. Increases with
    ``correct`` and decreases with ``least``. Time and memory are O(N). Raises ValueError for
    inconsistent counts.
    """
    answered, population = _validation.part("answered", answered, "population", population)
    correct, answered = _validation.part("correct", correct, "answered", answered)
    wrong = answered - correct
    if correct >= least:
        return math.inf
    if wrong > population - least:
        return -math.inf
    logs = log_factorials(population)
    edge = least - 1
    null = logs[edge] - logs[edge - correct]
    null += logs[population - edge] - logs[population - edge - wrong]
    # Numbers of right answers that are still possible; the other ratios are 0.
    possible = np.arange(least, population - wrong + 1)
    ratios = logs[possible] - logs[possible - correct]
    ratios += logs[population - possible] - logs[population - possible - wrong]
    weights = mixture_weights(population - edge, math.isqrt(population))[: len(possible)]
    return log_sum_exp(weights + ratios) - float(null)


def log_evidence_below(population: int, least: int, answered: int, correct: int) -> float:
    """Return the log evidence that fewer than ``least`` of all items have right answers.

    It is ``log_evidence_at_least`` of the wrong answers: K < k if N - K >= N - k + 1.
    """
    answered, population = _validation.part("answered", answered, "population", population)
    correct, answered = _validation.part("correct", correct, "answered", answered)
    return log_evidence_at_least(population, population - least + 1, answered, answered - correct)


def count_interval(population: int, answered: int, correct: int, alpha: float) -> tuple[int, int]:
    """Return the confidence sequence of the number of right answers among all items.

    It consists of the numbers that neither side rejects at alpha / 2. All intervals of a run
    together contain the number with probability at least 1 - alpha, so that the interval is valid
    whenever one stops and for every bound that is chosen later (Darling & Robbins 1967, PNAS 58,
    66-68; Howard et al. 2021, Ann. Stat. 49, 1055-1080). O(N log N). Raises ValueError unless 0 <
    alpha < 1.
    """
    limit = math.log(2 / _validation.confidence(alpha, "alpha"))
    certain, possible = correct, population - (answered - correct)
    low, high = certain, possible
    while low < high:  # the largest number with enough evidence of at least this many
        middle = (low + high + 1) // 2
        if log_evidence_at_least(population, middle, answered, correct) >= limit:
            low = middle
        else:
            high = middle - 1
    least = low
    low, high = certain, possible
    while low < high:  # the smallest number with enough evidence of at most this many
        middle = (low + high) // 2
        if log_evidence_below(population, middle + 1, answered, correct) >= limit:
            high = middle
        else:
            low = middle + 1
    return least, low


_RATES = 21  # alternatives from the largest possible rate down to a 1/1024 of the distance


def log_evidence_rate_above(rate: float, answered: int, correct: int) -> float:
    """Return the log evidence that independent answers are right with a probability above ``rate``.

    For benchmarks without an end, whose items are generated: the mean of the likelihood ratios of
    the rates p_j = p + (1 - p) 2^(-j/2), j = 0 ... 20, to p. For a finite benchmark
    ``log_evidence_at_least`` needs fewer items. Robbins 1970, Ann. Math. Stat. 41, 1397-1409.
    Raises ValueError for a rate outside [0, 1] or inconsistent counts.
    """
    rate = _validation.proportion("rate", rate)
    correct, answered = _validation.part("correct", correct, "answered", answered)
    if rate == 0:
        return math.inf
    if rate == 1:
        return -math.inf
    rates = rate + (1 - rate) * 2.0 ** (-np.arange(_RATES) / 2)
    values = correct * np.log(rates / rate)
    if answered > correct:
        with np.errstate(divide="ignore"):
            values = values + (answered - correct) * np.log((1 - rates) / (1 - rate))
    return log_sum_exp(values) - math.log(_RATES)


def log_evidence_rate_below(rate: float, answered: int, correct: int) -> float:
    """Return the log evidence that answers are right with a probability below ``rate``.

    It is ``log_evidence_rate_above`` of the wrong answers.
    """
    rate = _validation.proportion("rate", rate)
    correct, answered = _validation.part("correct", correct, "answered", answered)
    return log_evidence_rate_above(1 - rate, answered, answered - correct)


def log_sum_exp(values: Floats) -> float:
    """Return log(sum(exp(values))) without overflow; ``-inf`` for a sum of zeros."""
    largest = float(values.max())
    if not math.isfinite(largest):
        return largest
    return largest + math.log(float(np.exp(values - largest).sum()))


@lru_cache(maxsize=128)
def log_factorials(size: int) -> Floats:
    """Return log(0!) … log(size!)."""
    logs: Floats = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])
    logs.flags.writeable = False
    return logs


@lru_cache(maxsize=256)
def mixture_weights(count: int, shift: int) -> Floats:
    """Return the logarithms of weights proportional to 1 / (j + shift), j = 1 … count."""
    weights = 1.0 / (np.arange(1, count + 1) + shift)
    logs: Floats = np.log(weights / weights.sum())
    logs.flags.writeable = False
    return logs
