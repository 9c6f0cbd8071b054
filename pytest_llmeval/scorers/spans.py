"""Where in a reply the answer's text stands: four levels, the first that finds something.

After the cascade of Nowak et al. 2026 (arXiv:2602.17445): the last "answer is …", else the last
"Answer: …", else the last mention of an option's text, else the last sentence. Where its printed
patterns leave a choice it is made here, and held by tests: what is taken starts after the marker
and ends with its line; a denied marker ("the answer is not …") is none; markers are known in many
languages; sentences end at the marks of other scripts too, and not inside of "3.14".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_llmeval.scorers import phrases
from pytest_llmeval.scorers.languages import ANSWER_WORDS
from pytest_llmeval.scorers.languages import ANSWER_WORDS_UNSPACED
from pytest_llmeval.scorers.languages import COPULAS
from pytest_llmeval.scorers.languages import NEGATIONS

Level = Literal["stated", "colon", "option", "last"]
LEVELS: tuple[Level, ...] = ("stated", "colon", "option", "last")

_MARKERS_READ = 50  # from the last
_LONGEST = 1000  # characters of an answer

_WORD = re.compile(
    phrases.literal(ANSWER_WORDS, [w for w in ANSWER_WORDS_UNSPACED if len(w) > 1 or w == "답"])
)
_NO = rf"(?!(?:{phrases.any_of(NEGATIONS)})(?!\w))"
_REACH = 80
_COLON = r"[ \t]?[*_]{0,3}[ \t]?[:：][ \t]?[*_]{0,3}"
# "can be found" is no statement.
_COPULA = rf"{phrases.any_of(set(COPULAS) - {'be'})}|(?:would|must|should|will|has to)[ \t]+be"
_IS = re.compile(
    # "answer is", "Antwort auf die Frage lautet", with a colon or without
    rf"(?:[ \t]+{_NO}[^\s.:;!?]+){{0,4}}?[ \t]+(?:{_COPULA})(?!\w)"
    rf"(?:{_COLON})?"
    # 答案是, 答えは, 정답은
    r"|[^\s.:;!?。，、：不非没]{0,6}?(?:应该是|應該是|是|为|為|は|은|는|이|คือ)(?:[:：])?",
    re.IGNORECASE,
)
_HAS = re.compile(_COLON)
# Few, because options may begin with others: "No", "None of these", "Never", 非洲.
_DENIED = re.compile(
    r"[ \t]*(?:(?:definitely|certainly|clearly|probably) )?"
    r"(?:not|nicht|pas|inte|ikke|niet|не|ليس|bukan|değil)(?!\w)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\$OPTION\b")  # the instruction repeated
_SENTENCE_END = re.compile(r"(?<=[.!?؟])[\"'”’)\]]*\s+|(?<=[。！？।॥])|\n+")
# Thai and what comes behind it in Unicode writes without blanks, or nearly so.
_UNSPACED_FROM = "\u0e00"


@dataclass(frozen=True, slots=True)
class Span:
    """What the reply answers, and the level that found it.

    ``options``: which options have just this text, where it was found as one of them.
    """

    text: str
    level: Level
    options: tuple[int, ...] = ()


def find_span(reply: str, options: Sequence[str]) -> Span | None:
    """The text of the answer in a reply without reasoning blocks; None in one that says nothing.

    The time is linear in the reply for options of usual number.
    """
    return _announced(reply) or _mentioned(reply, options) or _last_sentence(reply)


def _announced(reply: str) -> Span | None:
    colon = None
    for word in reversed(list(_WORD.finditer(reply))[-_MARKERS_READ:]):
        stated = _IS.match(reply, word.end(), word.end() + _REACH)
        if stated is not None:
            text = _line_from(reply, stated.end())
            if text:
                return Span(text, "stated")
        elif colon is None:
            behind = _HAS.match(reply, word.end(), word.end() + _REACH)
            text = _line_from(reply, behind.end()) if behind else ""
            colon = Span(text, "colon") if text else None
    return colon


def _line_from(reply: str, start: int) -> str:
    """The rest of the line, or the next one that is not blank; empty for a denial or for nothing."""
    if _DENIED.match(reply, start):
        return ""
    text = reply[start : start + _LONGEST].lstrip()
    text = text.partition("\n")[0].strip()
    return text if _says_something(text) else ""


def _says_something(text: str) -> bool:
    """Whether there is more than markup, punctuation and the instruction repeated."""
    return bool(phrases.plain(text)) and not _PLACEHOLDER.search(text)


def _mentioned(reply: str, options: Sequence[str]) -> Span | None:
    """The option that is mentioned last, as it is written; of two at one place the longer."""
    text = " ".join(reply.split())
    last: tuple[int, str] | None = None
    for option in sorted({" ".join(option.split()) for option in options}, key=lambda o: -len(o)):
        if not option:
            continue
        pattern = re.compile(_bounded(option))
        found = [match.end() for match in pattern.finditer(text)]
        if found and (last is None or found[-1] > last[0]):
            last = found[-1], option
        # A shorter option is not mentioned where a longer one is: HTTP in "HTTP/2".
        text = pattern.sub(lambda match: "\0" * len(match.group()), text)
    if last is None:
        return None
    same = [n for n, option in enumerate(options) if " ".join(option.split()) == last[1]]
    return Span(last[1], "option", tuple(same))


def _bounded(option: str) -> str:
    before = r"(?<!\w)" if _is_of_a_word(option[0]) else ""
    after = r"(?!\w)" if _is_of_a_word(option[-1]) else ""
    return before + re.escape(option) + after


def _is_of_a_word(char: str) -> bool:
    return char.isalnum() and char < _UNSPACED_FROM


def _last_sentence(reply: str) -> Span | None:
    for sentence in reversed(_SENTENCE_END.split(reply[-4 * _LONGEST :])):
        text = sentence.strip()[-_LONGEST:]
        if _says_something(text):
            return Span(text, "last")
    return None
