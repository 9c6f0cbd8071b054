"""Part of a reply that scorers read, without reasoning and without an invented next question.

Every step takes linear time for any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Iterator

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core.quoted import QuotedRegions
from pytest_llmeval.core.reasoning import split_reasoning
from pytest_llmeval.scorers.answer_words import QUESTION_WORDS
from pytest_llmeval.scorers.choice.tokens import lex

_FIRSTS = re.escape("".join({word[0] for word in QUESTION_WORDS}))
# A line that starts with "Question:" begins a new question; "Step 1: read the Question again" does
# not, and "* Q:" is an item of a list, such as a variable.
_NEXT = re.compile(
    # Characters that may follow the line break: most lines begin with another one.
    rf"\n(?=[ \t#>*_{_FIRSTS}])"
    r"[ \t]{0,4}(?:#{1,6} |>[ ]?)?(?:\*\*|__)?(?:"
    + "|".join(map(re.escape, QUESTION_WORDS))
    + r")[\ \t]?\d{0,4}[*]{0,2}"
    r"[\ \t]?[:：]"
)

# A sentence or two without a number or a letter that may be an answer: "Let me restate it."
_LEAD_IN = re.compile(r"(?s:(?:(?!\d|(?<!\w)[B-HJ-Z](?!\w)).){0,250})[.:!…。：！।۔]")


def scoring_fault(item: Item, response: Response, *, options: bool = False) -> str | None:
    """Return why the response cannot be scored as text (with ``options``: as a choice), or None."""
    if response.error is not None:
        return response.error
    if response.text is None:
        return "the response has no text"
    if options and (not item.options or not isinstance(item.gold, int)):
        return "the item has no options to choose from"
    return None


def text_score(answer: str | None, correct: bool) -> Score:
    """Return the score of an extracted answer; no answer is ``unparsed``, never a guess."""
    if answer is None:
        return Score(Outcome.UNPARSED)
    return Score(Outcome.CORRECT if correct else Outcome.WRONG, answer=answer)


def without_reasoning(text: str) -> str | None:
    """Return ``text`` without reasoning and without what follows the end of the turn.

    None for a reply that ends within its reasoning (``core.reasoning``).
    """
    reply = split_reasoning(text)
    return reply.answer if reply.closed else None


def answer_to_item(text: str, answered: Callable[[str], bool] | None = None) -> str | None:
    """Return ``text`` without reasoning and without what follows the answer to *this* item.

    It ends at the end of the turn or at the first line that begins another question ("Question:"),
    unless that line is part of code. A question after a short lead-in ("Let me restate it.")
    restates this item: before it there is no value, no denial and, according to ``answered``, no
    answer. None if the reasoning has no end.
    """
    visible = without_reasoning(text)
    if visible is None:
        return None
    visible = visible.strip()
    questions = _questions(visible)
    following = next(questions, None)
    if following is not None:
        before = visible[:following].rstrip()
        lead_in = _LEAD_IN.fullmatch(before) and "X" not in lex(before).classes
        if lead_in and not (answered and answered(before)):
            following = next(questions, None)
    return visible if following is None else visible[:following].rstrip()


def _questions(text: str) -> Iterator[int]:
    """Yield the positions of lines that begin a question."""
    quoted: QuotedRegions | None = None
    for line in _NEXT.finditer(text):
        quoted = quoted or QuotedRegions(text)
        fence = quoted.fence(line.end())
        if quoted.literal(line.end()) is None and (fence is None or not fence.closed):
            yield line.start()
