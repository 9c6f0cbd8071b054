"""A reply taken apart: reasoning, answer, and what follows the end of the turn.

One function reads the marks of all families (``reasoning_marks``), for scorers and models alike.
A mark in a fence, in inline code, in a string literal or within a sentence is text. Every step
is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_letters

from pytest_llmeval.core.quoted import Quoted
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
    return [one.patterns[role].pattern for one in FAMILIES if role in one.patterns]


def _outside(role: str, counts: Callable[[Marks], bool]) -> re.Pattern[str]:
    """The marks that have a role outside of reasoning; the group's number is the family's."""
    return re.compile(
        "|".join(
            f"(?P<f{number}>{family.patterns[role].pattern})"
            for number, family in enumerate(FAMILIES)
            if role in family.patterns and counts(family)
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
        *(one.pattern for one in (ENDS, FRAMES, UNFINISHED, WRAPPER_ENDS)),
    )
)
# Where a mark may begin: few places, so that most text is passed over quickly.
_FIRSTS = "".join(
    sorted(
        {text[0] for one in FAMILIES for text in (*one.tokens, *one.begins)} - {*ascii_letters, "/"}
    )
)
_START = re.compile(rf"[{re.escape(_FIRSTS)}]|assistant(?=[acf])|Here(?=['’ ])|to=(?=[su])")
LONGEST_MARK = 100
"""Characters: more than any mark has, except messages of gpt-oss to a tool."""

# The rest of a line has nothing but blanks and other marks on it.
_END_OF_LINE = re.compile(r"(?:[ \t\r]++|</?\|?[^<>\s]{1,40}+>){0,8}+(?=\n|\Z)")
# Within a sentence: a word before it, and a word or a punctuation mark behind it.
_BEFORE_A_MENTION = re.compile(r"(?:[a-z]{2}|[,;(])[ ]\Z|\(\Z")
_AFTER_A_MENTION = re.compile(r"[ ][a-z]|[.,;:)?!](?:\s|\Z)")
_DRAFTS = 8  # drafts left open in reasoning that do not reach into the answer
_AROUND, _NEAR = 200, 2000  # characters looked at before a mark


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply taken apart. ``reasoning``: None where there is none.

    ``closed``: an answer may follow; otherwise the reply ends within its reasoning, and
    ``answer`` is empty. ``after``: the mark that ends the turn, and everything behind it.
    """

    reasoning: str | None
    answer: str
    closed: bool = True
    after: str = ""


def split_reasoning(text: str, *, opened: bool = False) -> Reply:
    """Take the reasoning out of a reply; ``opened``: it begins within reasoning.

    Reasoning is between an opening and a closing mark of one family, several times if need be,
    or before a closing mark that has no opening one, which a chat template has written; a further
    closing mark is dropped alone. Before a mark that begins the answer nothing is answer.
    """
    if not opened and _next_mark(text, 0) is None:
        return Reply(None, text)
    return _Splitter(text, opened).reply()


def begins_reasoning(text: str) -> bool | None:
    """Whether a text, as far as it is generated, begins with reasoning; None: it still may."""
    begin = text.lstrip().casefold()
    if not split_reasoning(text).closed:
        return True
    for family in FAMILIES:
        if family.phrase and family.patterns["opening"].match(text):
            return True
        if any(one.casefold().startswith(begin) for one in family.begins):
            return None
    return False


def may_end_reasoning(text: str) -> bool:
    """Whether there is a mark in a text that can end reasoning."""
    return _ENDING.search(text) is not None


def is_cut_off(text: str) -> bool:
    """Whether a reply ends within its reasoning, so that its answer is missing."""
    return not split_reasoning(text).closed


def _next_mark(text: str, place: int) -> re.Match[str] | None:
    """What may be a mark, from a place on."""
    if place == 0 and (mark := _ANY.match(text)):
        return mark
    for start in _START.finditer(text, place):
        if mark := _ANY.match(text, start.start()):
            return mark
    return None


