"""The outcomes of tests as their reports carry them, for progress, exit code and notes.

What becomes numbers is in the records: see ``runs.run``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_llmeval.core import Outcome

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
    report.llmeval = str(outcome)  # type: ignore[attr-defined]
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
        self.by_nodeid[nodeid] = str(Outcome.ERROR)

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
