"""Lines and margins of code that a model has written: what was meant where they are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Iterator

from pytest_llmeval.core.quoted import literals
from pytest_llmeval.scorers.code.syntax import looks_like_code

TAB = 4

_INDENTED = re.compile(r"^[ \t]+\S", re.MULTILINE)


def first_line(text: str) -> tuple[str, str, str]:
    """What stands before the first line that is not blank, that line, and the rest."""
    start = len(text) - len(text.lstrip())
    start = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return text[:start], text[start:end], text[end:]


def is_indented(text: str) -> bool:
    return first_line(text)[1][:1].isspace()


def indentations(text: str, margin: str) -> Iterator[str]:
    """A body as it is; with its first line put right; with all lines put right.

    ``margin``: what the lines of the body are to begin with. Lines within a string literal stay
    as they are.
    """
    before, first, after = first_line(text)
    repaired = f"{before}{margin}{first.lstrip()}{after}"
    yield text
    yield from dict.fromkeys(
        variant
        for plain in dict.fromkeys((text, repaired))
        for variant in (
            repaired,
            _indented(dedented(plain), margin),
            _indented(dedented(_without_tabs(plain)), margin),
            _without_tabs(repaired),
        )
        if variant != text
    )


def parts_of_prose(prose: str) -> tuple[str, ...]:
    """Prose as it is, and from its first indented line on where no code begins before that."""
    found = _INDENTED.search(prose)
    before = prose[: found.start()] if found else ""
    if found is None or not before.strip() or looks_like_code(before):
        return (prose,)
    return prose, prose[found.start() :]


def dedented(text: str) -> str:
    """Without the margin that all lines of code share.

    Comments may be outside of it; lines within a string literal stay as they are.
    """
    inside = _lines_in_literals(text)
    code = [
        line
        for number, line in enumerate(text.split("\n"))
        if number not in inside and line.strip() and not line.lstrip().startswith("#")
    ]
    margins = [line[: len(line) - len(line.lstrip())] for line in code]
    shared = min(margins, key=len, default="")
    if not all(margin.startswith(shared) for margin in margins):
        return text
    return _changed(text, lambda line: line.removeprefix(shared))


def _indented(text: str, margin: str) -> str:
    return _changed(text, lambda line: margin + line if line.strip() else line)


def _without_tabs(text: str) -> str:
    """With blanks for the tabs that lines begin with."""

    def expanded(line: str) -> str:
        code = line.lstrip(" \t")
        return line[: len(line) - len(code)].expandtabs(TAB) + code

    return _changed(text, expanded)


def _changed(text: str, change: Callable[[str], str]) -> str:
    """The text with all lines changed except those that begin within a string literal."""
    inside = _lines_in_literals(text)
    lines = enumerate(text.split("\n"))
    return "\n".join(line if number in inside else change(line) for number, line in lines)


def _lines_in_literals(text: str) -> set[int]:
    """The numbers, from 0, of the lines that begin within a string literal."""
    inside: set[int] = set()
    line = position = 0
    for start, end in literals(text):
        if end > len(text):
            break
        line += text.count("\n", position, start)
        last = line + text.count("\n", start, end)
        inside.update(range(line + 1, last + 1))
        line, position = last, end
    return inside
