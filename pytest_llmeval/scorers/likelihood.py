"""Scorers over the log-likelihoods of an item's choices: ``letter``, ``cloze``, ``likelihood``.

All take the first of equal maxima, as lm-evaluation-harness does, and record that there was a
tie. Scores that cannot be compared are errors: an argmax over NaN or over nothing but -inf is
option A, and a broken model would score a quarter. Where all choices have one value the score
records that too (``all_tied``): a few such items happen, many are a server that returns the value
of other tokens, such as vLLM with a BOS token in its text offsets.
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
"""Relative (and, near 0, absolute) difference up to which log-likelihoods count as the same.

A few roundings of single precision: the same token, evaluated in two batches or printed twice.
Which choice is highest is decided exactly, whatever this is.
"""


def letter(item: Item, response: Response) -> Score:
    """The option whose letter has the highest log-likelihood (lm-eval's ``acc``).

    An endpoint that could not tell which is highest has generated the letter instead: then
    the text is read as ``choice`` reads it.
    """
    if response.text is not None and not response.logprobs:
        return choice(item, response)
    fault = _fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, response.logprobs)


def cloze(item: Item, response: Response) -> Score:
    """The option whose text has the highest log-likelihood per character.

    Characters of the text without the space before it, as in lm-eval's ``acc_norm``.
    """
    fault = _fault(item, response)
    if fault is None and not all(item.options):
        fault = "an option is empty: its log-likelihood per character is undefined"
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, per_character(response.logprobs, item.options))


def per_character(logprobs: Sequence[float], options: Sequence[str]) -> list[float]:
    """The values that ``cloze`` compares. ValueError for another number of options."""
    return [value / len(option) for value, option in zip(logprobs, options, strict=True)]


def likelihood(item: Item, response: Response) -> Score:
    """The option whose text has the highest log-likelihood, whatever its length.

    What lm-eval calls ``acc`` where the texts of the options are compared.
    """
    fault = _fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, response.logprobs)


def _fault(item: Item, response: Response) -> str | None:
    """Why the response's log-likelihoods cannot be compared, or None."""
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
    """The score of the highest of ``values``, which are made of the response's own."""
    highest = max(values)
    chosen = values.index(highest)
    return Score(
        Outcome.CORRECT if chosen == item.gold else Outcome.WRONG,
        answer=LABELS[chosen],
        tie=values.count(highest) > 1,
        all_tied=_all_same(response.logprobs) or _all_same(values),
    )


def _all_same(values: Sequence[float]) -> bool:
    """Whether several values are one and the same, but for rounding."""
    return len(values) > 1 and math.isclose(
        min(values), max(values), rel_tol=SAME_VALUE, abs_tol=SAME_VALUE
    )
