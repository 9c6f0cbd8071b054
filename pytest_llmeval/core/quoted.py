"""Where a reply shows a text instead of using it: fences, inline code, string literals, comments.

Nothing is parsed: a reply is prose, code, or both. Every step is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^[ \t]*+(?P<marks>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^\n`]*+)$", re.MULTILINE)
"""A line that opens or closes a block of code; ``info`` begins with the language."""

# Of a string literal of one line, and of inline code: no more is looked at.
_LONGEST = 2000
# Fences within string literals, in one block of code: no more are looked at.
_FENCES = 40

_STRING = rf"\"(?:[^\"\\\n]|\\.){{0,{_LONGEST}}}+\"|'(?:[^'\\\n]|\\.){{0,{_LONGEST}}}+'"
_CODE = re.compile(rf"#[^\n]*+|\"\"\"|'''|{_STRING}|\\.", re.DOTALL)
# In prose an apostrophe opens nothing, and three quotes only where code may have them.
_PROSE = re.compile(
    rf"(?P<fence>{FENCE.pattern})"
    r"|(?P<triple>(?:^|(?<=[=(,\[{:+])|(?<=return)|(?<=yield)|(?<=assert)|(?<=else))[ \t]*+"
    r"[rRbBfFuU]{0,2}+(?:\"\"\"|'''))"
    rf"|(?P<string>(?<!\w)[rRbBfFuU]{{0,2}}+(?:{_STRING})(?!\w))"
    rf"|(?P<inline>(?<!`)(?P<ticks>`{{1,2}}+)(?!`)[^`\n]{{1,{_LONGEST}}}+(?P=ticks)(?!`))"
    r"|(?P<escape>\\[\"'`])"
    r"|(?P<comment>(?:^[ \t]++|(?<! )[ ]{2,}+)#[^\n]*+)",
    re.MULTILINE,
)
_ESCAPE_OR = {quotes: re.compile(rf"\\.|{quotes}", re.DOTALL) for quotes in ('"""', "'''")}
_FENCE_INSIDE = re.compile(
    # On a line of its own, or at the end of the last line of code; marks may follow.
    r"(?<![`~])(?P<closing>`{3,}+|~{3,}+)[ \t\r]*+"
    r"(?=(?:<[^<>\s]{1,40}+>|\[/\w+\]|◁/\w+▷|[ \t\r]){0,9}+$)"
    r"|^[ \t]*+(?P<opening>`{3,}+|~{3,}+)[ \t]*+[^\s`]",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code: its text is between ``start`` and ``end``, its marks before and behind.

    ``margin``: the blanks before the opening marks. ``info``: the words behind them.
    ``closed``: it has closing marks.
    """

    opening: int
    start: int
    end: int
    after: int
    margin: str
    info: str
    closed: bool


def literals(
    code: str, start: int = 0, stop: int | None = None, *, comments: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield where the string literals of Python code are, between ``start`` and ``stop``.

    With ``comments`` also where those are. A literal that is not closed is none, except a
    triple-quoted one: it ends at ``stop + 1``, beyond the code.
    """
    position, stop = start, len(code) if stop is None else stop
    while (token := _CODE.search(code, position, stop)) is not None:
        position = token.end()
        quotes = token.group()
        if quotes in _ESCAPE_OR:
            position = _closing_quotes(code, quotes, position, stop) or stop + 1
            yield token.start(), position
        elif quotes[0] in "\"'" or (comments and quotes[0] == "#"):
            yield token.start(), position


def _closing_quotes(text: str, quotes: str, start: int, stop: int) -> int | None:
    found = _ESCAPE_OR[quotes].finditer(text, start, stop)
    return next((one.end() for one in found if one.group() == quotes), None)


class Quoted:
    """The places of one reply where marks are text; ``fences``: its blocks of code, in order.

    Only what follows ``start`` is read.
    """

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self.fences: list[Fence] = []
        self._literals: list[tuple[int, int]] = []
        self._scan(start)

    def fence(self, place: int) -> Fence | None:
        """The block of code around a place."""
        found = bisect_right(self.fences, place, key=lambda one: one.start) - 1
        return self.fences[found] if found >= 0 and place < self.fences[found].end else None

    def literal(self, place: int) -> str | None:
        """The string literal, inline code or comment around a place."""
        found = bisect_right(self._literals, place, key=lambda one: one[0]) - 1
        if found < 0 or place >= self._literals[found][1]:
            return None
        return self._text[slice(*self._literals[found])]

    def _scan(self, position: int) -> None:
        unclosed: set[str] = set()
        while (found := _PROSE.search(self._text, position)) is not None:
            position = max(found.end(), found.start() + 1)
            if found["fence"] is not None:
                position = self._add_fence(found)
            elif found["escape"] is not None:
                continue
            elif found["triple"] is None:
                self._literals.append(found.span())
            elif (quotes := found["triple"][-3:]) not in unclosed:
                end = _closing_quotes(self._text, quotes, position, len(self._text))
                if end is None:
                    unclosed.add(quotes)
                else:
                    self._literals.append((found.start(), end))
                    position = end

    def _add_fence(self, opening: re.Match[str]) -> int:
        """Add the block that a fence opens, with its literals; return where to go on."""
        marks = opening["marks"]
        start = min(opening.end() + 1, len(self._text))
        next_fence = self._next_fence(marks, start)
        closed = next_fence is not None and next_fence["closing"] is not None
        end = len(self._text) if next_fence is None else next_fence.start()
        after = next_fence.end() if next_fence is not None and closed else end
        margin, info = opening.group().partition(marks)[0], opening["info"].strip()
        self.fences.append(Fence(opening.start(), start, end, after, margin, info, closed))
        inside = literals(self._text, start, end, comments=True)
        self._literals += [one for one in inside if one[1] <= end]
        return after

    def _next_fence(self, marks: str, start: int) -> re.Match[str] | None:
        """The fence that closes a block whose text begins at ``start``, or opens another.

        Marks inside of a string literal, such as a docstring, are neither, unless the literal
        has no end.
        """
        within: list[re.Match[str]] = []
        for fence in _FENCE_INSIDE.finditer(self._text, start):
            if not (fence["closing"] or fence["opening"]).startswith(marks):
                continue
            place = fence.start()
            for begin, end in literals(self._text, start, place):
                start = end if end <= place else self._end_of_literal(begin)
            if start <= place:
                return fence
            within.append(fence)
            if len(within) == _FENCES:
                return within[0]
        endless = start > len(self._text)
        return next((one for one in within if endless and one["closing"]), None)

    def _end_of_literal(self, begin: int) -> int:
        return next(literals(self._text, begin))[1]
