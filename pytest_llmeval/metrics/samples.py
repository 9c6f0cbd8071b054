"""Metrics over n samples of an item of which c are correct, and over many such items.

Binomial coefficients are integers, followed by one correctly rounded division, so there is neither
overflow nor cancellation for any n (under 10 ms at n = 10,000).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.metrics import _validation

Tally = Mapping[tuple[int, int], int]
"""(answered, correct) of an item → number of such items."""


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the probability that at least one of k of the n samples is correct.

    The k samples are selected at random without replacement, c of the n being correct:
    1 - C(n-c, k) / C(n, k), the unbiased estimator of Chen et al. 2021 (arXiv:2107.03374, eq. 1).
    None if n < k, since it cannot be estimated from fewer samples.
    """
    n, c, k = _arguments(n, c, k)
    if n < k:
        return None
    # C(n-c, k) / C(n, k) == C(n-k, c) / C(n, c); the form with smaller numbers is used.
    few, many = sorted((k, c))
    every = math.comb(n, few)
    return (every - math.comb(n - many, few)) / every


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Return the probability that all of k of the n samples are correct.

    The k samples are selected at random without replacement, c of the n being correct:
    C(c, k) / C(n, k), "pass^k" of Yao et al. 2024 (tau-bench, arXiv:2406.12045). None if n < k.
    """
    n, c, k = _arguments(n, c, k)
    return math.comb(c, k) / math.comb(n, k) if n >= k else None


def mean_pass_at_k(tally: Tally, k: int) -> float | None:
    """Return the mean of ``pass_at_k`` over items: pass@k as in Chen et al. 2021, eq. 1.

    None without items, and if any item has fewer than k answers: without these items, the score
    of a model whose hard items ended in errors would be too high.
    """
    return _mean_over_items(tally, pass_at_k, k)


def mean_pass_hat_k(tally: Tally, k: int) -> float | None:
    """Return the mean of ``pass_hat_k`` over items (Yao et al. 2024).

    None as ``mean_pass_at_k``.
    """
    return _mean_over_items(tally, pass_hat_k, k)


def clustered_standard_error(tally: Tally) -> float | None:
    """Return the standard error of the accuracy over all answers, clustered by item.

    sqrt(I / (I - 1) * sum (c_i - p n_i)^2) / sum n_i over the I items: the ratio estimator of
    Cochran 1977, "Sampling Techniques", ch. 6, without the finite-population factor; the
    items are the clusters of Miller 2024 (arXiv:2411.00640, sec. 2.2). With one answer per item
    it is ``standard_error``. None for fewer than two items; 0 if all items have the same rate,
    although the accuracy is not certain.
    """
    cells = _validation.cells(tally)
    items, answers, correct = totals(cells)
    if items < 2:
        return None
    # In integers, with one rounded division: (c_i - p n_i) N = c_i N - C n_i.
    squares = sum(m * (c * answers - correct * n) ** 2 for n, c, m in cells)
    return math.sqrt(items * squares / ((items - 1) * answers**4))


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """The sources of the variance of a mean over items and samples.

    ``between_items``: variance of the items' true rates, the unbiased estimate limited to at least
    0. ``within_items``: mean over items of p_i (1 - p_i), the variance of a further sample.
    """

    between_items: float
    within_items: float
    items: int
    samples: int

    @property
    def standard_error(self) -> float:
        """Standard error of the mean: sqrt((between + within / samples) / items)."""
        within = self.within_items / self.samples
        return math.sqrt((self.between_items + within) / self.items)

    @property
    def items_share(self) -> float | None:
        """Share of the mean's variance that more items can reduce, but more samples cannot.

        Near 1 only more items help; near 0 more samples help as well. None without variance.
        """
        whole = self.between_items + self.within_items / self.samples
        return self.between_items / whole if whole else None


def variance_components(tally: Tally) -> VarianceComponents | None:
    """Return the between-item and within-item variance, from n samples of each item.

    One-way random-effects analysis of variance (Searle, Casella & McCulloch 1992, "Variance
    Components", ch. 3; for benchmarks Miller 2024, arXiv:2411.00640, sec. 3): within is the
    mean of c (n - c) / (n (n - 1)), between the variance of c / n minus within / n. None unless
    there are at least two items, all with the same n >= 2.
    """
    cells = _validation.cells(tally)
    items, _, correct = totals(cells)
    sizes = {n for n, _, _ in cells}
    if items < 2 or len(sizes) != 1 or (n := sizes.pop()) < 2:
        return None
    within = sum(m * c * (n - c) for _, c, m in cells) / (items * n * (n - 1))
    squares = sum(m * (c * items - correct) ** 2 for _, c, m in cells)
    means = squares / (items * items * (items - 1) * n * n)
    return VarianceComponents(max(0.0, means - within / n), within, items, n)


@dataclass(frozen=True, slots=True)
class SampleSpread:
    """Accuracies of several samples of the same items: mean, variance, interval of the mean."""

    mean: float
    variance: float
    interval: tuple[float, float]


def sample_spread(accuracies: Sequence[float], confidence: float = 0.95) -> SampleSpread | None:
    """Return the variation of the accuracy between samples (seeds) of the same items.

    Variance with n - 1; the interval is Student's t (1908, "The probable error of a mean",
    Biometrika 6, 1-25), clipped to [0, 1]. It is valid for further samples of the same items, not
    for other items. None for fewer than two samples.
    """
    values = [_validation.proportion(f"accuracies[{i}]", a) for i, a in enumerate(accuracies)]
    tail = (1 - _validation.confidence(confidence)) / 2
    if len(values) < 2:
        return None
    from scipy.special import stdtrit

    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = -float(stdtrit(len(values) - 1, tail)) * math.sqrt(variance / len(values))
    return SampleSpread(mean, variance, (max(0.0, mean - half), min(1.0, mean + half)))


def _mean_over_items(
    tally: Tally, value: Callable[[int, int, int], float | None], k: int
) -> float | None:
    total, items = [], 0
    for n, c, m in _validation.cells(tally):
        rate = value(n, c, k)
        if rate is None:
            return None
        total.append(m * rate)
        items += m
    if items == 0:
        _arguments(0, 0, k)
        return None
    return min(1.0, math.fsum(total) / items)


def totals(cells: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    """Return the numbers of items, answers and right answers."""
    return (
        sum(m for _, _, m in cells),
        sum(n * m for n, _, m in cells),
        sum(c * m for _, c, m in cells),
    )


def _arguments(n: int, c: int, k: int) -> tuple[int, int, int]:
    c, n = _validation.part("c", c, "n", n)
    k = _validation.count("k", k)
    if k == 0:
        raise ValueError("k must be at least 1")
    return n, c, k
