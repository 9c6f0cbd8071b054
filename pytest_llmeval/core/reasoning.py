"""Separation of a reply into reasoning, answer, and the text after the end of the turn.

One function handles the marks of all families (``reasoning_marks``), for scorers and models.
A mark in a fence, in inline code, in a string literal or within a sentence is text. Every step
is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_letters

from pytest_llmeval.core.quoted import QuotedRegions
from pytest_llmeval.core.reasoning_marks import ENDS
from pytest_llmeval.core.reasoning_marks import FAMILIES
from pytest_llmeval.core.reasoning_marks import FRAMES
from pytest_llmeval.core.reasoning_marks import UNFINISHED
from pytest_llmeval.core.reasoning_marks import WRAPPER_ENDS
from pytest_llmeval.core.reasoning_marks import WRAPPERS
from pytest_llmeval.core.reasoning_marks import Marks


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def _of(role: str) -> list[str]:
    return [family.patterns[role].pattern for family in FAMILIES if role in family.patterns]


def _outside(role: str, applies: Callable[[Marks], bool]) -> re.Pattern[str]:
    """Return the pattern of a role outside of reasoning, with the family's number as group."""
    return re.compile(
        "|".join(
            f"(?P<f{number}>{family.patterns[role].pattern})"
            for number, family in enumerate(FAMILIES)
            if role in family.patterns and applies(family)
        )
    )


_OUTSIDE = {
    "opening": _outside("opening", lambda family: True),
    "answer": _outside("answer", lambda family: not family.phrase),
    "closing": _outside("closing", lambda family: family.bare_closing),
}
_ENDING = _any_of((*_of("closing"), *_of("answer")))
_ANY = _any_of(
    (
        *(pattern for role in ("opening", "closing", "answer", "ending") for pattern in _of(role)),
        *(pattern.pattern for pattern in (ENDS, FRAMES, UNFINISHED, WRAPPER_ENDS)),
    )
)
# The characters with which a mark may begin: rare ones, so that most text is skipped quickly.
_FIRSTS = "".join(
    sorted(
        {text[0] for family in FAMILIES for text in (*family.tokens, *family.begins)}
        - {*ascii_letters, "/"}
    )
)
_START = re.compile(rf"[{re.escape(_FIRSTS)}]|assistant(?=[acf])|Here(?=['’ ])|to=(?=[su])")
LONGEST_MARK = 100
"""Upper bound of the length of a mark in characters, except gpt-oss's messages to a tool."""

# The rest of a line, if it has only blanks and other marks.
_END_OF_LINE = re.compile(r"(?:[ \t\r]++|</?\|?[^<>\s]{1,40}+>){0,8}+(?=\n|\Z)")
# A mention within a sentence: a word before it, and a word or a punctuation mark after it.
_BEFORE_A_MENTION = re.compile(r"(?:[a-z]{2}|[,;(])[ ]\Z|\(\Z")
_AFTER_A_MENTION = re.compile(r"[ ][a-z]|[.,;:)?!](?:\s|\Z)")
_DRAFTS = 8  # unclosed drafts in reasoning that are kept out of the answer
_AROUND, _NEAR = 200, 2000  # characters before a mark that are searched


@dataclass(frozen=True, slots=True)
class Reply:
    """The parts of a reply.

    ``reasoning``: None if the reply has none. ``closed``: False if the reply ends within its
    reasoning; then ``answer`` is empty. ``after``: the mark that ends the turn and all text after
    it.
    """

    reasoning: str | None
    answer: str
    closed: bool = True
    after: str = ""


def split_reasoning(text: str, *, opened: bool = False) -> Reply:
    """Separate the reasoning of a reply from its answer.

    ``opened``: the reply begins within reasoning. Reasoning is the text between an opening and a
    closing mark of one family, which may occur several times, or the text before a closing mark
    without an opening one (which was part of the chat template); of further closing marks only
    the mark is removed. Text before a mark that begins the answer is not part of the answer.
    """
    if not opened and _next_mark(text, 0) is None:
        return Reply(None, text)
    return _Splitter(text, opened).reply()


