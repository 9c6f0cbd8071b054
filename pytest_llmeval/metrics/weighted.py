"""Hybrid scores: weighted sums of several scorers' accuracies over the same items."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics.intervals import Interval
from pytest_llmeval.metrics.intervals import score_interval
from pytest_llmeval.metrics.paired_tests import detectable_drop

# A scorer's name may contain a plus, but not one that is followed by a weight.
_NEXT_PART = re.compile(r"\s*\+\s*(?=[0-9.]+(?:[eE][-+]?[0-9]+)?\s*[*\s])")
_PART = re.compile(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*[*\s]\s*(\S+)")


FirstOutcomes = Mapping[tuple[str, str, str], Mapping[str, Outcome]]
"""(model, benchmark, scorer) → item → outcome of its first answer."""


@dataclass(frozen=True, slots=True)
class Hybrid:
    """A hybrid score: ``value`` in [0, 1] over ``items`` items.

    ``name`` has the weights and scorers (``hybrid_name``). ``detectable``: the smallest drop that
    is detected with power 80 %.
    """

    name: str
    value: float
    interval: Interval
    items: int
    detectable: float | None = None


def hybrid_score(
    weights: Mapping[str, float],
    correct: Mapping[str, Mapping[str, bool]],
    confidence: float = 0.95,
) -> Hybrid | None:
    """Return the mean over the items of sum w_s x_s over the scorers s.

    ``weights``: scorer → weight; ``correct``: scorer → item → right. None without items. The
    interval is Wilson's at the effective size m (1 - m) / SE^2, with the standard error of the
    items' weighted sums, which accounts for the correlation of scorers. The size is limited to the
    range from items to answers, and is the number of items without variance (as
    ``effective_size``). Raises ValueError unless the weights are positive and sum to 1 and every
    scorer has the same items.
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
    interval = score_interval(mean, size, confidence)
    return Hybrid(name, mean, interval, len(items), detectable_drop(mean, size))


def hybrid_or_reason(
    weights: Mapping[str, float],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    confidence: float = 0.95,
) -> Hybrid | str:
    """Return the hybrid score of scorer → item → outcome, or the reason why it is undefined.

    It is undefined if a scorer did not run or has errors, or if the scorers have different items.
    """
    missing = [scorer for scorer in weights if scorer not in outcomes]
    if missing:
        return f"scorer {missing[0]!r} did not run"
    own = {scorer: outcomes[scorer] for scorer in weights}
    errors = sum(list(items.values()).count(Outcome.ERROR) for items in own.values())
    if errors:
        return f"its scorers have {errors:,} error{'s' if errors > 1 else ''}"
    if len({frozenset(items) for items in own.values()}) > 1:
        return "its scorers have different items"
    hybrid = hybrid_score(
        weights,
        {
            scorer: {item: outcome is Outcome.CORRECT for item, outcome in items.items()}
            for scorer, items in own.items()
        },
        confidence,
    )
    return "no item was run" if hybrid is None else hybrid


def hybrid_weights(name: str) -> dict[str, float]:
    """Return scorer → weight from a name in the form of ``hybrid_name``.

    Blanks may replace ``*`` and surround ``+``. Raises ValueError for anything else, and unless the
    weights are positive and sum to 1.
    """
    weights: dict[str, float] = {}
    for part in _NEXT_PART.split(name.strip()):
        match = _PART.fullmatch(part)
        try:
            weight, scorer = float(match[1]) if match else 0.0, match[2] if match else ""
        except ValueError:
            scorer = ""
        if not scorer:
            raise ValueError(f"{name!r} is not a hybrid such as '0.7*matched+0.3*letter'")
        if scorer in weights:
            raise ValueError(f"{name!r} names {scorer!r} twice")
        weights[scorer] = weight
    hybrid_name(weights)
    return weights


def hybrid_name(weights: Mapping[str, float]) -> str:
    """Return the name of a hybrid, with decreasing weights: ``0.7*matched+0.3*letter``.

    Raises ValueError unless the weights are positive and sum to 1.
    """
    if any(not weight > 0 for weight in weights.values()):
        raise ValueError(f"the weights are not all positive: {_weights_text(weights)}")
    if not math.isclose(math.fsum(weights.values()), 1.0, rel_tol=1e-9):
        total = math.fsum(weights.values())
        raise ValueError(f"the weights sum to {total:.12g}, not 1: {_weights_text(weights)}")
    ordered = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return "+".join(f"{weight:.12g}*{scorer}" for scorer, weight in ordered)


def _weights_text(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{scorer} {weight:.12g}" for scorer, weight in weights.items())


def _effective_size(scores: list[float], mean: float, scorers: int) -> float:
    items = len(scores)
    if items < 2:
        return float(items)
    squares = math.fsum((score - mean) ** 2 for score in scores)
    if not squares:
        return float(items)
    size = mean * (1 - mean) * items * (items - 1) / squares
    return min(float(items * scorers), max(float(items), size))
