"""Paired tests of two runs over the same items, and the smallest drops that they can detect.

Power: Cohen 1988, "Statistical Power Analysis for the Behavioral Sciences". A drop is detected with
power 1 - beta if it is z(1 - alpha/2) + z(1 - beta) standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.proportions import both_errors
from pytest_llmeval.metrics.proportions import critical
from pytest_llmeval.metrics.proportions import two_sided

if TYPE_CHECKING:
    import numpy as np


def mcnemar(only_baseline: int, only_candidate: int) -> float:
    """Return the exact two-sided p value of McNemar's test.

    The arguments are the numbers of items that only one run has right. Under the null hypothesis
    the smaller count is binomial(n, 1/2) over the n discordant items: min(1, 2 P(X <= min)).
    McNemar 1947, Psychometrika 12, 153-157; exact form in Fagerland, Lydersen & Laake 2013, BMC
    Med. Res. Methodol. 13:91. 1 without discordant items.
    """
    only_baseline = _validation.count("only_baseline", only_baseline)
    only_candidate = _validation.count("only_candidate", only_candidate)
    discordant = only_baseline + only_candidate
    if only_baseline == only_candidate:
        return 1.0  # twice the lower half counts the middle twice
    smaller = min(only_baseline, only_candidate)
    # Imported here because scipy takes longer to import than pytest, and few sessions need it.
    from scipy.special import betainc

    # P(X <= k) = I_1/2(n - k, k + 1); scipy's bdtr has three digits less.
    return min(1.0, 2 * float(betainc(discordant - smaller, smaller + 1, 0.5)))


def sign_flip(differences: Mapping[int, int]) -> float:
    """Return the exact two-sided p value of the paired sign-flip test.

    ``differences``: difference → number of items. Under the null hypothesis each item keeps the
    size of its difference and has either sign with probability 1/2; p is the probability of a sum
    at least as far from 0. Fisher 1935, "The Design of Experiments", sec. 21; Pitman 1937, J. R.
    Stat. Soc. Suppl. 4, 119-130. Equal to ``mcnemar`` if all differences have the same size. Items
    without a difference have no effect.
    """
    sizes: dict[int, int] = {}
    total = 0
    for difference, items in differences.items():
        size = _validation.count("abs(difference)", abs(difference))
        total += difference * _validation.count("items", items)
        if size and items:
            sizes[size] = sizes.get(size, 0) + items
    if len(sizes) <= 1:
        ((size, items),) = sizes.items() or ((1, 0),)
        return mcnemar((items + total // size) // 2, (items - total // size) // 2)
    if total == 0:
        return 1.0
    unit = math.gcd(*sizes)
    whole = sum(size * items for size, items in sizes.items())
    # The sum is 2 S - whole, S being the sum of the positive terms: both tails are S <= least.
    least = (whole - abs(total)) // 2 // unit
    return min(1.0, 2 * sign_flip_tail({s // unit: m for s, m in sizes.items()}, least))


def sign_flip_tail(sizes: Mapping[int, int], most: int) -> float:
    """Return P(sum of size × binomial(items, 1/2) <= most), computed by convolution.

    Every term is positive and every binomial probability correctly rounded, so that small p values
    are accurate, which they would not be with a Fourier transform.
    """
    import numpy as np

    # Only sums up to ``most`` are computed; sizes that extend the range least come first.
    sums = np.ones(1)
    for size, items in sorted(sizes.items(), key=lambda pair: pair[0] * pair[1]):
        chances = _half_binomial(items)
        longer = np.zeros(min(most, len(sums) - 1 + size * items) + 1)
        for rest in range(min(size, len(sums))):
            # Only sums with the same remainder differ by a multiple of the size.
            new = np.convolve(sums[rest::size], chances)
            room = longer[rest::size]
            room += new[: len(room)]
        sums = longer
    return float(sums.sum())


def _half_binomial(items: int) -> np.typing.NDArray[np.float64]:
    import numpy as np

    combinations, chances = 1, []
    for right in range(items + 1):
        chances.append(combinations / (1 << items))
        combinations = combinations * (items - right) // (right + 1)
    return np.array(chances)


def paired_interval(
    differences: Mapping[int, int], scale: int = 1, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the interval of the mean of difference / scale.

    ``differences``: difference → number of items. ``scale``: answers per item, which is the largest
    possible difference. The interval is the normal one of a mean, after one item of +1 and one of
    -1 are added: for 0/1 outcomes the adjusted Wald interval of Bonett & Price 2012 (J. Educ.
    Behav. Stat. 37, 479-488), here also for means over samples. Clipped to [-1, 1] and widened to
    contain the estimate; (-1, 1) without items.
    """
    z = two_sided(confidence)
    if _validation.count("scale", scale) == 0:
        raise ValueError("scale must be at least 1")
    for difference in differences:
        _validation.part("abs(difference)", abs(difference), "scale", scale)
    items = sum(_validation.count("items", m) for m in differences.values())
    if items == 0:
        return -1.0, 1.0
    total = sum(difference * m for difference, m in differences.items())
    squares = sum(difference * difference * m for difference, m in differences.items())
    adjusted = items + 2
    mean = total / (scale * adjusted)
    # One rounded division: (n + 2) sum d^2 - (sum d)^2 has no cancellation in integers.
    spread = adjusted * (squares + 2 * scale * scale) - total * total
    half = z * math.sqrt(spread / (scale * scale * adjusted**3))
    estimate = total / (scale * items)
    return max(-1.0, min(mean - half, estimate)), min(1.0, max(mean + half, estimate))


