"""A weighted sum of several scorers' accuracies over the same items, always under its own name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from .intervals import Interval
from .intervals import score_interval


@dataclass(frozen=True, slots=True)
class Hybrid:
    """``value`` in [0, 1] over ``items``; ``name`` says what it is made of."""

    name: str
    value: float
    interval: Interval
    items: int


def hybrid_score(
    weights: Mapping[str, float],
    correct: Mapping[str, Mapping[str, bool]],
    confidence: float = 0.95,
) -> Hybrid | None:
    """The mean over the items of sum w_s x_s, from scorer → weight and scorer → item → right.

    None without items. The interval is Wilson's at the effective size m (1 - m) / SE^2, with the
    standard error of the items' weighted sums, in which the scorers' agreement on an item is
    contained; kept between the items and the answers, the items where there is no spread
    (as ``effective_size`` does for several answers to an item). ValueError unless the weights are
    positive and sum to 1 and every scorer has the same items.
    """
    name = hybrid_name(weights)
    missing = sorted(weights.keys() - correct.keys())
    if missing:
        raise ValueError(f"{name}: no outcomes of {missing[0]!r}")
    items = sorted(correct[next(iter(weights))])
    for scorer in weights:
        if correct[scorer].keys() != set(items):
            raise ValueError(f"{name}: {scorer!r} has other items than the first scorer")
    if not items:
        return None
    scores = [
        math.fsum(weight * bool(correct[scorer][item]) for scorer, weight in weights.items())
        for item in items
    ]
    mean = min(1.0, math.fsum(scores) / len(items))
    size = _effective_size(scores, mean, len(weights))
    return Hybrid(name, mean, score_interval(mean, size, confidence), len(items))


def hybrid_name(weights: Mapping[str, float]) -> str:
    """Such as ``0.7*matched+0.3*letter``, the heaviest first.

    ValueError unless the weights are positive and sum to 1.
    """
    if any(not weight > 0 for weight in weights.values()):
        raise ValueError(f"weights must be positive, but are {dict(weights)}")
    if not math.isclose(math.fsum(weights.values()), 1.0, rel_tol=1e-9):
        raise ValueError(f"weights must sum to 1, but are {dict(weights)}")
    ordered = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return "+".join(f"{weight:g}*{scorer}" for scorer, weight in ordered)


def _effective_size(scores: list[float], mean: float, scorers: int) -> float:
    items = len(scores)
    if items < 2:
        return float(items)
    squares = math.fsum((score - mean) ** 2 for score in scores)
    if not squares:
        return float(items)
    size = mean * (1 - mean) * items * (items - 1) / squares
    return min(float(items * scorers), max(float(items), size))
