"""Lines and margins of code that a model has written: what was meant where they are wrong."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from pytest_llmeval.scorers.code_syntax import looks_like_code

TAB = 4

_FUTURE = re.compile(r"^from[ \t]+__future__[ \t]+import\b[^\n]*\n?", re.MULTILINE)
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

    ``margin``: what the lines of the body are to begin with.
    """
    before, first, after = first_line(text)
    repaired = f"{before}{margin}{first.lstrip()}{after}"
    yield text
    yield from dict.fromkeys(
        variant
        for plain in dict.fromkeys((text, repaired))
        for variant in (
            repaired,
            textwrap.indent(_dedented(plain), margin),
            textwrap.indent(_dedented(plain.expandtabs(TAB)), margin),
            repaired.expandtabs(TAB),
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


def futures_first(source: str) -> str:
    """Imports from ``__future__`` must come before anything else."""
    found = _FUTURE.findall(source)
    if not found:
        return source
    return "".join(line.rstrip("\n") + "\n" for line in found) + _FUTURE.sub("", source)


def _dedented(text: str) -> str:
    """Without the margin that all lines of code share; comments may stand outside it."""
    lines = text.split("\n")
    code = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    margins = [line[: len(line) - len(line.lstrip())] for line in code]
    shared = min(margins, key=len, default="")
    if not all(margin.startswith(shared) for margin in margins):
        return text
    return "\n".join(line.removeprefix(shared) for line in lines)