def stratified_change(
    parts: Sequence[tuple[float, Mapping[int, int]]], scale: int = 1, confidence: float = 0.95
) -> tuple[tuple[float, float], float]:
    """Return the interval and the two-sided p value of a weighted mean of changes.

    ``parts``: (weight, differences) of every subject; weights sum to 1. It is ``paired_interval``
    for a random sample of items per subject: its two added items are distributed over the parts by
    their shares of w^2 / n, as in ``stratified_interval``, and p is that of the normal
    distribution, 1 without items.
    """
    z = two_sided(confidence)
    sizes = [(weight, sum(changes.values()), changes) for weight, changes in parts]
    total = math.fsum(weight * weight / items for weight, items, _ in sizes if items)
    if not total:
        return (-1.0, 1.0), 1.0
    means, variances, estimates = [], [], []
    for weight, items, changes in sizes:
        if not items:
            continue
        extra = 2 * (weight * weight / items) / total
        change = sum(d * m for d, m in changes.items()) / scale
        squares = sum(d * d * m for d, m in changes.items()) / scale**2
        mean = change / (items + extra)
        variance = ((squares + extra) / (items + extra) - mean * mean) / (items + extra)
        means.append(weight * mean)
        variances.append(weight * weight * variance)
        estimates.append(weight * change / items)
    centre, error = math.fsum(means), math.sqrt(math.fsum(variances))
    estimate = math.fsum(estimates)
    low, high = centre - z * error, centre + z * error
    interval = max(-1.0, min(low, estimate)), min(1.0, max(high, estimate))
    return interval, math.erfc(abs(centre) / error / math.sqrt(2)) if error else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p values, in the order of the input.

    With p sorted ascending the i-th (from 0) is max over j <= i of min(1, (m - j) p_j); rejecting
    those <= alpha keeps the family-wise error rate <= alpha under any dependence. Holm 1979,
    "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 65-70.
    """
    checked = [_validation.proportion(f"p_values[{i}]", p) for i, p in enumerate(p_values)]
    adjusted = [0.0] * len(checked)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(checked)), key=checked.__getitem__)):
        highest = max(highest, min(1.0, (len(checked) - rank) * checked[index]))
        adjusted[index] = highest
    return adjusted


def detectable_drop(
    mean: float, size: float, confidence: float = 0.95, power: float = 0.8
) -> float | None:
    """Return the smallest drop below ``mean`` that an interval detects with the given power.

    ``size``: an ``effective_size``. The standard error is that of Agresti & Coull 1998 (Am. Stat.
    52, 119-126), with p~ = (c + z^2/2) / (n + z^2), which is positive even if all answers are
    right. At most 1; 0 for an infinite size, None for 0.
    """
    mean = _validation.proportion("mean", mean)
    if not size >= 0:
        raise ValueError(f"size must not be negative, but is {size!r}")
    z = two_sided(confidence)
    factor, square = both_errors(z, power), z * z
    if size == 0:
        return None
    if math.isinf(size):
        return 0.0
    total = size + square
    centre = (mean * size + square / 2) / total
    return min(1.0, factor * math.sqrt(centre * (1 - centre) / total))


def detectable_paired_drop(
    items: int, newly_wrong: int, newly_right: int, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Return the smallest drop between two runs that a paired test detects with the given power.

    (z(1 - alpha/2) + z(power)) sqrt(psi / n), psi being the share of changed items: Connor 1987
    (Biometrics 43, 207-211) with psi in place of psi - drop^2, which is conservative. One change
    in each direction is added, so that the result is positive without changes. It is at least the
    drop with which ``smallest_significant`` items, the minimum for the exact test, become wrong
    with the given power. At most 1; None with fewer items than that minimum.
    """
    changed = _validation.count("newly_wrong", newly_wrong) + _validation.count(
        "newly_right", newly_right
    )
    changed, items = _validation.part("changed", changed, "items", items)
    return detectable_mean_change(items, changed, 1.0, alpha, power)


