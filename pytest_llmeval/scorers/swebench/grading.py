"""From the log of an instance's tests to its grade: pure functions, by the rules of SWE-bench.

The rules are those of swebench 5.0.2 (``swebench/harness/grading.py``, MIT): all of FAIL_TO_PASS
and PASS_TO_PASS have to pass. A test that was expected to fail passes; one that was skipped passes
where it passed before, and only there; one that is not in the log fails.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from functools import cached_property
from typing import Literal

from pytest_llmeval.scorers.swebench.log_parsers import STATUSES
from pytest_llmeval.scorers.swebench.log_parsers import ended
from pytest_llmeval.scorers.swebench.log_parsers import get_parser

Status = Literal["full", "partial", "no", "not_found"]

_START = ">>>>> Start Test Output"
_END = ">>>>> End Test Output"
_BAD = (
    ">>>>> Patch Apply Failed",
    ">>>>> Reset Failed",
    ">>>>> Tests Errored",
    ">>>>> Tests Timed Out",
)
_EXIT_CODE = re.compile(r">>>>> Test Exit Code:\s*(-?\d+)")
_PASSING = frozenset(("PASSED", "XFAIL"))
_FAILING = frozenset(("FAILED", "ERROR", "SKIPPED"))


@dataclass(frozen=True, slots=True)
class Expected:
    """The tests that decide on an instance, and the parser that reads its log."""

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    log_parser: str


@dataclass(frozen=True, slots=True)
class Grade:
    """The grade of a patch by a log.

    ``full``: resolved; ``partial``: some of FAIL_TO_PASS and all of PASS_TO_PASS pass; ``not_found``:
    the log has no results, with the ``reason``. ``fail_to_pass`` and ``pass_to_pass``: tests that
    pass, and tests in all. ``failing``: those that do not pass, in the order of the row. ``ended``:
    the log has the last line of the test runner.
    """

    status: Status
    fail_to_pass: tuple[int, int] = (0, 0)
    pass_to_pass: tuple[int, int] = (0, 0)
    failing: tuple[str, ...] = ()
    ended: bool = True
    reason: str = ""

    @property
    def resolved(self) -> bool:
        return self.status == "full"


def grade(expected: Expected, log: str, exit_code: int | None) -> Grade:
    """Grade a log that holds the output of the tests and nothing else.

    ``exit_code``: that of the tests, None where it is unknown. Words that only begin as a status
    are none. Raises ConfigError for an unknown parser.
    """
    log = _universal(log)
    statuses = {
        test: status
        for test, status in get_parser(expected.log_parser)(log).items()
        if status in STATUSES
    }
    return replace(_grade(expected, statuses, exit_code), ended=ended(expected.log_parser, log))


def grade_official(expected: Expected, log: str) -> Grade:
    """Grade the whole log of the official script, its markers and exit code in it.

    Results between the markers count; where there are none, those of the whole log. Raises
    ConfigError for an unknown parser.
    """
    log = _universal(log)
    for marker in _BAD:
        if marker in log:
            return Grade("not_found", reason=f"the log has {marker!r}")
    _, start, behind = log.partition(_START)
    if not start or _END not in log:
        return Grade("not_found", reason="the log lacks the markers of the test output")
    parse = get_parser(expected.log_parser)
    between = behind.partition(_START)[0].partition(_END)[0]
    code = _EXIT_CODE.search(log)
    return _grade(expected, parse(between) or parse(log), int(code[1]) if code else None)


def _universal(log: str) -> str:
    """Return the log with every line break as one character, as it is read from a file."""
    return log.replace("\r\n", "\n").replace("\r", "\n")


def _grade(expected: Expected, statuses: Mapping[str, str], exit_code: int | None) -> Grade:
    if not statuses:
        return Grade("not_found", reason="the log has no results")
    if exit_code and not {"FAILED", "ERROR"} & set(statuses.values()):
        return Grade(
            "not_found", reason=f"the tests exited with {exit_code}, and none of them failed"
        )
    log = _Statuses(statuses)
    failing: list[str] = []
    counts = []
    for tests, passing in (
        (expected.fail_to_pass, _PASSING),
        (expected.pass_to_pass, _PASSING | {"SKIPPED"}),
    ):
        verdicts = {test: log.of(test) for test in tests}
        passed = sum(verdicts[test] in passing for test in tests)
        # A word that is no status is neither: the test is left out of the count.
        failed = [
            test for test in tests if verdicts[test] is None or verdicts[test] in _FAILING - passing
        ]
        failing += failed
        counts.append((passed, passed + len(failed)))
    (solved, to_solve), (kept, to_keep) = counts
    status: Status = "no"
    if kept == to_keep and (solved or not to_solve):
        status = "full" if solved == to_solve else "partial"
    return Grade(status, counts[0], counts[1], tuple(failing))


class _Statuses:
    """The statuses of a log, looked up by the names of a row.

    Names of a row with an unclosed ``[`` were cut at their first blank. They represent all names
    that begin so, where those all pass or all do not.
    """

    def __init__(self, statuses: Mapping[str, str]) -> None:
        self._statuses = statuses

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._statuses)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._statuses)}

    def of(self, test: str) -> str | None:
        """Return the status of a test; None where it is not in the log, or is ambiguous there."""
        if test in self._statuses or test.count("[") <= test.count("]"):
            return self._statuses.get(test)
        first = bisect_left(self._sorted, test)
        names = []
        for name in self._sorted[first:]:
            if not name.startswith(test):
                break
            names.append(name)
        if len({self._statuses[name] in _PASSING for name in names}) != 1:
            return None
        return self._statuses[min(names, key=self._places.__getitem__)]
