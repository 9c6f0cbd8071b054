"""Scorers ``exact_match`` and ``contains`` (texts) and ``math`` (expressions).

``exact_match`` is strict by default: each option of ``normalise`` is off, and a scorer with some of
them has them in its name (``exact_match+case+punctuation``).
"""

from __future__ import annotations

import importlib
import re
import threading
import unicodedata
from collections.abc import Callable
from collections.abc import Collection

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.core import option_labels
from pytest_llmeval.scorers.response_text import answer_to_item
from pytest_llmeval.scorers.response_text import scoring_fault
from pytest_llmeval.scorers.response_text import text_score
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
    """Return ``text`` without white space at its ends, normalized by the given options.

    ``case``: fold case. ``punctuation``: remove every character that Unicode calls punctuation.
    ``articles``: remove the words a, an, the. ``spaces``: replace runs of white space by one space,
    after the other options. All four together are SQuAD's normalization.
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
    """Compare the text with the gold text or letter, without white space at its ends.

    Reasoning is removed. An empty text is unparsed; for an item with options, so is any text that is
    not one of its letters.
    """
    return _exact_match(item, response, frozenset())


def exact_match_with(options: Collection[str]) -> Callable[[Item, Response], Score]:
    """Return ``exact_match`` after ``normalise`` with these options on both sides."""
    chosen = frozenset(options)
    return lambda item, response: _exact_match(item, response, chosen)


def _exact_match(item: Item, response: Response, options: frozenset[str]) -> Score:
    fault = scoring_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    flags = dict.fromkeys(options, True)
    text = (without_reasoning(response.text or "") or "").strip()
    answer, gold = normalise(text, **flags), normalise(item.gold_label, **flags)
    letters = {normalise(label, **flags) for label in option_labels(len(item.options))}
    if not answer or (item.options and answer not in letters):
        return text_score(None, False)
    return text_score(text, answer == gold)


def contains(item: Item, response: Response) -> Score:
    """Score whether the gold answer occurs in the text as whole words.

    Case and white space are ignored; for an item with options the gold option's text must occur.
    This is lenient: a text that lists every answer is right. Use it to find what stricter scorers
    miss, not to compare models.
    """
    fault = scoring_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    gold = item.gold_text
    text = (without_reasoning(response.text or "") or "").strip()
    if not text:
        return text_score(None, False)
    return text_score(text, _occurs(_simple(gold), _simple(text)))


def _simple(text: str) -> str:
    return normalise(text, spaces=True, case=True)


def _occurs(part: str, text: str) -> bool:
    """Return True if ``part`` occurs in ``text`` without an adjacent letter or digit."""
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
_END = 4000  # characters read: the answer is at the end, and the library's time is not linear


def math(item: Item, response: Response) -> Score:
    """Compare the last expression of the text with the gold expression.

    An expression that cannot be parsed within five seconds is unparsed; a comparison that takes
    longer is wrong. A gold answer that cannot be parsed is an error.
    """
    fault = scoring_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    library = importlib.import_module("math_verify")
    # The library's time limits are signals, which only the main thread can set.
    limit = _SECONDS if threading.current_thread() is threading.main_thread() else None
    gold = library.parse(f"${item.gold_label}$", parsing_timeout=limit)
    if not gold:
        return Score(
            Outcome.ERROR, error=f"the gold answer cannot be read: {item.gold_label[:60]!r}"
        )
    text = answer_to_item(response.text or "")
    answer = library.parse(text[-_END:], parsing_timeout=limit) if text else []
    if not answer:
        return text_score(None, False)
    # The last entry is the expression as text.
    return text_score(str(answer[-1]), bool(library.verify(gold, answer, timeout_seconds=limit)))
