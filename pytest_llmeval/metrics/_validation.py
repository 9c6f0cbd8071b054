"""Validation of the arguments of metrics."""

from __future__ import annotations

import operator
from collections.abc import Mapping


def count(name: str, value: int) -> int:
    """Return the value as an int; raise ValueError unless it is a non-negative whole number.

    Floats are rejected even if they are integral: a count that became a float has been averaged
    or comes from a table with missing values, and NaN is a float too.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from None
    if number < 0:
        raise ValueError(f"{name} must not be negative, but is {number}")
    return number


def part(name: str, value: int, whole_name: str, whole: int) -> tuple[int, int]:
    """Return part and whole as ints; raise ValueError if the part is larger than the whole."""
    value, whole = count(name, value), count(whole_name, whole)
    if value > whole:
        raise ValueError(f"{name} ({value}) is larger than {whole_name} ({whole})")
    return value, whole


def proportion(name: str, value: float) -> float:
    """Return the value as a float; raise ValueError unless it is in [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], but is {value!r}")
    return float(value)


def confidence(value: float, name: str = "confidence") -> float:
    """Return the value as a float; raise ValueError unless it is in (0, 1)."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, but is {value!r}")
    return float(value)


def cells(tally: Mapping[tuple[int, int], int]) -> list[tuple[int, int, int]]:
    """Return a tally as sorted and validated (answered, correct, items), without empty entries."""
    checked = []
    for (answered, correct), items in tally.items():
        correct, answered = part("correct", correct, "answered", answered)
        if count("items", items) and answered:
            checked.append((answered, correct, items))
    return sorted(checked)
