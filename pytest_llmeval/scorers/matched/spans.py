"""Position of the answer's text in a reply: four levels, of which the first match is used.

The levels follow the cascade of Nowak et al. 2026 (arXiv:2602.17445): the last "answer is …", else
the last "Answer: …", else the last mention of an option's text, else the last sentence. Details that
the published patterns leave open are defined here and tested: the text starts after the marker and
ends with its line; a denied marker ("the answer is not …") does not count; markers exist in many
languages; sentences also end at the marks of other scripts, but not inside "3.14".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.core.matched_detail import Level
from pytest_llmeval.scorers import normalization
from pytest_llmeval.scorers.choice.tokens import lex

_MARKERS_READ = 50  # number of markers that are read, from the last
_LONGEST = 1000  # characters of an answer

# Over the classes of tokens: "answer is", "Antwort auf die Frage lautet", with a colon or without.
# "can be found" is not a statement.
_IS = re.compile("N[^XWQxy.,:;?¶~]{0,4}?[Vvz]:?")
_HAS = re.compile("N:")
_TOPIC = "은는"  # the endings that make 답은 "the answer is"
# Only a few words, because options may begin with others: "No", "None of these", "Never", 非洲.
_DENIED = re.compile(
    r"[ \t]*(?:(?:definitely|certainly|clearly|probably) )?"
    r"(?:not|nicht|pas|inte|ikke|niet|не|ليس|bukan|değil)(?!\w)",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"^[ \t]?(?:\*\*|__)(?=\s)")  # of "**Answer:** Lyon"
_PLACEHOLDER = re.compile(r"\$OPTION\b")  # the instruction repeated
_LONE_LETTER = re.compile(r"(?:\\f?box(?:ed)? )?(?:(?:option|choice) )?[a-z]")
_SENTENCE_END = re.compile(r"(?<=[.!?؟])[\"'”’)\]]*\s+|(?<=[。！？।॥])|\n+")
# Thai and most later scripts in Unicode are written without spaces.
_UNSPACED_FROM = "\u0e00"


@dataclass(frozen=True, slots=True)
class Span:
    """Text of the answer in a reply, and the level at which it matched."""

    text: str
    level: Level
    options: tuple[int, ...] = ()
    """Indices of the options with exactly this text, if it was matched as an option."""


def find_span(reply: str, options: Sequence[str]) -> Span | None:
    """Return the text of the answer in a reply without reasoning; None if there is no answer.

    A bare letter is not an answer unless it is an option, because the prompt has no letters. The
    time is linear in the reply for a usual number of options.
    """
    return (
        _announced(reply, options) or _mentioned(reply, options) or _last_sentence(reply, options)
    )


def _announced(reply: str, options: Sequence[str]) -> Span | None:
    colon = None
    quoted = _quoted(reply, options)
    tokens = lex(reply)
    words = (number for number, symbol in enumerate(tokens.classes) if symbol == "N")
    for word in reversed(deque(words, maxlen=_MARKERS_READ)):
        start, end = tokens.starts[word], tokens.ends[word]
        if any(first <= start < last for first, last in quoted):
            continue
        stated = _IS.match(tokens.classes, word)
        if stated is not None or reply[end - 1] in _TOPIC:
            end = end if stated is None else tokens.ends[stated.end() - 1]
            span = _answer_from(reply, end, "stated", options)
            if span is not None:
                return span
        elif colon is None and _HAS.match(tokens.classes, word):
            colon = _answer_from(reply, tokens.ends[word + 1], "colon", options)
    return colon


def _quoted(reply: str, options: Sequence[str]) -> list[tuple[int, int]]:
    """Return the ranges of options in the reply that contain a marker: "an answer is filed"."""
    return [
        match.span()
        for option in options
        if "N" in lex(option).classes
        for match in deque(re.finditer(re.escape(option.strip()), reply), maxlen=_MARKERS_READ)
    ]


def _answer_from(reply: str, start: int, level: Level, options: Sequence[str]) -> Span | None:
    """Return the rest of the line, or the next non-blank line; None for a denial or an empty text.

    An option of several lines is returned as a whole.
    """
    if _DENIED.match(reply, start):
        return None
    text = _CLOSING.sub("", reply[start : start + _LONGEST]).lstrip()
    for option in options:
        if "\n" in option.strip() and " ".join(text.split()).startswith(" ".join(option.split())):
            return Span(option, level, _same(option, options))
    text = text.partition("\n")[0].strip()
    return Span(text, level) if _has_content(text, options) else None


def _has_content(text: str, options: Sequence[str]) -> bool:
    """Return False for only markup, the instruction, or a letter that is not an option."""
    plain = normalization.plain_text(text)
    if not plain or _PLACEHOLDER.search(text):
        return False
    if _LONE_LETTER.fullmatch(plain):
        return plain in {normalization.plain_text(option) for option in options}
    return True


def _same(text: str, options: Sequence[str]) -> tuple[int, ...]:
    words = text.split()
    return tuple(n for n, option in enumerate(options) if option.split() == words)


def _mentioned(reply: str, options: Sequence[str]) -> Span | None:
    """Return the option that is mentioned last; of two at one position the longer."""
    text = " ".join(reply.split())
    last: tuple[int, str] | None = None
    for option in sorted({" ".join(option.split()) for option in options}, key=lambda o: -len(o)):
        if not option:
            continue
        pattern = re.compile(_bounded(option))
        matches = deque(pattern.finditer(text), maxlen=1)
        if matches and (last is None or matches[0].end() > last[0]):
            last = matches[0].end(), option
        # A shorter option is not mentioned inside a longer one: HTTP in "HTTP/2".
        text = pattern.sub(lambda match: "\0" * len(match.group()), text)
    if last is None:
        return None
    return Span(last[1], "option", _same(last[1], options))


def _bounded(option: str) -> str:
    before = r"(?<!\w)" if _is_of_a_word(option[0]) else ""
    after = r"(?!\w)" if _is_of_a_word(option[-1]) else ""
    # 5 is not mentioned in "2.5", nor 2.
    before += r"(?<!\d[.,])" if option[0].isdecimal() else ""
    after += r"(?![.,]\d)" if option[-1].isdecimal() else ""
    return before + re.escape(option) + after


def _is_of_a_word(char: str) -> bool:
    return char.isalnum() and char < _UNSPACED_FROM


def _last_sentence(reply: str, options: Sequence[str]) -> Span | None:
    for sentence in reversed(_SENTENCE_END.split(reply[-4 * _LONGEST :])):
        text = sentence.strip()[-_LONGEST:]
        if _has_content(text, options) and not _announces_letter(text, options):
            return Span(text, "last")
    return None


def _announces_letter(sentence: str, options: Sequence[str]) -> bool:
    """Return True for a sentence that only states that the answer is a letter."""
    tokens = lex(sentence)
    marker = _IS.search(tokens.classes) or _HAS.search(tokens.classes)
    rest = sentence[tokens.ends[marker.end() - 1] :] if marker else sentence
    return not _has_content(rest, options)
