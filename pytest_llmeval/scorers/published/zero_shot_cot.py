"""The extraction that the logs of "Large Language Models are Zero-Shot Reasoners" show.

The model is asked twice: for its reasoning, then for the answer behind a trigger sentence. What
follows the trigger is read: the first number, or the first of the letters A to E wherever it
stands ("probably (A), (B), (C), or (D)." is A). Numbers are compared as text, without commas on the
one side only: a gold answer of 2,125 is never right in the published figures.
"""

from __future__ import annotations

import re

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.response_text import verdict
from pytest_llmeval.scorers.response_text import what_is_wrong

_TRIGGER = re.compile(
    r"(?:the answer \(arabic numerals\) is|among [A-Z] through [A-Z], the answer is)", re.IGNORECASE
)
_NUMBER = re.compile(r"-?\d+\.?\d*")
_LETTER = re.compile(r"[A-E]")


def zero_shot_cot(item: Item, response: Response) -> Score:
    """The first number, or for an item with options the first letter, after the trigger."""
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    said = after_trigger(response.text or "")
    if item.options:
        match = _LETTER.search(said)
        answer = match.group() if match else None
    else:
        match = _NUMBER.search(said.replace(",", ""))
        answer = match.group().removesuffix(".") if match else None
    # The gold as the data set writes it, where the item holds the whole solution.
    written = item.fields.get("answer", "").rpartition("#### ")[2].strip()
    return verdict(answer, answer == (written or item.gold_label))


def after_trigger(text: str) -> str:
    """What follows the first trigger sentence, without colons; all of a text without one."""
    match = _TRIGGER.search(text)
    return text[match.end() if match else 0 :].replace(":", "")
