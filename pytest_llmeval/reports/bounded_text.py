"""Test reports that everything can hold: whatever a model said, JUnit stays well-formed and small.

pytest itself escapes what XML cannot hold in messages and captured output, but neither in the names
of tests, nor does it cut anything.
"""

from __future__ import annotations

import pytest

from pytest_llmeval.reports.ci.workflow_commands import harmless
from pytest_llmeval.reports.formatting import cut
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import visible

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
