"""GitHub Markdown with escaped texts.

Names are in code spans, so that nothing in them is read as markup, as a mention or as the border of
a table cell.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_llmeval.reports.formatting import escape_workflow_commands
from pytest_llmeval.reports.formatting import one_line


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: Collection[str] = ()) -> str:
    """Return a table of escaped cells; the first column and those named in ``texts`` align left."""
    rule = ["---", *("---" if name in texts else "---:" for name in header[1:])]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(map(_escape_star, line))} |" for line in lines)


def code_span(text: str) -> str:
    """Return the text as a code span with a fence that it does not contain."""
    content = escape_workflow_commands(one_line(text)) or " "  # the Markdown may be printed, too
    fence = "`" * (max((len(run) for run in re.findall("`+", content)), default=0) + 1)
    pad = " " if content.startswith("`") or content.endswith("`") else ""
    return f"{fence}{pad}{content}{pad}{fence}"


def code_cell(text: str) -> str:
    """Return a code span for a table, where a bar ends the cell even in a code span."""
    return code_span(text).replace("|", "\\|")


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged."""
    return re.sub(r"([\\`*_\[\]<>#|~@&])", r"\\\1", one_line(text))


def escape_html(text: str) -> str:
    """Escape a text for the content of an HTML element."""
    line = one_line(text)
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escape_star(text: str) -> str:
    """Escape the mark of significance at the end of a cell."""
    return re.sub(r" \*$", r" \\*", text.strip())
