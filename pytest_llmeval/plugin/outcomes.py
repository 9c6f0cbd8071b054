"""The outcomes of tests as their reports carry them, for progress, exit code and notes.

What becomes numbers is in the records: see ``runs.run``.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.reports.formatting import display_nodeid
from pytest_llmeval.reports.wording import failure_line
from pytest_llmeval.runs.reply_problems import Failure
from pytest_llmeval.runs.reply_problems import gather

REUSED = "reused"
"""The answer was on disk already."""

CONTRADICTED = "contradicted"
"""The body of the test counts the item as correct against the scorer."""

SAMPLES_CONTRADICTED = "samples contradicted"
"""The body of the test judges an item with several samples otherwise than the scorer."""

UNANSWERED = "unanswered"
"""An error before the model was sent anything, as where it could not be loaded."""


def attach(report: pytest.TestReport, outcome: Outcome, remarks: list[str]) -> None:
    """Attach the outcome of an item to the report of its test, which xdist may send."""
    report.llmeval = outcome.value  # type: ignore[attr-defined]
    if remarks:
        report.llmeval_remarks = remarks  # type: ignore[attr-defined]


def outcome_of(report: object) -> str | None:
    """The outcome that the report of a test carries; None of any other report."""
    return getattr(report, "llmeval", None)


class Outcomes:
    """The outcomes of a session's tests, as their reports come in."""

    def __init__(self) -> None:
        self.by_nodeid: dict[str, str] = {}
        self._remarks: dict[str, set[str]] = {}

    def receive(self, report: pytest.TestReport, outcome: str) -> None:
        """Take the outcome of a report, instead of that of an earlier attempt."""
        self.by_nodeid[report.nodeid] = outcome
        for nodeids in self._remarks.values():
            nodeids.discard(report.nodeid)
        for remark in getattr(report, "llmeval_remarks", ()):
            self._remarks.setdefault(remark, set()).add(report.nodeid)

    def lose(self, nodeid: str) -> None:
        """Take an item whose test ended without an outcome."""
        self.by_nodeid[nodeid] = Outcome.ERROR.value

    def count(self, remark: str) -> int:
        """The number of tests with a remark."""
        return len(self._remarks.get(remark, ()))

    def notes(self) -> Iterator[str]:
        """How the outcomes came about, where it is out of the ordinary."""
        if reused := self.count(REUSED):
            yield f"{reused:,} answers were taken from what the run had on disk"
        if alone := self.count(CONTRADICTED):
            yield f"{alone:,} items count as correct by their test's body, against the scorer"
        if several := self.count(SAMPLES_CONTRADICTED):
            yield (
                f"{several:,} items are judged otherwise by their test's body than by the"
                " scorer, whose outcomes of their samples count"
            )


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
            (_reason(one), self._plan.by_nodeid[one.nodeid].item, display_nodeid(one.nodeid))
            for one in own
        )
        examples = {failure.example for failure in self._failures[:_KINDS]}
        shown = {
            id(one) for one in own if display_nodeid(one.nodeid) in examples and _has_traceback(one)
        }

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
