"""Texts as they are compared: without markup and case; and patterns of literal words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_llmeval.scorers.languages import OPTION_WORDS


_REST = r"[^\s!-@\[-`{-~\u2000-\u206f\u3000-\u303f\uff00-\uff20।]{0,20}"  # of a word


def any_of(words: Iterable[str]) -> str:
    """A pattern of literal words, the longest first; ``word*`` is one that may go on."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\*", _REST) for word in ordered)


def literal(words: Iterable[str], unspaced: Iterable[str]) -> str:
    """A pattern of literal words that is quick to search for in any text.

    ``words`` also with a capital first and in capitals, and only where they are no part of a
    longer word, which ``word*`` may begin; ``unspaced`` words anywhere. One character class finds
    where a word may begin, another whether its second character fits; the rest is looked up by
    that, and only then is the first character held to it.
    """
    firsts: dict[tuple[str, str], set[str]] = {}
    for word in words:
        begin, end = word.rstrip("*"), _REST if word.endswith("*") else r"(?![^\W\d_])"
        for form in (begin, begin.capitalize(), begin.upper()):
            firsts.setdefault((form[1:], end), set()).add(form[0])
    for word in unspaced:
        firsts.setdefault((word[1:], ""), set()).add(word[0])
    seconds: dict[str, list[str]] = {}
    for rest, end in sorted(firsts, key=lambda key: -len(key[0])):
        if not rest:
            continue
        begin = f"[{re.escape(''.join(sorted(firsts[rest, end])))}]{re.escape(rest)}"
        behind = f"(?<={begin})" + (rf"(?<![^\W\d_]{begin}){end}" if end else "")
        seconds.setdefault(rest[0], []).append(re.escape(rest[1:]) + behind)
    found = "|".join(
        f"{re.escape(second)}(?:{'|'.join(rests)})" for second, rests in seconds.items()
    )
    pattern = f"(?=[{re.escape(''.join(seconds))}])(?:{found})"
    single = firsts.get(("", ""))
    if single:
        pattern = f"(?:{pattern}|(?<=[{re.escape(''.join(sorted(single)))}]))"
    every = "".join(sorted(set().union(*firsts.values())))
    return f"[{re.escape(every)}]{pattern}"


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
_BOX = re.compile(r"\\f?box(?:ed)?")
_OPTION = re.compile(
    rf"^(?:{any_of(set(OPTION_WORDS) - {'statement', 'proposition'})})[ :：]", re.IGNORECASE
)


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


def plain_with_places(text: str) -> tuple[str, list[int]]:
    """``text`` in small letters with markup as single blanks, and where each character was."""
    said: list[str] = []
    places: list[int] = []
    position = 0
    for match in [*_MARKUP.finditer(text), None]:
        stop = len(text) if match is None else match.start()
        for place in range(position, stop):
            char = text[place]
            if char.isspace():
                char = " "
            if char == " " and (not said or said[-1] == " "):
                continue
            for folded in char.casefold():
                said.append(folded)
                places.append(place)
        if match is not None:
            position = match.end()
            if said and said[-1] != " ":
                said.append(" ")
                places.append(match.start())
    return "".join(said), places


def end_of(part: str, text: str) -> int:
    """Where ``part``, which is the plain form of a beginning of ``text``, ends in it."""
    said, places = plain_with_places(text)
    last = said.find(part) + len(part) - 1
    return places[min(last, len(places) - 1)] + 1


def bare(line: str) -> str:
    """A line without markup, brackets and full stops around what it says, and without "option"."""
    said = " ".join(_BOX.sub(" ", without_markup(line)).split())
    return _OPTION.sub("", said).replace(" ", "").strip(_EDGES + ";)-")


def is_cut_off(line: str) -> bool:
    """Whether a bracket or a formula on this line was opened and not closed."""
    line = line.strip()
    return any(
        line.count(opened) > line.count(closed) for opened, closed in ("()", "[]", "{}")
    ) or (line.startswith("$$") and not line.endswith("$$") and line.count("$$") % 2 == 1)


_SENTENCE = re.compile(r"[.!?。！？]\s+|[。！？]|\n")


def last_sentence(text: str) -> str:
    """The last sentence of a text that is not empty, in plain form."""
    for piece in reversed(_SENTENCE.split(text)):
        said = plain(piece)
        if said:
            return said
    return ""
