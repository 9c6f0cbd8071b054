"""The part of a reply that scorers read: no reasoning, no invented next question.

Every step is linear in the text, whatever the text is.
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
# "Step 1: read the Question again" goes on; a line that starts with "Question:" does not.
# "* Q:" is an item of a list, such as a variable.
_NEXT = re.compile(
    # What may follow the line break at all: most lines begin with something else.
    rf"\n(?=[ \t#>*_{_FIRSTS}])"
    r"[ \t]{0,4}(?:#{1,6} |>[ ]?)?(?:\*\*|__)?(?:"
    + "|".join(map(re.escape, QUESTION_WORDS))
    + r")[\ \t]?\d{0,4}[*]{0,2}"
    r"[\ \t]?[:：]"
)

# A sentence or two without a number or a letter that may be an answer: "Let me restate it."
_LEAD_IN = re.compile(r"(?s:(?:(?!\d|(?<!\w)[B-HJ-Z](?!\w)).){0,250})[.:!…。：！।۔]")


def what_is_wrong(item: Item, response: Response, *, options: bool = False) -> str | None:
    """Why the response cannot be scored as text (with ``options``: as a choice), or None."""
    if response.error is not None:
        return response.error
    if response.text is None:
        return "the response has no text"
    if options and (not item.options or not isinstance(item.gold, int)):
        return "the item has no options to choose from"
    return None


def verdict(answer: str | None, correct: bool) -> Score:
    """The score of what was read: nothing is ``unparsed``, never a guess."""
    if answer is None:
        return Score(Outcome.UNPARSED)
    return Score(Outcome.CORRECT if correct else Outcome.WRONG, answer=answer)


def without_reasoning(text: str) -> str | None:
    """``text`` without reasoning and what follows the end of the turn; None without an answer.

    There is no answer where a reply ends within its reasoning (``core.reasoning_marks``).
    """
    reply = split_reasoning(text)
    return reply.answer if reply.closed else None


def own_answer(text: str, answered: Callable[[str], bool] | None = None) -> str | None:
    """``text`` without reasoning and without what follows the answer to *this* item.

    Cut at the end of the turn and at the first line that opens another question ("Question:"),
    unless that line is part of code. A question behind a short lead-in ("Let me restate it.") is
    this item's own, restated: no value, no denial and, according to ``answered``, no answer comes
    before it. None where reasoning is left open.
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
    """Where the lines that open a question begin."""
    quoted: QuotedRegions | None = None
    for line in _NEXT.finditer(text):
        quoted = quoted or QuotedRegions(text)
        fence = quoted.fence(line.end())
        if quoted.literal(line.end()) is None and (fence is None or not fence.closed):
            yield line.start()
