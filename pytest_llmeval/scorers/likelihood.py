"""Scorers of the log-likelihoods of an item's choices: ``letter``, ``cloze``, ``likelihood``.

All take the first of equal maxima, as lm-evaluation-harness does, and record the tie. Values that
cannot be compared are errors: an argmax over NaN or only over -inf is option A, so that a broken
model would score a quarter. The score also records that all choices have the same value
(``all_tied``): this is normal for a few items, but many indicate a server that returns values of
other tokens, such as vLLM with a BOS token in its text offsets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.choice.reader import choice

SAME_VALUE = 1e-6
"""Relative (near 0, absolute) difference up to which log-likelihoods count as equal.

It covers a few roundings in single precision, such as those of a token that is evaluated in two
batches. The highest choice is determined exactly, without this tolerance.
"""


def letter(item: Item, response: Response) -> Score:
    """Choose the option whose letter has the highest log-likelihood (lm-eval's ``acc``).

    An endpoint that cannot determine the highest one generates the letter; then the text is scored
    by ``choice``.
    """
    if response.text is not None and not response.logprobs:
        return choice(item, response)
    fault = _fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, response.logprobs)


def cloze(item: Item, response: Response) -> Score:
    """Choose the option whose text has the highest log-likelihood per character.

    The space before the text does not count as a character, as in lm-eval's ``acc_norm``.
    """
    fault = _fault(item, response)
    if fault is None and not all(item.options):
        fault = "an option is empty: its log-likelihood per character is undefined"
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, per_character(response.logprobs, item.options))


def per_character(logprobs: Sequence[float], options: Sequence[str]) -> list[float]:
    """Return the values that ``cloze`` compares; raises ValueError for lists of unequal length."""
    return [value / len(option) for value, option in zip(logprobs, options, strict=True)]


def likelihood(item: Item, response: Response) -> Score:
    """Choose the option whose text has the highest log-likelihood, independent of its length.

    This is lm-eval's ``acc`` for tasks that compare the texts of the options.
    """
    fault = _fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, response.logprobs)


def _fault(item: Item, response: Response) -> str | None:
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


def _first_maximum(item: Item, response: Response, values: Sequence[float]) -> Score:
    """Return the score of the highest of ``values``, which are derived from the log-likelihoods."""
    highest = max(values)
    chosen = values.index(highest)
    return Score(
        Outcome.CORRECT if chosen == item.gold else Outcome.WRONG,
        answer=LABELS[chosen],
        tie=values.count(highest) > 1,
        all_tied=all_same(response.logprobs) or all_same(values),
    )


def all_same(values: Sequence[float]) -> bool:
    """Return True if several values are equal up to rounding."""
    return len(values) > 1 and math.isclose(
        min(values), max(values), rel_tol=SAME_VALUE, abs_tol=SAME_VALUE
    )
