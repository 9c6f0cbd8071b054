"""Formatting of numbers and texts, bounded texts of test reports, and escaping of CI commands."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_llmeval.core.prices import Prices
from pytest_llmeval.runs.usage import cost
from pytest_llmeval.storage.usage_log import Counts
from pytest_llmeval.storage.usage_log import Rows
from pytest_llmeval.storage.usage_log import sum_usage

if TYPE_CHECKING:
    import pytest

_COMMAND = re.compile(r"((?:\A|[\r\n])\s*):(?=:)|(?<=##)\[")
"""Workflow commands in a log, which GitHub's runner executes whatever program printed them.

They are lines that begin with ``::``, after white space or not, and lines with ``##[`` anywhere
(actions/runner, ActionCommand.cs).
"""


def is_github(environment: Mapping[str, str]) -> bool:
    """Return True in a job of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def escape_workflow_commands(text: str) -> str:
    r"""Escape the workflow commands in a text to be printed, in a job of GitHub Actions only.

    A command becomes ``\u003a:`` or ``##\u005b``, which does not change the value of JSON strings.
    """
    return _COMMAND.sub(_escape, text) if is_github(os.environ) else text


def _escape(match: re.Match[str]) -> str:
    return r"\u005b" if match[0] == "[" else rf"{match[1]}\u003a"


REASON = 200
"""Characters of an answer in the reason why it is wrong."""

_TEXT = 20_000  # characters of a traceback or of captured output: some hundred lines
_WHOLE = "the model's full answer is in records.jsonl"


def display_text(answer: str) -> str:
    """Return the beginning of an answer on one line, as part of a sentence."""
    return one_line(truncate(answer, REASON, _WHOLE))


def display_nodeid(nodeid: str) -> str:
    """Return a test's id without characters that are invalid in XML or break a line.

    pytest escapes such characters in messages and captured output, but not in the names of tests.
    """
    return escape_workflow_commands(visible(nodeid).replace("\n", "\\n").replace("\t", "\\t"))


def bounded_text(text: str) -> str:
    """Return a text for the terminal and JUnit: truncated, without control characters or commands."""
    return escape_workflow_commands(visible(truncate(text, _TEXT, _WHOLE)))


def bound_report_texts(report: pytest.TestReport) -> None:
    """Truncate the texts of a test report in place, so that JUnit files stay small."""
    if isinstance(report.longrepr, tuple):  # where and why a test was skipped
        path, line, reason = report.longrepr
        report.longrepr = (path, line, bounded_text(reason))
    elif report.longrepr is not None:
        text = report.longreprtext
        if len(text) > _TEXT or escape_workflow_commands(text) != text:
            report.longrepr = bounded_text(text)
    if hasattr(report, "wasxfail"):
        report.wasxfail = escape_workflow_commands(report.wasxfail)
    if report.sections:
        report.sections = [
            (title, escape_workflow_commands(truncate(text, _TEXT, _WHOLE)))
            for title, text in report.sections
        ]
    if report.user_properties:
        report.user_properties = [
            (key, truncate(value, _TEXT, _WHOLE) if isinstance(value, str) else value)
            for key, value in report.user_properties
        ]


def number(value: float | None, digits: int = 4, *, none: str = "-") -> str:
    """Format a number: ``0.2812``."""
    return none if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 4, *, none: str = "-") -> str:
    """Format a number with its sign: ``+0.0312``; a value that rounds to zero has no minus."""
    return none if value is None else f"{round(value, digits) + 0.0:+.{digits}f}"


def interval(value: Sequence[float] | None, *, none: str = "-") -> str:
    """Format an interval: ``[0.2740, 0.2889]``; a value that rounds to zero has no minus."""
    if value is None:
        return none
    low, high = (round(end, 4) + 0.0 for end in value)
    return f"[{low:.4f}, {high:.4f}]"


def gain_interval(accuracy: Sequence[float] | None, chance: float) -> tuple[float, float] | None:
    """Return the interval of the gain over a chance level below 1, from that of the accuracy."""
    if accuracy is None:
        return None
    low, high = ((end - chance) / (1 - chance) for end in accuracy)
    return low, high


def probability(p: float) -> str:
    """Format a p value: ``0.0123``, or ``<0.0001``."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def count(value: int, noun: str) -> str:
    """Format a number of things: ``1 item``, ``1,234 items``."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


# Control characters except tab and line feed; characters without width or that change the direction
# of the text around them (UAX #9); line and paragraph separators; lone surrogates; noncharacters,
# which are invalid in XML 1.0. Joiners and variation selectors (U+200C, U+200D, U+FE0F) are not in
# it: Persian, Hindi and emoji need them. The script of the HTML report has the same pattern.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Replace hidden and control characters by escapes such as ``\x1b`` or ``\u202e``.

    Tabs and line feeds are not replaced.
    """
    return HIDDEN.sub(lambda match: _formatting_escape(ord(match[0])), text)


def one_line(text: str) -> str:
    """Return the visible text on one line."""
    return " ".join(visible(text).split())


def truncate(text: str, limit: int, rest: str) -> str:
    """Return at most ``limit`` characters of a text, then its length and where the ``rest`` is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} […] ({len(text):,} characters; {rest})"


def shorten(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters, with an ellipsis if it is shortened."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


WIDTH = 100
"""Columns of a line in the terminal without ``-v``."""


def wrap_text(text: str, width: int = WIDTH, first: str = "", indent: str = "  ") -> str:
    """Return the text in lines of at most ``width`` columns; longer words stay whole.

    ``first`` begins the first line, ``indent`` the others.
    """
    lines = textwrap.wrap(
        text.replace(" %", "\xa0%"),  # no line begins with a unit
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\xa0%", " %")


def capitalize(text: str) -> str:
    """Return the text with an upper-case first letter."""
    return text[:1].upper() + text[1:]


def _formatting_escape(code: int) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def usage_lines(rows: Rows, prices: Prices, *, resumed: bool = False) -> list[str]:
    """Return a line on the resource use of every model, and of its benchmarks if it has several.

    ``resumed``: the sums include earlier sessions of the run.
    """
    lines = []
    for model in dict.fromkeys(model for model, _ in rows):
        benchmarks = {
            benchmark: counts for (name, benchmark), counts in rows.items() if name == model
        }
        ((_, total),) = sum_usage([(model, "", counts) for counts in benchmarks.values()]).items()
        sessions = " (all sessions)" if resumed else ""
        lines.append(f"{model}{sessions}: {_line(model, total, prices)}")
        if len(benchmarks) > 1:
            lines += [f"  {name}: {_line(model, c, prices)}" for name, c in benchmarks.items()]
    return lines


def duration(seconds: float) -> str:
    """Format a duration: ``2.5 s``, ``3 min 20 s`` or ``1 h 0 min 5 s``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3600)
    return (f"{hours} h " if hours else "") + f"{rest // 60} min {rest % 60} s"


def _line(model: str, counts: Counts, prices: Prices) -> str:
    used = {name: f"{value:,.0f}" for name, value in counts.items()}
    money = cost(model, counts, prices)
    return (
        f"{used['requests']} requests ({used['retries']} retries),"
        f" {used['from_cache']} answers from the cache; tokens: {used['prompt_tokens']} prompt"
        f" ({used['cached_tokens']} cached), {used['completion_tokens']} completion"
        f" ({used['reasoning_tokens']} reasoning)"
        + ("" if money is None else f"; {prices.format_amount(money)}")
    )
