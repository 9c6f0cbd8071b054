"""GitHub Markdown in which the texts of others are shown as they are.

Names stand in code spans, so that nothing in them is taken for markup, a mention or the border of
a table cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_llmeval.reports.formatting import harmless
from pytest_llmeval.reports.formatting import one_line


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table: the first column to the left, numbers to the right; cells are escaped already."""
    rule = ["---", *("---:" for _ in header[1:])]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(map(_star, line))} |" for line in lines)


def code(text: str) -> str:
    """The text as a code span, whatever is in it."""
    shown = harmless(one_line(text)) or " "  # a file may be printed, too
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(text: str) -> str:
    """A code span in a table, where a bar ends the cell even in a code span."""
    return code(text).replace("|", "\\|")


def plain(text: str) -> str:
    """The text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_\[\]<>#|~@&])", r"\\\1", one_line(text))


def html(text: str) -> str:
    """The text inside an element of HTML."""
    shown = one_line(text)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _star(text: str) -> str:
    """A cell whose mark of significance is not taken for emphasis."""
    return re.sub(r" \*$", r" \\*", text.strip())
