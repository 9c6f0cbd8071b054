"""What a measurement could have seen: smallest drops that are found with a given power.

Cohen 1988, "Statistical Power Analysis for the Behavioral Sciences": a drop is found with power
1 - beta where it is z(1 - alpha/2) + z(1 - beta) standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.proportions import both_errors
from pytest_llmeval.metrics.proportions import critical
from pytest_llmeval.metrics.proportions import two_sided


def detectable_drop(
    mean: float, size: float, confidence: float = 0.95, power: float = 0.8
) -> float | None:
    """Smallest drop below ``mean`` that an interval over ``size`` items finds with this power.

    ``size`` as ``effective_size`` gives it. The standard error is that of Agresti & Coull 1998
    (Am. Stat. 52, 119-126), with p~ = (c + z^2/2) / (n + z^2): all right is not certainty.
    At most 1; 0 for an infinite size, None for 0.
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
    """Smallest drop between two runs over the same items that a paired test finds, with power.

    (z(1 - alpha/2) + z(power)) sqrt(psi / n), psi the share of items that changed: Connor 1987
    (Biometrics 43, 207-211) with psi in place of psi - drop^2, so rather too large, and one
    change each way added, so that no change is not certainty. Where few items changed, no less than
    the drop of which ``smallest_significant`` items or more become wrong with this power, which
    the exact test needs at least. At most 1; None with fewer items than that.
    """
    changed = _validation.count("newly_wrong", newly_wrong) + _validation.count(
        "newly_right", newly_right
    )
    changed, items = _validation.part("changed", changed, "items", items)
    return detectable_mean_change(items, changed, 1.0, alpha, power)


def detectable_mean_change(
    items: int, squares: float, least: float, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """``detectable_paired_drop`` for items that change by parts, the smallest being ``least``.

    ``squares`` sums the squares of the changes; the exact test is then ``sign_flip``.
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
    """``detectable_mean_change`` of ``stratified_change``: (weight, differences) of every part.

    With the same two items dealt out; without the exact test's least, as p is an approximation
    there. At most 1; None without items.
    """
    factor = both_errors(critical(alpha), power)
    sizes = [(weight, sum(changes.values()), changes) for weight, changes in parts]
    total = math.fsum(weight * weight / items for weight, items, _ in sizes if items)
    if not total:
        return None
    variance = 0.0
    for weight, items, changes in sizes:
        if items:
            dealt = 2 * (weight * weight / items) / total
            squares = sum(d * d * m for d, m in changes.items()) / scale**2
            variance += weight * weight * (squares + dealt) / (items + dealt) / items
    return min(1.0, factor * math.sqrt(variance))


def smallest_significant(comparisons: int, alpha: float) -> int:
    """How many items must have become wrong, and none right, for a significant drop.

    The least k with an exact McNemar p, 2 / 2^k, of at most alpha / comparisons: the strictest
    step of Holm's adjustment. No smaller change can be told from chance, whatever its subject.
    """
    if _validation.count("comparisons", comparisons) == 0:
        raise ValueError("comparisons must be at least 1")
    alpha = _validation.confidence(alpha, "alpha")
    changed = 1
    while comparisons * 2.0 ** (1 - changed) > alpha:
        changed += 1
    return changed
