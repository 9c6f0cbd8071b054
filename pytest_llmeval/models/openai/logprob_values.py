"""Which numbers of a server's are log-probabilities."""

from __future__ import annotations

import math
from typing import TypeGuard

# Rounding leaves values just above 0.
_TOLERANCE = 1e-3
# Stands for a probability of 0: -9999 (vLLM, OpenAI), -100 and -1000 (gateways), -3.4e38.
_LEAST = -100.0


def is_placeholder(value: object) -> bool:
    """Whether the value stands for a probability of 0 or for one that was not computed."""
    if value is None or value == -math.inf:
        return True
    return is_number(value) and value <= _LEAST and value == round(value)


def as_logprob(value: object) -> float:
    """The value as a natural-log probability, at most 0. Raises ValueError for what is none."""
    if is_number(value) and value > _TOLERANCE:
        raise ValueError(f"a log-probability above 0 ({value})")
    if is_placeholder(value) or not is_number(value) or math.isnan(value):
        raise ValueError(f"{value!r} in place of a log-probability")
    return min(float(value), 0.0)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a number of JSON, NaN and infinities included."""
    return isinstance(value, int | float) and not isinstance(value, bool)
