"""Where a value stands in a drawing, and what a subject is called there."""

from __future__ import annotations

from collections.abc import Callable

from ..shown import cut

Scale = Callable[[float], float]


def scale(low: float, high: float, left: float, right: float) -> Scale:
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return left + (min(max(value, low), high) - low) / span * (right - left)

    return place


def readable(subject: str) -> str:
    """A subject's name for people: ``college mathematics``."""
    return cut(subject.replace("_", " "), 44)
