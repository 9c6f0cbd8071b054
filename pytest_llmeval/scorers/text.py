"""``exact_match``: the generated text is the answer, white space around it apart."""

from __future__ import annotations

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score


def exact_match(item: Item, response: Response) -> Score:
    """Compare the stripped text with the gold text, or with the gold's letter.

    An empty text is unparsed; so is, for an item with options, anything but one of its letters.
    """
    if response.error is not None:
        return Score(Outcome.ERROR, error=response.error)
    if response.text is None:
        return Score(Outcome.ERROR, error="the response has no text")
    answer = response.text.strip()
    if not answer or (item.options and answer not in tuple(LABELS[: len(item.options)])):
        return Score(Outcome.UNPARSED)
    correct = answer == item.gold_label.strip()
    return Score(Outcome.CORRECT if correct else Outcome.WRONG, answer=answer)