def detectable_mean_change(
    items: int, squares: float, least: float, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Return ``detectable_paired_drop`` for fractional changes, the smallest being ``least``.

    ``squares``: the sum of the squares of the changes. The exact test is then ``sign_flip``.
    """
    factor = both_errors(critical(alpha), power)
    needed = smallest_significant(1, alpha)
    if items < needed:
        return None
    from scipy.special import betaincinv

    normal = factor * math.sqrt((squares + 2) / (items + 2) / items)
    # P(binomial(n, d) >= k) is the incomplete beta function I_d(k, n - k + 1).
    exact = float(betaincinv(needed, items - needed + 1, power))
    return min(1.0, max(normal, exact * least))


def detectable_stratified_change(
    parts: Sequence[tuple[float, Mapping[int, int]]],
    scale: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float | None:
    """Return ``detectable_mean_change`` for ``stratified_change`` and its ``parts``.

    The same two items are added; the minimum for the exact test does not apply, because p is
    approximate. At most 1; None without items.
    """
    factor = both_errors(critical(alpha), power)
    sizes = [(weight, sum(changes.values()), changes) for weight, changes in parts]
    total = math.fsum(weight * weight / items for weight, items, _ in sizes if items)
    if not total:
        return None
    variance = 0.0
    for weight, items, changes in sizes:
        if items:
            extra = 2 * (weight * weight / items) / total
            squares = sum(d * d * m for d, m in changes.items()) / scale**2
            variance += weight * weight * (squares + extra) / (items + extra) / items
    return min(1.0, factor * math.sqrt(variance))


def smallest_significant(comparisons: int, alpha: float) -> int:
    """Return the smallest number of items that make a drop significant if they become wrong.

    It is the smallest k with an exact McNemar p, 2 / 2^k, of at most alpha / comparisons, the
    strictest step of Holm's adjustment, if no item becomes right. Smaller changes cannot be
    distinguished from chance in any subject.
    """
    if _validation.count("comparisons", comparisons) == 0:
        raise ValueError("comparisons must be at least 1")
    alpha = _validation.confidence(alpha, "alpha")
    changed = 1
    while comparisons * 2.0 ** (1 - changed) > alpha:
        changed += 1
    return changed
