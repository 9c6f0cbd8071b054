"""The limits of a sandbox, in one place for every kind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from dataclasses import fields
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.suggestions import suggestion

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
    """What time limits are multiplied with; measured at the start where it is None."""
    image: str = IMAGE
    runtime: str | None = None
    """Docker runtime, as runsc; the engine's own where it is None."""

    @property
    def cell_mb(self) -> int:
        """Memory of all in a cell: candidate, its children, checks, files and warm interpreters."""
        return self.memory_mb + 512

    @property
    def identity(self) -> str:
        """What of the limits may move a verdict."""
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


def read_limits(given: dict[str, Any]) -> Limits:
    known = [field.name for field in fields(Limits)]
    for name in given:
        if name not in known:
            raise ConfigError(f"sandbox has no limit {name!r}{suggestion(name, known)}")
    limits = Limits(**given)
    for name in ("workers", "memory_mb", "disk_mb", "processes"):
        if getattr(limits, name) < 1:
            raise ConfigError(f"sandbox limit {name}: {getattr(limits, name)} is less than 1")
    return limits