def begins_reasoning(text: str) -> bool | None:
    """Return whether a partially generated text begins with reasoning; None: not known yet."""
    beginning = text.lstrip().casefold()
    if not split_reasoning(text).closed:
        return True
    for family in FAMILIES:
        if family.phrase and family.patterns["opening"].match(text):
            return True
        if any(mark.casefold().startswith(beginning) for mark in family.begins):
            return None
    return False


def may_end_reasoning(text: str) -> bool:
    """Return whether a text has a mark that can end reasoning."""
    return _ENDING.search(text) is not None


def is_cut_off(text: str) -> bool:
    """Return whether a reply ends within its reasoning, so that its answer is missing."""
    return not split_reasoning(text).closed


def _next_mark(text: str, place: int) -> re.Match[str] | None:
    """Return the next possible mark from an offset on."""
    if place == 0 and (mark := _ANY.match(text)):
        return mark
    for start in _START.finditer(text, place):
        if mark := _ANY.match(text, start.start()):
            return mark
    return None


class _Splitter:
    def __init__(self, text: str, opened: bool) -> None:
        self._text = text
        self._quoted = QuotedRegions(text)
        self._has_bos = text.lstrip().startswith("<s>")
        self._answer_parts: list[str] = []
        self._thoughts: list[str] = []
        self._position = 0  # end of the text that has been classified
        self._family: Marks | None = None  # the family of the reasoning that is open
        self._depth = 0
        self._last_opening = 0
        self._last_closing = (0, 0)
        self._opened = opened  # until it is closed
        self._answering = False  # reasoning has ended, or a mark began the answer
        self._ending: re.Pattern[str] | None = None  # pattern of the end of the marked answer
        self._ended = False
        self._awaited = False  # the family marks the beginning of every answer
        self._drafts = _DRAFTS
        self._gap = False  # text was dropped after the last part of the answer

    def reply(self) -> Reply:
        after = self._read()
        unclosed = self._family is not None or self._opened
        end = len(self._text) - len(after)
        if unclosed:
            self._think(self._position, end)
        elif not self._ended:
            self._keep(self._position, end)
        answer = "".join(self._answer_parts)
        reasoning = "\n\n".join(part for thought in self._thoughts if (part := thought.strip()))
        if unclosed or (self._awaited and not answer.strip()):
            return Reply(reasoning, "", closed=False, after=after)
        return Reply(reasoning if self._answering else None, answer, after=after)

    def _read(self) -> str:
        """Process all marks; return the text from the end of the turn on."""
        place = 0
        while True:
            mark = _next_mark(self._text, place)
            if mark is None:
                if self._family is None or self._last_closing[0] < self._last_opening:
                    return ""
                # An opening mark within the reasoning was text.
                self._close(*self._last_closing)
                place = self._position
                continue
            at = mark.start()
            role, family, end = self._role(at)
            if not role or not self._is_mark(role, family, at, end):
                place = max(mark.end(), at + 1)
            elif role == "turn":
                return self._text[at:]
            else:
                self._take(role, family, at, end)
                place = max(self._position, end, at + 1)

    def _role(self, at: int) -> tuple[str, Marks | None, int]:
        """Return role, family and end of the mark at an offset; the role of other text is empty."""
        if self._family is not None:
            for role in ("answer", "closing", "opening"):
                pattern = self._family.patterns.get(role)
                if pattern is not None and (match := pattern.match(self._text, at)):
                    return role, self._family, match.end()
            return "", None, at
        if self._ending is not None and (match := self._ending.match(self._text, at)):
            return "ending", None, match.end()
        for role, marks in _OUTSIDE.items():
            match = marks.match(self._text, at)
            if match is not None and match.lastgroup is not None:
                family = FAMILIES[int(match.lastgroup[1:])]
                if not family.phrase or family.patterns["answer"].search(self._text, match.end()):
                    return role, family, match.end()
        for role, pattern in (("turn", ENDS), ("frame", FRAMES), ("unfinished", UNFINISHED)):
            if match := pattern.match(self._text, at):
                return role, None, match.end()
        return "", None, at

    def _is_mark(self, role: str, family: Marks | None, at: int, end: int) -> bool:
        """Return whether a mark is used rather than quoted or mentioned."""
        closes = role in ("closing", "answer") and (self._family is not None or self._opened)
        ends_line = _END_OF_LINE.match(self._text, end) is not None
        literal = self._quoted.literal(at)
        if literal is not None:
            # A draft may have three quotes or a fence that are not closed.
            return closes and ends_line and "\n" in literal
        fence = self._quoted.fence(at)
        if fence is not None:
            unclosed = not fence.closed or self._lacks_opening(family, role, at, fence.start)
            return ends_line and (closes or (unclosed and role != "opening"))
        return closes or not self._is_mention(at, end)

    def _lacks_opening(self, family: Marks | None, role: str, at: int, start: int) -> bool:
        """Return whether a closing mark on a separate line has no opening one in its code block.

        Then the block is a draft that was not closed, and its end is that of a block in the answer.
        """
        if role != "closing" or family is None or self._answering:
            return False
        start = max(start, at - _NEAR)
        line = self._text[self._text.rfind("\n", start, at) + 1 : at]
        return not line.strip() and not family.patterns["opening"].search(self._text, start, at)

    def _is_mention(self, at: int, end: int) -> bool:
        before = self._text[max(0, at - _AROUND) : at].rpartition("\n")[2]
        if self._text.startswith("</s>", at) and "<s>" in before:
            return not self._has_bos  # struck out, in HTML
        return bool(_BEFORE_A_MENTION.search(before) and _AFTER_A_MENTION.match(self._text, end))

    def _take(self, role: str, family: Marks | None, at: int, end: int) -> None:
        if role == "opening" and self._family is not None:
            if self._family.nests and self._text[self._last_opening : at].strip():
                self._depth += 1
            self._last_opening = end
        elif role == "opening" and family is not None:
            self._keep(self._position, at)
            self._family, self._depth = family, 1
            self._awaited |= family.final
            self._position = self._last_opening = end
        elif role == "closing" and self._family is not None:
            self._depth -= 1
            self._last_closing = at, end
            if self._depth == 0:
                self._close(at, end)
        elif role == "closing" and not self._answering:
            self._forget(at)
            self._close(at, end)
        elif role == "answer" and family is not None:
            self._forget(at)
            self._begin(end, family.patterns.get("ending"))
        else:  # a redundant closing mark, or a mark around or after the answer
            self._keep(self._position, at)
            self._position, self._gap = end, role != "frame"
            self._ended |= role in ("ending", "unfinished")
            self._awaited |= role == "unfinished"

    def _close(self, at: int, end: int) -> None:
        """End the reasoning; tags around the answer may follow."""
        if self._drafts and (self._quoted.fence(at) or self._quoted.literal(at)):
            self._drafts -= 1  # the answer is not part of an unclosed draft
            self._quoted = QuotedRegions(self._text, end)
        self._think(self._position, at)
        ended = self._ended and self._family is not None and bool(self._family.answer)
        wrapper = WRAPPERS.match(self._text, end)
        if wrapper is None:
            self._begin(end, None)
        else:
            self._begin(wrapper.end(), re.compile(f"(?i:</{wrapper[1]}>)"))
        self._ended = ended

    def _begin(self, place: int, ending: re.Pattern[str] | None) -> None:
        """Begin the answer."""
        self._family, self._opened, self._ended = None, False, False
        self._answering = self._gap = True
        self._position, self._ending = place, ending

    def _forget(self, at: int) -> None:
        """Move the answer so far to the reasoning."""
        self._thoughts.append("".join(self._answer_parts))
        self._answer_parts.clear()
        self._think(self._position, at)
        self._position = at

    def _think(self, start: int, end: int) -> None:
        self._thoughts.append(self._text[start:end])

    def _keep(self, start: int, end: int) -> None:
        part = "" if self._ended else self._text[start:end]
        if not part:
            return
        parts = self._answer_parts
        touching = self._gap and parts and not parts[-1][-1].isspace()
        if touching and not part[0].isspace():
            parts.append("\n")  # "1<think>…</think>2" is not 12
        parts.append(part)
        self._gap = False
