"""Tests of a preference for the published order among random orders of the same texts.

The options of an item, or the items of a shard, have a log-likelihood in their published order and
in orders that were selected at random. If the published order is random as well, its rank among
them is uniform for a model that has not seen it: Oren et al. 2023, "Proving Test Set Contamination
in Black Box Language Models" (arXiv:2310.17623), for items; Ni et al. 2024 (arXiv:2409.01790), for
options. Here the test is exact, by the sum of the ranks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from pytest_llmeval.metrics import _validation

EXACT_GROUPS = 2_000
"""Largest number of groups whose p value is computed exactly."""

LEAST_ITEMS = 20
"""Smallest number of items of a test of options."""

LEAST_SHARDS = 8
"""Smallest number of shards of a test of items."""

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class OrderTest:
    """Ranks of the published orders of all groups, and the test of a preference for them."""

    groups: int
    #: Number of orders of a group, published one included: the smallest and the largest.
    orders: tuple[int, int]
    #: Mean over groups of the share of other orders below the published one; 1/2 by chance.
    mean_rank: float
    #: Groups whose published order is above all others, and their expected share by chance.
    tops: int
    expected_tops: float
    #: One-sided, for a mean rank of at most 1/2 plus the tolerated excess.
    p_value: float
    #: Smallest mean rank that is significant with a probability of 80 %.
    sees: float


def order_test(
    groups: Sequence[Sequence[float]], max_excess: float = 0.0, alpha: float = 0.01
) -> OrderTest | None:
    """Test whether the first value of every group has a higher rank than chance explains.

    ``groups``: log-likelihoods of every group, its published order first. With m values the rank is
    R = (#{lower} + #{equal others} / 2) / (m - 1). If the published order is random, R is uniform
    over the mid-ranks of the group's own values. With ``max_excess`` = 0 the p value is
    P(sum of R >= observed), exact for at most 2,000 groups; otherwise, and for more groups, it is
    that of the normal distribution with z = (mean R - 1/2 - max_excess) / sqrt(mean Var R / n).
    Var R is (m + 1) / (12 (m - 1)) without equal values.

    A group of one value has no rank and is left out. None without groups. Raises ValueError for a
    value that is not a number, and for an excess outside [0, 1/2).
    """
    if not 0 <= max_excess < 0.5:
        raise ValueError(f"max_excess must be in [0, 0.5), but is {max_excess!r}")
    places = [_places(values) for values in groups if len(values) > 1]
    if not places:
        return None
    number = len(places)
    ranks = [own[0] / (2 * (len(own) - 1)) for own in places]
    mean_rank = math.fsum(ranks) / number
    variance = math.fsum(map(_rank_variance, places)) / number
    if max_excess == 0 and number <= EXACT_GROUPS:
        p_value = _exact_tail(places)
    else:
        p_value = _normal_tail(mean_rank - 0.5 - max_excess, math.sqrt(variance / number))
    sizes = [len(own) for own in places]
    return OrderTest(
        groups=number,
        orders=(min(sizes), max(sizes)),
        mean_rank=mean_rank,
        tops=sum(own[0] == 2 * (len(own) - 1) for own in places),
        expected_tops=math.fsum(1 / size for size in sizes) / number,
        p_value=p_value,
        sees=smallest_visible_rank(variance / number, max_excess, alpha),
    )


def differences(
    groups: Sequence[Sequence[float]], reference: Sequence[Sequence[float]]
) -> list[list[float]]:
    """Subtract the log-likelihoods of a reference model: what it prefers, too, is no evidence.

    Raises ValueError for groups of unequal sizes.
    """
    return [
        [value - other for value, other in zip(own, theirs, strict=True)]
        for own, theirs in zip(groups, reference, strict=True)
    ]


def smallest_visible_rank(
    variance: float, max_excess: float = 0.0, alpha: float = 0.01, power: float = 0.8
) -> float:
    """Return the smallest mean rank that is significant at ``alpha`` with a probability ``power``.

    ``variance``: that of the mean rank, (m + 1) / (12 (m - 1) n) for n groups of m values. Normal
    approximation: 1/2 + max_excess + (z(1 - alpha) + z(power)) sqrt(variance), at most 1.
    """
    alpha, power = _validation.confidence(alpha, "alpha"), _validation.confidence(power, "power")
    if not variance >= 0:
        raise ValueError(f"variance must not be negative, but is {variance!r}")
    factor = _NORMAL.inv_cdf(1 - alpha) + _NORMAL.inv_cdf(power)
    return min(1.0, 0.5 + max_excess + factor * math.sqrt(variance))


def _places(values: Sequence[float]) -> tuple[int, ...]:
    """Return twice the mid-rank of every value, from 0 to 2 (m - 1), in the order of the values."""
    if any(math.isnan(value) for value in values):
        raise ValueError(f"log-likelihoods must be numbers, but are {list(values)}")
    counts = Counter(values)
    twice: dict[float, int] = {}
    below = 0
    for value in sorted(counts):
        twice[value] = 2 * below + counts[value] - 1
        below += counts[value]
    return tuple(twice[value] for value in values)


def _rank_variance(places: Sequence[int]) -> float:
    """Return the variance of the rank of a random value of a group; its mean is 1/2."""
    width = len(places) - 1
    squares = sum((place - width) ** 2 for place in places)
    return squares / (len(places) * (2 * width) ** 2)


def _exact_tail(places: Sequence[Sequence[int]]) -> float:
    """Return P(sum of ranks >= observed) if every value of a group is first with equal probability.

    The distribution of the sum is convolved group by group over integers: ranks of all groups in
    units of the least common multiple of their denominators. All terms are positive, so that small
    p values are accurate. Only sums from the observed one on are needed: counted from the top, the
    distances of the ranks from 1 sum to at most ``most``.
    """
    import numpy as np  # only tests with groups need it

    widths = [2 * (len(own) - 1) for own in places]
    unit = math.lcm(*widths)
    factors = [unit // width for width in widths]
    most = sum((width - own[0]) * f for own, width, f in zip(places, widths, factors, strict=True))
    # Groups with short distances first: the array then grows slowly.
    kinds = Counter(
        tuple(sorted((width - place) * factor for place in own))
        for own, width, factor in zip(places, widths, factors, strict=True)
    )
    step = math.gcd(*(distance for kind in kinds for distance in kind), most) or 1
    most //= step
    sums = np.ones(1)
    for kind in sorted(kinds, key=max):
        weights = Counter(distance // step for distance in kind)
        for _ in range(kinds[kind]):
            longer = np.zeros(min(most, len(sums) - 1 + max(weights)) + 1)
            for distance, times in weights.items():
                room = longer[distance : distance + len(sums)]
                room += sums[: len(room)] * (times / len(kind))
            sums = longer
    return min(1.0, float(sums.sum()))


def _normal_tail(excess: float, error: float) -> float:
    if error == 0:
        return 1.0 if excess <= 0 else 0.0
    return 0.5 * math.erfc(excess / error / math.sqrt(2))
