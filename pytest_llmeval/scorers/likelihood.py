"""Scorers of the log-likelihoods of an item's choices: ``letter``, ``cloze``, ``likelihood``.

All take the first of equal maxima, as lm-evaluation-harness does, and record the tie. Values that
cannot be compared are errors: an argmax over NaN or only over -inf is option A, so that a broken
model would score a quarter. The score also records that all choices have the same value
(``all_tied``): this is normal for a few items, but many indicate a server that returns values of
other tokens, such as vLLM with a BOS token in its text offsets.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core import option_label
from pytest_llmeval.core.logprobs import all_same
from pytest_llmeval.core.logprobs import logprobs_fault
from pytest_llmeval.scorers.choice.reader import choice


def letter(item: Item, response: Response) -> Score:
    """Choose the option whose letter has the highest log-likelihood (lm-eval's ``acc``).

    An endpoint that cannot determine the highest one generates the letter; then the text is scored
    by ``choice``.
    """
    if response.text is not None and not response.logprobs:
        return choice(item, response)
    fault = logprobs_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, response.logprobs)


def cloze(item: Item, response: Response) -> Score:
    """Choose the option whose text has the highest log-likelihood per character.

    The space before the text does not count as a character, as in lm-eval's ``acc_norm``.
    """
    fault = logprobs_fault(item, response)
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
    fault = logprobs_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return _first_maximum(item, response, response.logprobs)


def _first_maximum(item: Item, response: Response, values: Sequence[float]) -> Score:
    """Return the score of the highest of ``values``, which are derived from the log-likelihoods."""
    highest = max(values)
    chosen = values.index(highest)
    return Score(
        Outcome.CORRECT if chosen == item.gold else Outcome.WRONG,
        answer=option_label(chosen),
        tie=values.count(highest) > 1,
        all_tied=all_same(response.logprobs) or all_same(values),
    )
