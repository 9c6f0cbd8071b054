"""Programs, executions, limits, and the interface of every kind of sandbox."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal
from typing import Protocol
from typing import Self
from typing import TypeVar

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Limits = TypeVar("_Limits", bound="DataclassInstance")

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
    """Trusted code that the tests need: helper functions of a prompt, imports."""
    entry_point: str | None = None
    """The name that is always the candidate's in the tests, even where `context` has it too."""
    timeout: float = 3.0
    """Seconds for candidate and checks together, before the sandbox's time scale."""


@dataclass(frozen=True, slots=True)
class Execution:
    """The outcome of a program."""

    id: str
    status: Status
    """`error`: the machinery failed, which is no result of the candidate."""
    detail: str = ""
    """Exception type and message on one line; for `error` the message of the machinery."""
    seconds: float | None = None
    node: str = ""
    """Host name of the node that ran it; empty: this machine."""


class Sandbox(Protocol):
    """An environment for untrusted programs."""

    identity: str
    """Everything that can change a verdict: kind, image, Python, versions of installed packages."""
    time_scale: float
    """Factor of time limits, at least 1: how slow this machine was measured to be."""

    def run(self, programs: Iterable[Program]) -> Iterator[Execution]:
        """Run `programs`, read as capacity allows; yield executions as they are completed."""

    def calibrate(self, programs: Iterable[Program]) -> list[Execution]:
        """Run correct programs, and raise the time scale where they are slow on this machine."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


IMAGE = "llmeval-sandbox"


@dataclass(frozen=True, slots=True)
class Limits:
    workers: int = min(2, os.cpu_count() or 1)
    """Programs that run at the same time, each in a cell of its own."""
    memory_mb: int = 1024
    """Address space of a candidate process."""
    disk_mb: int = 64
    """All files of a candidate together."""
    processes: int = 64
    """Processes and threads of a candidate."""
    timeout_scale: float | None = None
    """Factor of time limits; measured at the start where it is None."""
    image: str = IMAGE
    runtime: str | None = None
    """Docker runtime, as runsc; the engine's own where it is None."""

    @property
    def cell_mb(self) -> int:
        """Memory of a whole cell: candidate, its children, checks, files and warm interpreters."""
        return self.memory_mb + 512

    @property
    def identity(self) -> str:
        """The limits that may change a verdict, as text."""
        return f"memory {self.memory_mb} MB, disk {self.disk_mb} MB, processes {self.processes}"

    def for_guest(self, first_user: int) -> dict[str, object]:
        return {
            "own_machine": True,
            "own_users": True,
            "first_user": first_user,
            "users": 16,
            "memory_mb": self.memory_mb,
            "disk_mb": self.disk_mb,
            "processes": self.processes,
        }


def read_limits(given: dict[str, Any], kind: type[_Limits]) -> _Limits:
    """`given` as limits of `kind`; `ConfigError` for a name it does not have and a bad number."""
    names = [field.name for field in fields(kind)]
    for name in given:
        if name not in names:
            raise ConfigError(f"sandbox has no limit {name!r}{suggestion(name, names)}")
    limits = kind(**given)
    for name in ("workers", "memory_mb", "disk_mb", "processes"):
        if getattr(limits, name) < 1:
            raise ConfigError(f"sandbox limit {name}: {getattr(limits, name)} is less than 1")
    return limits


def one_line(text: str) -> str:
    """`text` as a detail: on one line, and not longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= DETAIL_LENGTH else line[: DETAIL_LENGTH - 1] + "…"
