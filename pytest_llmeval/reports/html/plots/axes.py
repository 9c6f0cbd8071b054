"""The axis of a plot: where a value stands on it, and which values are marked."""

from __future__ import annotations

import math
from collections.abc import Callable

Scale = Callable[[float], float]


def scale(low: float, high: float, left: float, right: float) -> Scale:
    """From values between ``low`` and ``high`` to places between ``left`` and ``right``."""
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return left + (min(max(value, low), high) - low) / span * (right - left)

    return place


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``, both included where they are round."""
    raw = (high - low) / max(1, about)
    power = 10 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next((m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999), power * 10)
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [round((first + n) * step, 10) for n in range(count)]
