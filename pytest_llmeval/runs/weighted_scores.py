"""Hybrid scores of a run: weighted scorers of one benchmark, under a name that says so."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates.verdict import no_measurement
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_of
from pytest_llmeval.runs.measurement import Measurement


def first_outcomes(measurements: Iterable[Measurement]) -> FirstOutcomes:
    """What hybrid scores are made of: the first of several samples, unless one is an error."""
    return {
        one.result.key: {
            name: Outcome.ERROR if Outcome.ERROR in item.outcomes else item.outcomes[0]
            for name, item in one.items.items()
        }
        for one in measurements
    }


def hybrids(
    measurements: Sequence[Measurement], weights: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """The hybrid score of every model and benchmark that has all of the scorers, as JSON values.

    Without a score ``value`` is None and ``reason`` says why. None at all without ``weights``.
    """
    if not weights:
        return
    unmeasured = {
        one.result.key: f"{one.result.scorer} is {reason}"
        for one in measurements
        if (reason := no_measurement(one.result.counts))
    }
    found: dict[tuple[str, str], dict[str, Mapping[str, Outcome]]] = {}
    for (model, benchmark, scorer), outcomes in first_outcomes(measurements).items():
        found.setdefault((model, benchmark), {})[scorer] = outcomes
    for (model, benchmark), own in found.items():
        if weights.keys() <= own.keys():
            about = {"model": model, "benchmark": benchmark, "name": hybrid_name(weights)}
            reasons = [unmeasured.get((model, benchmark, scorer)) for scorer in weights]
            hybrid = next(filter(None, reasons), None) or hybrid_of(weights, own)
            if isinstance(hybrid, str):
                yield {**about, "value": None, "interval": None, "items": 0, "reason": hybrid}
            else:
                yield {**about, **asdict(hybrid), "interval": list(hybrid.interval)}


def hybrid_lines(
    measurements: Sequence[Measurement], weights: Mapping[str, float]
) -> Iterator[str]:
    """The hybrid scores in words, one line for each."""
    return map(hybrid_line, hybrids(measurements, weights))


def hybrid_line(hybrid: Mapping[str, Any]) -> str:
    """A hybrid score in words."""
    name = f"{hybrid['benchmark']}: {hybrid['name']}"
    if hybrid["value"] is None:
        return f"{name} is not told: {hybrid['reason']}"
    low, high = hybrid["interval"]
    return f"{name} = {hybrid['value']:.4f}, between {low:.4f} and {high:.4f} (95 %)"
