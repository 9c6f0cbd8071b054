"""What every metric asks of its arguments."""

from __future__ import annotations

import operator
from collections.abc import Mapping


def count(name: str, value: int) -> int:
    """The value as a plain int; ValueError unless it is a whole number of at least zero.

    A float is refused even where it is integral: a count that became a float has been averaged
    or went through a table with gaps, and NaN is a float too.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from None
    if number < 0:
        raise ValueError(f"{name} must not be negative, but is {number}")
    return number


def part(name: str, value: int, whole_name: str, whole: int) -> tuple[int, int]:
    """Both as counts; ValueError when the part is larger than the whole."""
    value, whole = count(name, value), count(whole_name, whole)
    if value > whole:
        raise ValueError(f"{name} ({value}) is larger than {whole_name} ({whole})")
    return value, whole


def proportion(name: str, value: float) -> float:
    """The value as a float; ValueError unless it lies in [0, 1] (NaN does not)."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], but is {value!r}")
    return float(value)


def confidence(value: float, name: str = "confidence") -> float:
    """The value as a float; ValueError unless it lies between 0 and 1, both excluded."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, but is {value!r}")
    return float(value)


def cells(tally: Mapping[tuple[int, int], int]) -> list[tuple[int, int, int]]:
    """A tally as sorted (answered, correct, items), each checked; without empty ones."""
    checked = []
    for (answered, correct), items in tally.items():
        correct, answered = part("correct", correct, "answered", answered)
        if count("items", items) and answered:
            checked.append((answered, correct, items))
    return sorted(checked)
