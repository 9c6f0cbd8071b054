"""How numbers are written where people read them."""

from __future__ import annotations

from collections.abc import Sequence


def number(value: float | None, digits: int = 4, *, none: str = "-") -> str:
    """``0.2812``."""
    return none if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 4, *, none: str = "-") -> str:
    """``+0.0312``; what is zero when it is rounded has no minus."""
    return none if value is None else f"{round(value, digits) + 0.0:+.{digits}f}"


def interval(value: Sequence[float] | None, *, none: str = "-") -> str:
    """``[0.2740, 0.2889]``; what is zero when it is rounded has no minus."""
    if value is None:
        return none
    low, high = (round(end, 4) + 0.0 for end in value)
    return f"[{low:.4f}, {high:.4f}]"


def gain_interval(accuracy: Sequence[float] | None, chance: float) -> tuple[float, float] | None:
    """The interval of the gain over a chance level below 1, from that of the accuracy."""
    if accuracy is None:
        return None
    low, high = ((end - chance) / (1 - chance) for end in accuracy)
    return low, high


def probability(p: float) -> str:
    """A p value: ``0.0123``, or ``<0.0001``."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def count(value: int, noun: str) -> str:
    """``1 item``, ``1,234 items``."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"
