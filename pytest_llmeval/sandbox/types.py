"""What a sandbox is given, what it gives back, and what every kind of sandbox can do."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Literal
from typing import Protocol
from typing import Self

Status = Literal["passed", "failed", "timeout", "memory", "error"]

DETAIL_LENGTH = 300
"""Characters of an execution's detail at most."""


@dataclass(frozen=True, slots=True)
class Program:
    """A candidate with the checks that decide on it."""

    id: str
    """Comes back with the execution; unique among the programs in flight."""
    source: str
    """The candidate, untrusted: a complete program up to, not including, the tests."""
    tests: str
    """Trusted checks, which see the candidate's names. Passed: they ran to their end."""
    context: str = ""
    """Trusted code that the tests lean on: helper functions of a prompt, imports."""
    entry_point: str | None = None
    """The name that is always the candidate's in the tests, even where `context` has it too."""
    timeout: float = 3.0
    """Seconds for candidate and checks together, before the sandbox's time scale."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What became of a program."""

    id: str
    status: Status
    """`error` is the machinery's failure and says nothing about the candidate."""
    detail: str = ""
    """Exception type and message on one line; for `error` what the machinery says."""
    seconds: float | None = None


class Sandbox(Protocol):
    """Runs programs that nobody trusts."""

    identity: str
    """All that can move a verdict: kind, image, Python, versions of installed packages."""
    time_scale: float
    """What time limits are multiplied with, at least 1: how slow this machine was found to be."""

    def run(self, programs: Iterable[Program]) -> Iterator[Execution]:
        """Run `programs`, taken one by one as there is room; executions come as they are done."""

    def calibrate(self, programs: Iterable[Program]) -> list[Execution]:
        """Run programs known to be right, and raise the time scale where they are slow here."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
