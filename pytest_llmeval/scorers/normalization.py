"""Normalization of texts for comparison, and patterns of literal words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_REST = r"[^\s!-@\[-`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff20।՝]{0,20}"  # of a word


def alternation(words: Iterable[str]) -> str:
    """Return a pattern of literal words, longest first; ``word*`` matches longer words, too."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\*", _REST) for word in ordered)


# Markup, quotes, brackets, invisible characters, which may be around an answer.
_MARKUP = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:rm|bf|it|sf|tt|bb)|boldsymbol|bf|rm|bm|large|Large|huge"
    r"|left|right|quad|[,;!:()\[\] ])"
    r"|</?(?!answer)[A-Za-z]{1,10}/?>"
    r"|&(?:quot|apos|lt|gt|nbsp|#0?39|#x27|#34);"
    r"|(?<!\w)['’]|['’](?!\w)"
    r"|[*_`$\"“”„«»‘{}()\[\]（）【】［］「」『』《》〈〉<>~#|&"
    r"\x00-\x08\x0e-\x1b\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\u00ad]+"
)
_EDGES = " .。．:：,，、।॥!！"
_POINT = re.compile(r"\.\d")
_MINUS = re.compile(r"^[-−–]\s?(?=\.?\d)|[−–](?=\s?\.?\d)")


def without_markup(text: str) -> str:
    """Return ``text`` with spaces in place of markup."""
    return _MARKUP.sub(" ", text)


def plain_text(text: str) -> str:
    """Return ``text`` case-folded, without markup, and without spaces and full stops at its ends.

    The point of ".5" is not a full stop, and all minus signs of numbers become the same.
    """
    unmarked = _MINUS.sub("-", " ".join(without_markup(text).split())).rstrip(_EDGES)
    stripped = unmarked.lstrip(_EDGES)
    begin = len(unmarked) - len(stripped) - 1
    has_point = begin >= 0 and _POINT.match(unmarked, begin)
    return (unmarked[begin:] if has_point else stripped).casefold()


_WORD = re.compile(r"[^\W_]+")
_NEXT_WORD = re.compile(r"[\W_]{0,60}([^\W_]+)")


def match_end(plain: str, text: str, start: int) -> int | None:
    """Return where the words of ``plain`` end if they follow in ``text`` from ``start``, or None."""
    words = _WORD.findall(plain)
    for number, word in enumerate(words, start=1):
        match = _NEXT_WORD.match(text, start)
        text_word = match[1].casefold() if match else ""
        # An ending may be attached to the last word, as in Korean.
        ending = text_word.removeprefix(word)
        attached = number == len(words) and text_word.startswith(word) and ending > "\u0590"
        if match is None or (text_word != word and not attached):
            return None
        start = match.start(1) + len(word)
    return start if words else None


def is_cut_off(line: str) -> bool:
    """Return True if a bracket or a formula on this line is opened and not closed."""
    opened = any(line.count(a) > line.count(b) for a, b in ("()", "[]", "{}"))
    return opened or (line.strip().startswith("$$") and line.count("$$") % 2 == 1)


_SENTENCE = re.compile(r"[.!?。！？]\s+|[。！？]|\n")


def last_sentence(text: str) -> str:
    """Return the last sentence of a text that is not empty, as plain text."""
    sentences = map(plain_text, reversed(_SENTENCE.split(text)))
    return next(filter(None, sentences), "")
