"""Running code that nobody trusts."""

from __future__ import annotations

from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox.core import Execution
from pytest_llmeval.sandbox.core import Program
from pytest_llmeval.sandbox.core import Sandbox
from pytest_llmeval.sandbox.core import Status
from pytest_llmeval.sandbox.docker import DockerCells
from pytest_llmeval.sandbox.limits import read_limits
from pytest_llmeval.sandbox.pool import Pool
from pytest_llmeval.spelling import suggestion

__all__ = ["Execution", "Program", "Sandbox", "Status", "open_sandbox", "sandbox_identity"]

KINDS = {"docker": DockerCells}


def open_sandbox(kind: str = "docker", **limits: Any) -> Sandbox:
    """A sandbox of `kind`; `ConfigError` in one line where this machine has none of it."""
    cells = _cells(kind, limits)
    chosen = read_limits(limits)
    return Pool(cells.start, chosen.workers, cells.identity, chosen.timeout_scale or 1.0)


def sandbox_identity(kind: str = "docker", **limits: Any) -> str:
    """All that can move a verdict of such a sandbox, without starting it."""
    return _cells(kind, limits).identity


def _cells(kind: str, limits: dict[str, Any]) -> DockerCells:
    if kind not in KINDS:
        raise ConfigError(f"no sandbox {kind!r}{suggestion(kind, KINDS)}")
    return KINDS[kind](read_limits(limits))
