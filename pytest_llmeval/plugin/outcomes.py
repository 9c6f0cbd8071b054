"""Outcomes of tests, attached to their reports, for the terminal, the exit code and notes.

Metrics are computed from records only: see ``runs.run``.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import verdict_line
from pytest_llmeval.reports.formatting import bounded_text
from pytest_llmeval.reports.formatting import display_nodeid
from pytest_llmeval.reports.wording import failure_line
from pytest_llmeval.runs.reply_problems import ErrorGroup
from pytest_llmeval.runs.reply_problems import group_errors

REUSED = "reused"
"""Remark: the answer is from an earlier session."""

CONTRADICTED = "contradicted"
"""Remark: the item is correct by its test, and not by the scorer."""

SAMPLES_CONTRADICTED = "samples contradicted"
"""Remark: test and scorer differ on an item with several samples."""

UNANSWERED = "unanswered"
"""Remark: an error before a request was sent, for example when loading the model."""


NOT_NEEDED = "not needed"
"""Outcome of an item that was not requested, because its gates were decided without it."""


def attach_outcome(report: pytest.TestReport, outcome: str, remarks: list[str]) -> None:
    """Attach the outcome of an item to the report of its test; xdist transfers both."""
    report.llmeval = str(outcome)  # type: ignore[attr-defined]
    if remarks:
        report.llmeval_remarks = remarks  # type: ignore[attr-defined]


def outcome_of(report: object) -> str | None:
    """Return the outcome attached to a report; None if there is none."""
    return getattr(report, "llmeval", None)


class Outcomes:
    """Outcomes of a session's tests, collected from their reports."""

    def __init__(self) -> None:
        self.by_nodeid: dict[str, str] = {}
        self._remarks: dict[str, set[str]] = {}

    def add(self, report: pytest.TestReport, outcome: str) -> None:
        """Add the outcome of a report; it replaces that of an earlier attempt."""
        self.by_nodeid[report.nodeid] = outcome
        for nodeids in self._remarks.values():
            nodeids.discard(report.nodeid)
        for remark in getattr(report, "llmeval_remarks", ()):
            self._remarks.setdefault(remark, set()).add(report.nodeid)

    def add_error(self, nodeid: str) -> None:
        """Add an error for an item whose test ended without an outcome."""
        self.by_nodeid[nodeid] = Outcome.ERROR.value

    def count(self, remark: str) -> int:
        """Return the number of tests with a remark."""
        return len(self._remarks.get(remark, ()))

    def notes(self) -> Iterator[str]:
        """Yield notes on reused answers and on outcomes that differ from the scorer's."""
        if reused := self.count(REUSED):
            yield f"{reused:,} answers of an earlier session were reused"
        if single := self.count(CONTRADICTED):
            yield f"{single:,} items count as correct because their test passed, although the scorer disagrees"
        if several := self.count(SAMPLES_CONTRADICTED):
            yield (
                f"{several:,} items have another outcome by their test than by the scorer; their"
                " samples are counted by the scorer's"
            )


_CATEGORIES = ("error", "failed")
_KINDS = 10
"""Maximum number of reasons that are listed."""


class ItemErrors:
    """Grouping of item errors: the run's summary lists reasons, pytest's sections one example each.

    With ``-vv`` or ``-rA`` pytest lists every item as usual.
    """

    def __init__(self, config: pytest.Config, plan: Plan) -> None:
        self._config = config
        self._plan = plan
        self._hide_examples: Callable[[], None] = lambda: None
        self._failures: list[ErrorGroup] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        stats = terminalreporter.stats
        by_category = {category: stats[category] for category in _CATEGORIES if category in stats}
        errors = [
            report
            for reports in by_category.values()
            for report in reports
            if self._is_error(report)
        ]
        listed = "A" in self._config.option.reportchars or self._config.get_verbosity() > 1
        if not errors or listed:
            return (yield)
        self._failures = group_errors(
            (
                _reason(report),
                self._plan.by_nodeid[report.nodeid].item,
                display_nodeid(report.nodeid),
            )
            for report in errors
        )
        examples = {failure.example for failure in self._failures[:_KINDS]}
        printed = {
            id(report)
            for report in errors
            if display_nodeid(report.nodeid) in examples and _has_traceback(report)
        }

        def hide_errors_except(report_ids: set[int]) -> None:
            hidden = {id(report) for report in errors} - report_ids
            for category, reports in by_category.items():
                stats[category] = [report for report in reports if id(report) not in hidden]

        hide_errors_except(printed)
        # Called after pytest's sections with tracebacks and before its short summary.
        self._hide_examples = lambda: hide_errors_except(set())
        try:
            return (yield)
        finally:
            stats.update(by_category)

    def lines(self) -> Iterator[str]:
        """Yield a line for every reason, the most frequent first."""
        self._hide_examples()
        yield from (failure_line(failure, "items") for failure in self._failures[:_KINDS])
        if rest := self._failures[_KINDS:]:
            count = sum(failure.count for failure in rest)
            yield f"ERROR {count:,} more items, {len(rest):,} other reasons"
        if any(failure.count > 1 for failure in self._failures):
            yield "-rA lists every item with an error"

    def _is_error(self, report: Any) -> bool:
        """Return whether a report is an item's error, not a wrong answer that fails its test."""
        outcome = outcome_of(report) or Outcome.ERROR
        return report.nodeid in self._plan.by_nodeid and outcome == Outcome.ERROR


def _has_traceback(report: pytest.TestReport) -> bool:
    """Return whether pytest prints more than a message; not for ``pytest.fail(pytrace=False)``."""
    style = getattr(getattr(report.longrepr, "reprtraceback", None), "style", "value")
    return bool(style != "value")


def _reason(report: pytest.TestReport) -> str:
    """Return the error message of a failed test, without its location."""
    crash, text = getattr(report.longrepr, "reprcrash", None), report.longreprtext
    if crash is not None:
        # `pytest.fail` gives the reason alone: drop the name of its exception.
        text = crash.message if _has_traceback(report) else crash.message.removeprefix("Failed: ")
    elif "\n" in text:
        # A missing fixture, or a traceback that was cut: pytest marks the message with E.
        marked = [line[1:] for line in text.splitlines() if line.startswith("E ")]
        text = marked[0] if marked else text
    return f"teardown: {text}" if report.when == "teardown" else text


class GateReport(pytest.TestReport):
    """Report of a gate as a test, such as ``thresholds.toml::mmlu::accuracy``."""

    def __init__(self, file: str, verdict: Verdict, outcome: Any, when: Any) -> None:
        text = bounded_text(verdict_line(verdict))
        longrepr: Any = {"passed": None, "failed": text, "skipped": (file, 0, text)}[outcome]
        super().__init__(
            nodeid=display_nodeid(f"{file}::{verdict.id}"),
            location=(file, None, display_nodeid(verdict.id)),
            keywords={},
            outcome=outcome,
            longrepr=longrepr,
            when=when,
        )
        self.category = f"gates {verdict.state}"
