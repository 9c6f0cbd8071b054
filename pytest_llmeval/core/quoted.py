"""Quoted regions of a reply: fenced code, inline code, string literals, comments.

Marks in them are text. Nothing is parsed, since a reply may be prose, code, or both. Every step
is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^[ \t]*+(?P<marks>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^\n`]*+)$", re.MULTILINE)
"""A line that opens or closes a block of code; ``info`` begins with the language."""

# The longest single-line string literal or inline code that is recognised, in characters.
_LONGEST = 2000
# The number of fences in string literals of one block of code after which the search stops.
_MOST_FENCES = 40

_STRING = rf"\"(?:[^\"\\\n]|\\.){{0,{_LONGEST}}}+\"|'(?:[^'\\\n]|\\.){{0,{_LONGEST}}}+'"
_CODE = re.compile(rf"#[^\n]*+|\"\"\"|'''|{_STRING}|\\.", re.DOTALL)
# In prose, an apostrophe does not open a literal, and three quotes only where code allows them.
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
    # On a separate line, or at the end of the last line of code; marks may follow.
    r"(?<![`~])(?P<closing>`{3,}+|~{3,}+)[ \t\r]*+"
    r"(?=(?:<[^<>\s]{1,40}+>|\[/\w+\]|◁/\w+▷|[ \t\r]){0,9}+$)"
    r"|^[ \t]*+(?P<opening>`{3,}+|~{3,}+)[ \t]*+[^\s`]",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code, as offsets in the reply."""

    #: Start of the line with the opening marks.
    opening: int
    #: Start and end of the text between the marks.
    start: int
    end: int
    #: End of the closing marks.
    after: int
    #: The blanks before the opening marks.
    margin: str
    #: The words after the opening marks.
    info: str
    #: The block has closing marks.
    closed: bool


def string_literals(
    code: str, start: int = 0, stop: int | None = None, *, comments: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the string literals of Python code between ``start`` and ``stop``.

    With ``comments`` also those of comments. A literal that is not closed is ignored, except a
    triple-quoted one, which ends at ``stop + 1``, beyond the code.
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
    matches = _ESCAPE_OR[quotes].finditer(text, start, stop)
    return next((match.end() for match in matches if match.group() == quotes), None)


class QuotedRegions:
    """The quoted regions of a reply from ``start`` on; ``fences`` are its blocks of code."""

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self.fences: list[Fence] = []
        self._literals: list[tuple[int, int]] = []
        self._scan(start)

    def fence(self, place: int) -> Fence | None:
        """Return the block of code around an offset, or None."""
        index = bisect_right(self.fences, place, key=lambda fence: fence.start) - 1
        return self.fences[index] if index >= 0 and place < self.fences[index].end else None

    def literal(self, place: int) -> str | None:
        """Return the string literal, inline code or comment around an offset, or None."""
        index = bisect_right(self._literals, place, key=lambda span: span[0]) - 1
        if index < 0 or place >= self._literals[index][1]:
            return None
        return self._text[slice(*self._literals[index])]

    def _scan(self, position: int) -> None:
        unclosed: set[str] = set()
        while (match := _PROSE.search(self._text, position)) is not None:
            position = max(match.end(), match.start() + 1)
            if match["fence"] is not None:
                position = self._add_fence(match)
            elif match["escape"] is not None:
                continue
            elif match["triple"] is None:
                self._literals.append(match.span())
            elif (quotes := match["triple"][-3:]) not in unclosed:
                end = _closing_quotes(self._text, quotes, position, len(self._text))
                if end is None:
                    unclosed.add(quotes)
                else:
                    self._literals.append((match.start(), end))
                    position = end

    def _add_fence(self, opening: re.Match[str]) -> int:
        """Add the block that a fence opens, with its literals; return the offset after it."""
        marks = opening["marks"]
        start = min(opening.end() + 1, len(self._text))
        next_fence = self._next_fence(marks, start)
        closed = next_fence is not None and next_fence["closing"] is not None
        end = len(self._text) if next_fence is None else next_fence.start()
        after = next_fence.end() if next_fence is not None and closed else end
        margin, info = opening.group().partition(marks)[0], opening["info"].strip()
        self.fences.append(Fence(opening.start(), start, end, after, margin, info, closed))
        inside = string_literals(self._text, start, end, comments=True)
        self._literals += [span for span in inside if span[1] <= end]
        return after

    def _next_fence(self, marks: str, start: int) -> re.Match[str] | None:
        """Return the fence that closes a block whose text begins at ``start``, or opens another.

        Marks in a string literal, such as a docstring, are ignored, unless the literal is not
        closed.
        """
        within: list[re.Match[str]] = []
        for fence in _FENCE_INSIDE.finditer(self._text, start):
            if not (fence["closing"] or fence["opening"]).startswith(marks):
                continue
            place = fence.start()
            for begin, end in string_literals(self._text, start, place):
                start = end if end <= place else self._end_of_literal(begin)
            if start <= place:
                return fence
            within.append(fence)
            if len(within) == _MOST_FENCES:
                return within[0]
        unclosed = start > len(self._text)
        return next((fence for fence in within if unclosed and fence["closing"]), None)

    def _end_of_literal(self, begin: int) -> int:
        return next(string_literals(self._text, begin))[1]
