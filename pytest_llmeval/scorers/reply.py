"""What of a reply is read at all: no reasoning block, no invented next question.

Every step is linear in the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.languages import QUESTION_WORDS
from pytest_llmeval.scorers.tokens import lex

_NAMES = "think|thinking|thought|reasoning"
_REASONING = re.compile(
    rf"<(?:{_NAMES}|{_NAMES.upper()})>|</(?:{_NAMES}|{_NAMES.upper()})>|\[/?THINK\]|◁/?think▷"
)
_FIRSTS = re.escape("".join({word[0] for word in QUESTION_WORDS}))
# "Step 1: read the Question again" goes on; a line that starts with "Question:" does not, nor does
# what follows the end of the turn. "* Q:" is an item of a list, such as a variable.
_NEXT = re.compile(
    # What may follow the line break at all: most lines begin with something else.
    rf"\n(?=[ \t#>*_{_FIRSTS}])"
    r"[ \t]{0,4}(?:#{1,6} |>[ ]?)?(?:\*\*|__)?(?:"
    + "|".join(map(re.escape, QUESTION_WORDS))
    + r")[\ \t]?\d{0,4}[*]{0,2}"
    r"[\ \t]?[:：]"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end)\|>|</s>|<end_of_turn>|<eos>"
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
    """``text`` without reasoning blocks; None where one is left open.

    A closing tag without an opening one ends a block that the chat template opened.
    """
    kept: list[str] = []
    inside, position = False, 0
    for tag in _REASONING.finditer(text):
        if "/" not in tag.group():
            if not inside:
                kept.append(text[position : tag.start()])
            inside = True
            continue
        if not inside:
            kept.clear()
        inside, position = False, tag.end()
    return None if inside else "".join([*kept, text[position:]])


def own_answer(text: str, answered: Callable[[str], bool] | None = None) -> str | None:
    """``text`` without reasoning and without what follows the answer to *this* item.

    Cut at the first line that opens another question ("Question:") and at the end of the turn. A
    question behind a short lead-in ("Let me restate it.") is this item's own, restated: no value,
    no denial and, according to ``answered``, no answer comes before it. None where reasoning is
    left open.
    """
    visible = without_reasoning(text)
    if visible is None:
        return None
    visible = visible.strip()
    following = _NEXT.search(visible)
    if following is not None and following.group().startswith("\n"):
        before = visible[: following.start()].rstrip()
        lead_in = _LEAD_IN.fullmatch(before) and "X" not in lex(before).classes
        if lead_in and not (answered and answered(before)):
            following = _NEXT.search(visible, following.end())
    return visible if following is None else visible[: following.start()].rstrip()
