"""JUnit files with a test case per subject of a result, instead of one per item.

Readers of these files have limits: GitLab parses 250,000 XML objects (gitlab-org/gitlab#507482), other
services stop at 5,000 test cases or 1 MB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import pytest

from pytest_llmeval.core.plan import Plan
from pytest_llmeval.metrics import Counts
from pytest_llmeval.plugin.pytest_internals import Function
from pytest_llmeval.plugin.pytest_internals import intercept
from pytest_llmeval.plugin.pytest_internals import junit_plugin
from pytest_llmeval.reports.formatting import bounded_text
from pytest_llmeval.reports.formatting import display_nodeid
from pytest_llmeval.runs.measurement import Measurement

_MAX_FAILURES = 10
"""Maximum number of failed items that a test case names."""

Group = tuple[int, int, str]
"""Index of the model, index of the planned result, subject."""


@dataclass
class _Tests:
    """Reported tests of a group's items."""

    file: str = ""
    seconds: float = 0.0
    #: Item → text of the first failure of its test.
    failures: dict[str, str] = field(default_factory=dict)
    #: True if a test failed outside its body: without an answer, or in a fixture.
    errors: bool = False


class SubjectCases:
    """Replacement of the items' reports in pytest's JUnit plugin by reports of subjects."""

    def __init__(self, config: pytest.Config, plan: Plan) -> None:
        """Intercept the JUnit plugin; no effect without ``--junitxml``."""
        self._plan = plan
        self._tests: defaultdict[Group, _Tests] = defaultdict(_Tests)
        self._write: Function = lambda report: None
        for item in plan.items:
            self._tests[item.model, item.result, item.subject].file = item.nodeid.partition("::")[0]
        intercept(config, "pytest_runtest_logreport", junit_plugin(config), self._around)

    def _around(self, write: Function) -> Function:
        self._write = write
        return self._receive

    def _receive(self, report: pytest.TestReport) -> None:
        planned = self._plan.by_nodeid.get(report.nodeid)
        if planned is None:
            self._write(report)
            return
        tests = self._tests[planned.model, planned.result, planned.subject]
        tests.seconds += report.duration
        if report.failed:
            tests.failures.setdefault(planned.item, report.longreprtext)
            tests.errors |= report.when != "call"

    def write(self, measurements: Mapping[tuple[int, int], Measurement]) -> None:
        """Write a test case for every subject of every result.

        ``measurements``: by index of model and planned result.
        """
        for (model, result), measurement in measurements.items():
            first = self._plan.results[result].responses_of
            for subject, counts in measurement.result.subjects.items():
                tests = self._tests.get((model, result if first is None else first, subject))
                if tests is not None:
                    for report in _case(
                        measurement, subject, counts, tests, self._label(measurement)
                    ):
                        self._write(report)

    def _label(self, measurement: Measurement) -> str:
        """Return a prefix with the model's name, or an empty text if there is only one model."""
        return f"{measurement.result.model}::" if len(self._plan.models) > 1 else ""


def _case(
    measurement: Measurement, subject: str, counts: Counts, tests: _Tests, label: str
) -> Iterator[pytest.TestReport]:
    """Yield the reports of a test case, which errors fail and wrong answers do not."""
    outcome: Any = "passed"
    when: Any = "call"
    longrepr: Any = None
    if tests.failures or counts.error:
        outcome, longrepr = "failed", bounded_text(_failures(counts, tests))
        when = "setup" if tests.errors or not tests.failures else "call"
    elif not counts.attempted:
        outcome, longrepr = "skipped", (tests.file, 0, f"none of {counts.total:,} answers was run")
    result = measurement.result
    nodeid = display_nodeid(f"{tests.file}::{label}{result.benchmark}::{result.scorer}[{subject}]")
    common: dict[str, Any] = {
        "nodeid": nodeid,
        "location": (tests.file, None, nodeid.partition("::")[2]),
        "keywords": {},
    }
    yield pytest.TestReport(
        **common, outcome=outcome, longrepr=longrepr, when=when, duration=tests.seconds
    )
    numbers = {
        "correct": counts.correct,
        "wrong": counts.wrong,
        "unparsed": counts.unparsed,
        "errors": counts.error,
        "missing": counts.missing,
    }
    yield pytest.TestReport(
        **common,
        outcome="passed",
        longrepr=None,
        when="teardown",
        user_properties=list(numbers.items()),
    )


def _failures(counts: Counts, tests: _Tests) -> str:
    """Return a line with the number of failures, and the texts of the first ones."""
    lines = [f"{counts.error:,} of {counts.total:,} answers are errors"]
    if tests.failures:
        lines[0] += f"; {len(tests.failures):,} tests failed:"
    for item, text in list(tests.failures.items())[:_MAX_FAILURES]:
        lines.append(f"{item}: {text}")
    if len(tests.failures) > _MAX_FAILURES:
        lines.append(f"… and {len(tests.failures) - _MAX_FAILURES:,} more")
    return "\n".join(lines)
