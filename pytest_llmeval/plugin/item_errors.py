"""Items with errors in the terminal: every reason once, instead of a section for every item.

Only what the terminal prints: the reports are those of pytest, so that errors make the session
red, are counted in the last line, are in JUnit and run again by ``--lf``.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.plugin.outcomes import outcome_of
from pytest_llmeval.reports.bounded_text import name
from pytest_llmeval.reports.notes import failure_line
from pytest_llmeval.runs.failures import Failure
from pytest_llmeval.runs.failures import gather

_CATEGORIES = ("error", "failed")
_KINDS = 10
"""Reasons that have a line."""


class ItemErrors:
    """Takes errors of items out of pytest's sections; the summary of the run has them gathered.

    One traceback of every reason stays, where there is one. With ``-vv`` or ``-rA`` pytest lists
    every item as ever.
    """

    def __init__(self, config: pytest.Config, plan: Plan) -> None:
        self._config = config
        self._plan = plan
        self._drop_examples: Callable[[], None] = lambda: None
        self._failures: list[Failure] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        stats = terminalreporter.stats
        every = {category: stats[category] for category in _CATEGORIES if category in stats}
        own = [one for reports in every.values() for one in reports if self._is_error(one)]
        listed = "A" in self._config.option.reportchars or self._config.get_verbosity() > 1
        if not own or listed:
            return (yield)
        self._failures = gather(
            (_reason(one), self._plan.by_nodeid[one.nodeid].item, name(one.nodeid)) for one in own
        )
        examples = {failure.example for failure in self._failures[:_KINDS]}
        shown = {id(one) for one in own if name(one.nodeid) in examples and _has_traceback(one)}

        def keep(which: set[int]) -> None:
            hidden = {id(one) for one in own} - which
            for category, reports in every.items():
                stats[category] = [one for one in reports if id(one) not in hidden]

        keep(shown)
        # Between pytest's sections, which show tracebacks, and its short summary.
        self._drop_examples = lambda: keep(set())
        try:
            return (yield)
        finally:
            stats.update(every)

    def lines(self) -> Iterator[str]:
        """A line for every reason, the most frequent first."""
        self._drop_examples()
        yield from (failure_line(one, "items") for one in self._failures[:_KINDS])
        if rest := self._failures[_KINDS:]:
            yield f"ERROR {sum(one.count for one in rest):,} more items, {len(rest):,} other reasons"
        if any(one.count > 1 for one in self._failures):
            yield "-rA lists every item with an error"

    def _is_error(self, report: Any) -> bool:
        """Whether it is an error of an item, rather than a wrong answer that is to fail."""
        outcome = outcome_of(report) or Outcome.ERROR
        return report.nodeid in self._plan.by_nodeid and outcome == Outcome.ERROR


def _has_traceback(report: pytest.TestReport) -> bool:
    """Whether pytest shows more than a message, as it does not for ``pytest.fail(pytrace=False)``."""
    style = getattr(getattr(report.longrepr, "reprtraceback", None), "style", "value")
    return bool(style != "value")


def _reason(report: pytest.TestReport) -> str:
    """What went wrong in a test, without where."""
    crash, text = getattr(report.longrepr, "reprcrash", None), report.longreprtext
    if crash is not None:
        # The exception's name goes without saying where `pytest.fail` gave the reason.
        text = crash.message if _has_traceback(report) else crash.message.removeprefix("Failed: ")
    elif "\n" in text:
        # A fixture that is not found, or a traceback that was cut: pytest marks the message.
        marked = [line[1:] for line in text.splitlines() if line.startswith("E ")]
        text = marked[0] if marked else text
    return f"teardown: {text}" if report.when == "teardown" else text