class _Splitter:
    def __init__(self, text: str, opened: bool) -> None:
        self._text = text
        self._quoted = Quoted(text)
        self._has_bos = text.lstrip().startswith("<s>")
        self._kept: list[str] = []
        self._thoughts: list[str] = []
        self._position = 0  # up to here the text is kept, reasoning, or dropped
        self._family: Marks | None = None  # whose reasoning is open
        self._depth = 0
        self._last_opening = 0
        self._last_closing = (0, 0)
        self._opened = opened  # and not closed yet
        self._answering = False  # reasoning has ended, or the answer was announced
        self._ending: re.Pattern[str] | None = None  # what ends the announced answer
        self._ended = False
        self._awaited = False  # the family announces every answer
        self._drafts = _DRAFTS
        self._gap = False  # something was dropped behind what was kept last

    def reply(self) -> Reply:
        after = self._read()
        left_open = self._family is not None or self._opened
        end = len(self._text) - len(after)
        if left_open:
            self._think(self._position, end)
        elif not self._ended:
            self._keep(self._position, end)
        answer = "".join(self._kept)
        reasoning = "\n\n".join(part for one in self._thoughts if (part := one.strip()))
        if left_open or (self._awaited and not answer.strip()):
            return Reply(reasoning, "", closed=False, after=after)
        return Reply(reasoning if self._answering else None, answer, after=after)

    def _read(self) -> str:
        """Read all marks; return what follows the end of the turn."""
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
        """The role of the mark at a place ("": it is none), its family, and where it ends."""
        if self._family is not None:
            for role in ("answer", "closing", "opening"):
                pattern = self._family.patterns.get(role)
                if pattern is not None and (found := pattern.match(self._text, at)):
                    return role, self._family, found.end()
            return "", None, at
        if self._ending is not None and (found := self._ending.match(self._text, at)):
            return "ending", None, found.end()
        for role, marks in _OUTSIDE.items():
            found = marks.match(self._text, at)
            if found is not None and found.lastgroup is not None:
                family = FAMILIES[int(found.lastgroup[1:])]
                if not family.phrase or family.patterns["answer"].search(self._text, found.end()):
                    return role, family, found.end()
        for role, pattern in (("turn", ENDS), ("frame", FRAMES), ("unfinished", UNFINISHED)):
            if found := pattern.match(self._text, at):
                return role, None, found.end()
        return "", None, at

    def _is_mark(self, role: str, family: Marks | None, at: int, end: int) -> bool:
        """Whether a mark is one, and no text about it."""
        closes = role in ("closing", "answer") and (self._family is not None or self._opened)
        ends_line = _END_OF_LINE.match(self._text, end) is not None
        literal = self._quoted.literal(at)
        if literal is not None:
            # Three quotes of a draft may have been left open, and so may a fence.
            return closes and ends_line and "\n" in literal
        fence = self._quoted.fence(at)
        if fence is not None:
            left_open = not fence.closed or self._closes_nothing(family, role, at, fence.start)
            return ends_line and (closes or (left_open and role != "opening"))
        return closes or not self._is_mention(at, end)

    def _closes_nothing(self, family: Marks | None, role: str, at: int, start: int) -> bool:
        """Whether a closing mark on a line of its own has no opening one in its block of code.

        The block is a draft then, left open, and its end is that of a block in the answer.
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
        else:  # a closing mark too many, or one around or behind the answer
            self._keep(self._position, at)
            self._position, self._gap = end, role != "frame"
            self._ended |= role in ("ending", "unfinished")
            self._awaited |= role == "unfinished"

    def _close(self, at: int, end: int) -> None:
        """Reasoning ends; tags around the answer may follow."""
        if self._drafts and (self._quoted.fence(at) or self._quoted.literal(at)):
            self._drafts -= 1  # the answer is not part of a draft that was left open
            self._quoted = Quoted(self._text, end)
        self._think(self._position, at)
        ended = self._ended and self._family is not None and bool(self._family.answer)
        wrapper = WRAPPERS.match(self._text, end)
        if wrapper is None:
            self._begin(end, None)
        else:
            self._begin(wrapper.end(), re.compile(f"(?i:</{wrapper[1]}>)"))
        self._ended = ended

    def _begin(self, place: int, ending: re.Pattern[str] | None) -> None:
        """The answer begins."""
        self._family, self._opened, self._ended = None, False, False
        self._answering = self._gap = True
        self._position, self._ending = place, ending

    def _forget(self, at: int) -> None:
        """All so far was reasoning."""
        self._thoughts.append("".join(self._kept))
        self._kept.clear()
        self._think(self._position, at)
        self._position = at

    def _think(self, start: int, end: int) -> None:
        self._thoughts.append(self._text[start:end])

    def _keep(self, start: int, end: int) -> None:
        part = "" if self._ended else self._text[start:end]
        if not part:
            return
        touching = self._gap and self._kept and not self._kept[-1][-1].isspace()
        if touching and not part[0].isspace():
            self._kept.append("\n")  # "1<think>…</think>2" is not 12
        self._kept.append(part)
        self._gap = False
