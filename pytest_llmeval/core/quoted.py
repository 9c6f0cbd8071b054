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
# Fences in one docstring: no more are looked at.
_FENCES = 40

_STRING = rf"\"(?:[^\"\\\n]|\\.){{0,{_LONGEST}}}+\"|'(?:[^'\\\n]|\\.){{0,{_LONGEST}}}+'"
_CODE = re.compile(rf"#[^\n]*+|\"\"\"|'''|{_STRING}|\\.", re.DOTALL)
# In prose an apostrophe opens nothing, and three quotes only where code may have them.
_PROSE = re.compile(
    rf"(?P<fence>{FENCE.pattern})"
    r"|(?P<triple>(?:^[ \t]*+|(?<=[=(,\[{:+])[ \t]*+|(?<=return)[ \t]*+)[rRbBfFuU]{0,2}+"
    r"(?:\"\"\"|'''))"
    rf"|(?P<string>(?<!\w)[rRbBfFuU]{{0,2}}+(?:{_STRING})(?!\w))"
    rf"|(?P<inline>(?<!`)(?P<ticks>`{{1,2}}+)(?!`)[^`\n]{{1,{_LONGEST}}}+(?P=ticks)(?!`))"
    r"|(?P<comment>(?:^[ \t]++|(?<! )[ ]{2,}+)#[^\n]*+)",
    re.MULTILINE,
)
_ESCAPE_OR = {quotes: re.compile(rf"\\.|{quotes}", re.DOTALL) for quotes in ('"""', "'''")}
_CLOSING = {
    # On a line of its own, or at the end of the last line of code, before other marks or none.
    mark: re.compile(rf"(?<!{mark}){mark}{{3,}}+[ \t]*+(?=$|<[/|]|\[/|◁)", re.MULTILINE)
    for mark in "`~"
}


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code: where its text begins and ends. ``closed``: its closing marks follow."""

    start: int
    end: int
    closed: bool


def literals(code: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield where the string literals of Python code are, between ``start`` and ``stop``.

    A literal that is not closed is none, except a triple-quoted one: it ends at ``stop + 1``,
    beyond the code. Comments hold no literals.
    """
    position, stop = start, len(code) if stop is None else stop
    while (token := _CODE.search(code, position, stop)) is not None:
        position = token.end()
        quotes = token.group()
        if quotes in _ESCAPE_OR:
            position = _closing_quotes(code, quotes, position, stop) or stop + 1
            yield token.start(), position
        elif quotes[0] in "\"'":
            yield token.start(), position


def _closing_quotes(text: str, quotes: str, start: int, stop: int) -> int | None:
    found = _ESCAPE_OR[quotes].finditer(text, start, stop)
    return next((one.end() for one in found if one.group() == quotes), None)


class Quoted:
    """The places of one reply where marks are text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences: list[Fence] = []
        self._literals: list[tuple[int, int]] = []
        self._closings: dict[str, tuple[int, re.Match[str] | None]] = {}
        self._scan()

    def fence(self, place: int) -> Fence | None:
        """The block of code around a place."""
        found = bisect_right(self._fences, place, key=lambda one: one.start) - 1
        return self._fences[found] if found >= 0 and place < self._fences[found].end else None

    def literal(self, place: int) -> str | None:
        """The string literal, inline code or comment around a place."""
        found = bisect_right(self._literals, place, key=lambda one: one[0]) - 1
        if found < 0 or place >= self._literals[found][1]:
            return None
        return self._text[slice(*self._literals[found])]

    def _scan(self) -> None:
        unclosed: set[str] = set()
        position = 0
        while (found := _PROSE.search(self._text, position)) is not None:
            position = max(found.end(), found.start() + 1)
            if found["fence"] is not None:
                position = self._add_fence(found)
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
        closing = self._closing_fence(marks, start)
        after = len(self._text) if closing is None else closing.end()
        end = len(self._text) if closing is None else closing.start()
        inside = list(literals(self._text, start, end))
        for fence in FENCE.finditer(self._text, start, end):
            # Another opening one first: this block was left open.
            if fence["info"].strip() and fence["marks"].startswith(marks):
                place = bisect_right(inside, fence.start("marks"), key=lambda one: one[0]) - 1
                if place < 0 or fence.start("marks") >= inside[place][1]:
                    closing, end, after = None, fence.start(), fence.start()
                    break
        self._fences.append(Fence(start, end, closed=closing is not None))
        self._literals += [one for one in inside if one[1] <= end]
        return after

    def _closing_fence(self, marks: str, start: int) -> re.Match[str] | None:
        """The marks that close a block of code whose text begins at ``start``.

        Marks inside of a string literal, such as a docstring, close nothing, unless no others do.
        """
        first = closing = self._next_fence(marks, start)
        for _ in range(_FENCES):
            if closing is None:
                break
            open_literal = None
            for literal in literals(self._text, start, closing.start()):
                open_literal = literal[0] if literal[1] > closing.start() else None
            if open_literal is None:
                return closing
            start, closing = open_literal, self._next_fence(marks, closing.end())
        return first

    def _next_fence(self, marks: str, start: int) -> re.Match[str] | None:
        # Searched for once for all blocks in front of it: they may be many.
        since, found = self._closings.get(marks, (len(self._text) + 1, None))
        if start < since or (found is not None and found.start() < start):
            closings = _CLOSING[marks[0]].finditer(self._text, start)
            long_enough = (one for one in closings if one.group().count(marks[0]) >= len(marks))
            found = next(long_enough, None)
            self._closings[marks] = start, found
        return found
