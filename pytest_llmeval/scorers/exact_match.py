"""``exact_match``, ``contains`` and ``math``: the answer compared as text, or as an expression.

``exact_match`` and ``contains``: the answer compared as text.

Nothing is forgiven unless it is asked for: each option of ``normalise`` is off by default, and a
scorer with some of them says so in its name (``exact_match+case+punctuation``).
"""

from __future__ import annotations

import importlib
import re
import threading
import unicodedata
from collections.abc import Callable
from collections.abc import Collection

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.response_text import own_answer
from pytest_llmeval.scorers.response_text import verdict
from pytest_llmeval.scorers.response_text import what_is_wrong
from pytest_llmeval.scorers.response_text import without_reasoning

_ARTICLES = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
OPTIONS = ("articles", "case", "punctuation", "spaces")


def normalise(
    text: str,
    *,
    spaces: bool = False,
    case: bool = False,
    punctuation: bool = False,
    articles: bool = False,
) -> str:
    """``text`` without white space at its ends, and without what else is asked for.

    ``case``: differences of case. ``punctuation``: every character that Unicode calls
    punctuation. ``articles``: the words a, an, the. ``spaces``: runs of white space become one
    blank; after the others, so that what they leave behind goes too. All four together are
    SQuAD's normalisation.
    """
    if case:
        text = text.casefold()
    if punctuation:
        marks = [char for char in set(text) if unicodedata.category(char).startswith("P")]
        text = text.translate(dict.fromkeys(map(ord, marks)))
    if articles:
        text = _ARTICLES.sub(" ", text)
    return " ".join(text.split()) if spaces else text.strip()


def exact_match(item: Item, response: Response) -> Score:
    """The text is the gold text, or the gold's letter; white space at its ends does not count.

    Reasoning is left out. An empty text is unparsed; so is, for an item with options, anything
    but one of its letters.
    """
    return _exact_match(item, response, frozenset())


def exact_match_with(options: Collection[str]) -> Callable[[Item, Response], Score]:
    """``exact_match`` after ``normalise`` with these of its options, on both sides."""
    chosen = frozenset(options)
    return lambda item, response: _exact_match(item, response, chosen)


def _exact_match(item: Item, response: Response, options: frozenset[str]) -> Score:
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    flags = dict.fromkeys(options, True)
    said = (without_reasoning(response.text or "") or "").strip()
    answer, gold = normalise(said, **flags), normalise(item.gold_label, **flags)
    letters = {normalise(label, **flags) for label in LABELS[: len(item.options)]}
    if not answer or (item.options and answer not in letters):
        return verdict(None, False)
    return verdict(said, answer == gold)


def contains(item: Item, response: Response) -> Score:
    """The lenient one: the gold answer occurs somewhere in the text, as a word or words.

    Case and white space do not count; for an item with options it is the gold option's text that
    must occur. A text that lists every answer is right: not for comparing models, only for
    finding out what stricter scorers missed.
    """
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    gold = item.gold_text
    said = (without_reasoning(response.text or "") or "").strip()
    if not said:
        return verdict(None, False)
    return verdict(said, _occurs(_simple(gold), _simple(said)))


def _simple(text: str) -> str:
    return normalise(text, spaces=True, case=True)


def _occurs(part: str, text: str) -> bool:
    """Whether ``part`` occurs in ``text`` without a letter or digit directly beside it."""
    position = text.find(part) if part else -1
    while position >= 0:
        end = position + len(part)
        before = position > 0 and text[position - 1].isalnum() and part[0].isalnum()
        after = end < len(text) and text[end].isalnum() and part[-1].isalnum()
        if not before and not after:
            return True
        position = text.find(part, end)
    return False


_SECONDS = 5
_END = 4000  # characters: the answer is at the end, and the library's time is not linear


def math(item: Item, response: Response) -> Score:
    """The expression that the text ends up with is equal to the gold expression.

    An expression that cannot be read, or not in five seconds, is unparsed; a comparison that takes
    longer is wrong. A gold answer that cannot be read is an error.
    """
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    library = importlib.import_module("math_verify")
    # Its time limits are signals, which only the main thread may set.
    limit = _SECONDS if threading.current_thread() is threading.main_thread() else None
    gold = library.parse(f"${item.gold_label}$", parsing_timeout=limit)
    if not gold:
        return Score(
            Outcome.ERROR, error=f"the gold answer cannot be read: {item.gold_label[:60]!r}"
        )
    said = own_answer(response.text or "")
    answer = library.parse(said[-_END:], parsing_timeout=limit) if said else []
    if not answer:
        return verdict(None, False)
    # The text as it stood comes last.
    return verdict(str(answer[-1]), bool(library.verify(gold, answer, timeout_seconds=limit)))
