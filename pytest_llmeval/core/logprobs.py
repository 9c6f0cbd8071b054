"""Log-likelihoods of an item's choices: whether they can be compared, and whether they are equal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_llmeval.core.items import Item
from pytest_llmeval.core.request import Response

SAME_VALUE = 1e-6
"""Relative (near 0, absolute) difference up to which log-likelihoods count as equal.

It covers a few roundings in single precision, such as those of a token that is evaluated in two
batches. The highest choice is determined exactly, without this tolerance.
"""


def logprobs_fault(item: Item, response: Response) -> str | None:
    """Return why the response's log-likelihoods cannot be compared, or None."""
    if response.error is not None:
        return response.error
    values, options = response.logprobs, len(item.options)
    if not options or not isinstance(item.gold, int):
        return "the item has no options to choose from"
    if len(values) != options:
        return f"{len(values)} log-likelihoods for {options} options"
    if any(math.isnan(value) or value == math.inf for value in values):
        return f"log-likelihoods are not finite: {list(values)}"
    if all(value == -math.inf for value in values):
        return f"no choice has a log-likelihood: all {options} are -inf"
    return None


def all_same(values: Sequence[float]) -> bool:
    """Return True if several values are equal up to rounding."""
    return len(values) > 1 and math.isclose(
        min(values), max(values), rel_tol=SAME_VALUE, abs_tol=SAME_VALUE
    )
