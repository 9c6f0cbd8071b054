"""Texts as they are compared: without markup and case; and patterns of literal words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_REST = r"[^\s!-@\[-`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff20।՝]{0,20}"  # of a word


def any_of(words: Iterable[str]) -> str:
    """A pattern of literal words, the longest first; ``word*`` is one that may go on."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\*", _REST) for word in ordered)


# Markup, quotes, brackets, invisible characters: what may stand around an answer.
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
    """``text`` with blanks for markup."""
    return _MARKUP.sub(" ", text)


def plain(text: str) -> str:
    """``text`` in small letters, without markup, without blanks and full stops at its ends.

    The point of ".5" is no full stop, and every minus of a number is the same.
    """
    said = _MINUS.sub("-", " ".join(without_markup(text).split())).rstrip(_EDGES)
    kept = said.lstrip(_EDGES)
    begin = len(said) - len(kept) - 1
    return (said[begin:] if begin >= 0 and _POINT.match(said, begin) else kept).casefold()


_WORD = re.compile(r"[^\W_]+")
_NEXT_WORD = re.compile(r"[\W_]{0,60}([^\W_]+)")


def end_of(said: str, text: str, start: int) -> int | None:
    """Where the words of ``said``, a plain text, end that follow in ``text`` from ``start`` on."""
    words = _WORD.findall(said)
    for number, word in enumerate(words, start=1):
        found = _NEXT_WORD.match(text, start)
        there = found[1].casefold() if found else ""
        # An ending may be written directly behind, as in Korean.
        goes_on = number == len(words) and there.startswith(word) and there[len(word) :] > "\u0590"
        if found is None or (there != word and not goes_on):
            return None
        start = found.start(1) + len(word)
    return start if words else None


def is_cut_off(line: str) -> bool:
    """Whether a bracket or a formula on this line was opened and not closed."""
    opened = any(line.count(a) > line.count(b) for a, b in ("()", "[]", "{}"))
    return opened or (line.strip().startswith("$$") and line.count("$$") % 2 == 1)


_SENTENCE = re.compile(r"[.!?。！？]\s+|[。！？]|\n")


def last_sentence(text: str) -> str:
    """The last sentence of a text that is not empty, in plain form."""
    sentences = map(plain, reversed(_SENTENCE.split(text)))
    return next(filter(None, sentences), "")
