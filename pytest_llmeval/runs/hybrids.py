"""Hybrid scores of a run: weighted scorers of one benchmark, under a name that says so."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_score
from pytest_llmeval.runs.run import Measurement


def hybrids(
    measurements: Iterable[Measurement], weights: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """The hybrid score of every model and benchmark that has all of the scorers, as JSON values.

    Over the items that all of them answered; where one has errors, or other items than the
    others, ``value`` is None: a mean of unlike parts is no score. Of several samples the first
    counts.
    """
    found: dict[tuple[str, str], dict[str, Measurement]] = {}
    for one in measurements:
        named = (one.result.model, one.result.benchmark)
        found.setdefault(named, {})[one.result.scorer] = one
    for (model, benchmark), own in found.items():
        if weights.keys() <= own.keys():
            yield {
                "model": model,
                "benchmark": benchmark,
                "name": hybrid_name(weights),
                **_score(weights, own),
            }


def hybrid_line(hybrid: Mapping[str, Any]) -> str:
    """A hybrid score in words."""
    name = f"{hybrid['benchmark']}: {hybrid['name']}"
    if hybrid["value"] is None:
        return f"{name} is not told: its scorers have errors or different items"
    low, high = hybrid["interval"]
    return f"{name} = {hybrid['value']:.4f}, between {low:.4f} and {high:.4f} (95 %)"


def _score(weights: Mapping[str, float], own: Mapping[str, Measurement]) -> dict[str, Any]:
    correct: dict[str, dict[str, bool]] = {}
    for scorer in weights:
        items = own[scorer].items
        if any(Outcome.ERROR in item.outcomes for item in items.values()):
            return {"value": None, "interval": None, "items": 0}
        correct[scorer] = {
            name: item.outcomes[0] is Outcome.CORRECT for name, item in items.items()
        }
    if len({frozenset(items) for items in correct.values()}) > 1:
        return {"value": None, "interval": None, "items": 0}
    hybrid = hybrid_score(weights, correct)
    if hybrid is None:
        return {"value": None, "interval": None, "items": 0}
    return {**asdict(hybrid), "interval": list(hybrid.interval)}
