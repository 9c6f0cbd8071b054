"""Numbers and texts as people read them.

Test reports that everything can hold: whatever a model said, JUnit stays well-formed and small.

pytest itself escapes what XML cannot hold in messages and captured output, but neither in the names
of tests, nor does it cut anything.

What GitHub's runner makes of the log: it takes some lines for commands, whoever printed them.

A line that begins with ``::``, behind blanks or not, and one that has ``##[`` anywhere
(actions/runner, ActionCommand.cs).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from collections.abc import Sequence

import pytest

from pytest_llmeval.core.prices import Prices
from pytest_llmeval.runs.usage import cost
from pytest_llmeval.storage.usage_log import Counts
from pytest_llmeval.storage.usage_log import Rows
from pytest_llmeval.storage.usage_log import add

_COMMAND = re.compile(r"((?:\A|[\r\n])\s*):(?=:)|(?<=##)\[")


def is_github(environment: Mapping[str, str]) -> bool:
    """Whether this is a job of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def harmless(text: str) -> str:
    r"""Text to be printed; in a job of GitHub Actions without what would be a command in it.

    A command is shown as ``\u003a:`` or ``##\u005b``, which leaves JSON what it is.
    """
    return _COMMAND.sub(_escape, text) if is_github(os.environ) else text


def _escape(found: re.Match[str]) -> str:
    return r"\u005b" if found[0] == "[" else rf"{found[1]}\u003a"


REASON = 200
"""Characters shown of an answer in the reason why it is wrong."""

_TEXT = 20_000  # characters kept of a traceback or of captured output: some hundred lines
_WHOLE = "the model's answer is whole in records.jsonl"


def shown(answer: str) -> str:
    """The beginning of an answer as part of a sentence on one line."""
    return one_line(cut(answer, REASON, _WHOLE))


def name(nodeid: str) -> str:
    """A test's id, without what neither XML nor a line can hold."""
    return harmless(visible(nodeid).replace("\n", "\\n").replace("\t", "\\t"))


def fit(text: str) -> str:
    """A text that is printed and stands in JUnit: cut, and with nothing in it that acts."""
    return harmless(visible(cut(text, _TEXT, _WHOLE)))


def bound(report: pytest.TestReport) -> None:
    """Cut the texts of a report of ours, in place, before any plugin has seen them."""
    if isinstance(report.longrepr, tuple):  # where and why a test was skipped
        path, line, reason = report.longrepr
        report.longrepr = (path, line, fit(reason))
    elif report.longrepr is not None:
        text = report.longreprtext
        if len(text) > _TEXT or harmless(text) != text:
            report.longrepr = fit(text)
    if hasattr(report, "wasxfail"):
        report.wasxfail = harmless(report.wasxfail)
    if report.sections:
        report.sections = [
            (title, harmless(cut(text, _TEXT, _WHOLE))) for title, text in report.sections
        ]
    if report.user_properties:
        report.user_properties = [
            (key, cut(value, _TEXT, _WHOLE) if isinstance(value, str) else value)
            for key, value in report.user_properties
        ]


def number(value: float | None, digits: int = 4, *, none: str = "-") -> str:
    """``0.2812``."""
    return none if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 4, *, none: str = "-") -> str:
    """``+0.0312``; what is zero when it is rounded has no minus."""
    return none if value is None else f"{round(value, digits) + 0.0:+.{digits}f}"


def interval(value: Sequence[float] | None, *, none: str = "-") -> str:
    """``[0.2740, 0.2889]``; what is zero when it is rounded has no minus."""
    if value is None:
        return none
    low, high = (round(end, 4) + 0.0 for end in value)
    return f"[{low:.4f}, {high:.4f}]"


def gain_interval(accuracy: Sequence[float] | None, chance: float) -> tuple[float, float] | None:
    """The interval of the gain over a chance level below 1, from that of the accuracy."""
    if accuracy is None:
        return None
    low, high = ((end - chance) / (1 - chance) for end in accuracy)
    return low, high


def probability(p: float) -> str:
    """A p value: ``0.0123``, or ``<0.0001``."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def count(value: int, noun: str) -> str:
    """``1 item``, ``1,234 items``."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


# Controls but tab and line feed; characters without width or that turn the direction of the text
# around them (UAX #9); line and paragraph separators; lone surrogates; noncharacters, which XML 1.0
# cannot hold. Not the joiners and variation selectors (U+200C, U+200D, U+FE0F), without which
# Persian, Hindi and emoji cannot be read. The script of the HTML report has the same pattern.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""The text with every character that hides or acts as ``\x1b`` or ``\u202e``.

    Tabs and line feeds stay.
    """
    return HIDDEN.sub(lambda found: _formatting_escape(ord(found[0])), text)


def one_line(text: str) -> str:
    """The visible text on one line."""
    return " ".join(visible(text).split())


def cut(text: str, limit: int, rest: str) -> str:
    """The text, or its first ``limit`` characters, how many it has, and where the ``rest`` is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} […] ({len(text):,} characters; {rest})"


def shorten(text: str, limit: int) -> str:
    """The text, or its beginning with three dots, of at most ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def sentence(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _formatting_escape(code: int) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def usage_lines(rows: Rows, prices: Prices, *, resumed: bool = False) -> list[str]:
    """A line for every model and, where it answered several, for each of its benchmarks.

    ``resumed``: of a run with earlier sessions, which are in the sums.
    """
    lines = []
    for model in dict.fromkeys(model for model, _ in rows):
        own = {benchmark: counts for (name, benchmark), counts in rows.items() if name == model}
        ((_, total),) = add([(model, "", counts) for counts in own.values()]).items()
        sessions = " (all sessions)" if resumed else ""
        lines.append(f"{model}{sessions}: {_line(model, total, prices)}")
        if len(own) > 1:
            lines += [f"  {name}: {_line(model, counts, prices)}" for name, counts in own.items()]
    return lines


def duration(seconds: float) -> str:
    """``2.5 s``, ``3 min 20 s`` or ``1 h 0 min 5 s``."""
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
