"""Tests for two runs over the same items, and for many of them at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.proportions import two_sided

if TYPE_CHECKING:
    import numpy as np


def mcnemar(only_baseline: int, only_candidate: int) -> float:
    """Exact two-sided p value of McNemar's test, from the items that only one run has right.

    Under no difference the smaller count is binomial(n, 1/2) over the n discordant items:
    min(1, 2 P(X <= min)). McNemar 1947, Psychometrika 12, 153-157; exact form in Fagerland,
    Lydersen & Laake 2013, BMC Med. Res. Methodol. 13:91. Without discordant items 1.
    """
    only_baseline = _validation.count("only_baseline", only_baseline)
    only_candidate = _validation.count("only_candidate", only_candidate)
    discordant = only_baseline + only_candidate
    if only_baseline == only_candidate:
        return 1.0  # twice the lower half counts the middle twice
    smaller = min(only_baseline, only_candidate)
    # Here, not above: scipy takes longer to load than pytest, and few sessions compare runs.
    from scipy.special import betainc

    # P(X <= k) = I_1/2(n - k, k + 1); scipy's bdtr is the same with three digits fewer.
    return min(1.0, 2 * float(betainc(discordant - smaller, smaller + 1, 0.5)))


def sign_flip(differences: Mapping[int, int]) -> float:
    """Exact two-sided p value of the paired sign-flip test: difference -> items that have it.

    Under no difference each item keeps the size of its difference and takes either sign with
    probability 1/2; p is the chance of a sum as far from 0 as this one. Fisher 1935, "The Design
    of Experiments", sec. 21; Pitman 1937, J. R. Stat. Soc. Suppl. 4, 119-130. Where every
    difference has the same size it is ``mcnemar``. Items without a difference say nothing.
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
    # The sum is 2 S - whole with S the part of the positive ones: both tails are S <= least.
    least = (whole - abs(total)) // 2 // unit
    return min(1.0, 2 * _sign_flip_tail({s // unit: m for s, m in sizes.items()}, least))


def _sign_flip_tail(sizes: Mapping[int, int], most: int) -> float:
    """P(sum of size × binomial(items, 1/2) <= most), by convolution.

    Every term is positive and every binomial probability correctly rounded, so that small
    p values keep their digits, which a Fourier transform would lose.
    """
    import numpy as np

    # Only sums up to ``most`` are carried along, the sizes that stretch them least first.
    sums = np.ones(1)
    for size, items in sorted(sizes.items(), key=lambda pair: pair[0] * pair[1]):
        chances = _half_binomial(items)
        longer = np.zeros(min(most, len(sums) - 1 + size * items) + 1)
        for rest in range(min(size, len(sums))):
            # Sums that leave the same rest are the ones that a multiple of the size connects.
            new = np.convolve(sums[rest::size], chances)
            room = longer[rest::size]
            room += new[: len(room)]
        sums = longer
    return float(sums.sum())


def _half_binomial(items: int) -> np.typing.NDArray[np.float64]:
    import numpy as np

    ways, chances = 1, []
    for right in range(items + 1):
        chances.append(ways / (1 << items))
        ways = ways * (items - right) // (right + 1)
    return np.array(chances)


def paired_interval(
    differences: Mapping[int, int], scale: int = 1, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean of difference / scale, from difference -> items that have it.

    One item of +1 and one of -1 are added, then the normal interval of a mean is taken: for
    0/1 outcomes the adjusted Wald interval of Bonett & Price 2012 (J. Educ. Behav. Stat. 37,
    479-488), here for means over samples too. Clipped to [-1, 1], widened to contain the
    estimate; (-1, 1) without items. ``scale``: the answers per item, the largest difference.
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
    """Interval and two-sided p value of a weighted mean of changes: (weight, differences) each.

    ``paired_interval`` for a draw of items per subject: its two added items are dealt out to
    the parts by their shares of w^2 / n, as in ``stratified_interval``, and p is that of the
    normal distribution, 1 where there is no item. Weights sum to 1.
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
        dealt = 2 * (weight * weight / items) / total
        change = sum(d * m for d, m in changes.items()) / scale
        squares = sum(d * d * m for d, m in changes.items()) / scale**2
        mean = change / (items + dealt)
        variance = ((squares + dealt) / (items + dealt) - mean * mean) / (items + dealt)
        means.append(weight * mean)
        variances.append(weight * weight * variance)
        estimates.append(weight * change / items)
    centre, error = math.fsum(means), math.sqrt(math.fsum(variances))
    estimate = math.fsum(estimates)
    low, high = centre - z * error, centre + z * error
    interval = max(-1.0, min(low, estimate)), min(1.0, max(high, estimate))
    return interval, math.erfc(abs(centre) / error / math.sqrt(2)) if error else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the order of the input.

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
