"""Execution of untrusted code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.sandbox.bubblewrap import BubblewrapCells
from pytest_llmeval.sandbox.bubblewrap import HostCells
from pytest_llmeval.sandbox.docker import DockerCells
from pytest_llmeval.sandbox.pool import Cells
from pytest_llmeval.sandbox.pool import Pool
from pytest_llmeval.sandbox.types import Execution
from pytest_llmeval.sandbox.types import Limits
from pytest_llmeval.sandbox.types import Program
from pytest_llmeval.sandbox.types import Sandbox
from pytest_llmeval.sandbox.types import Status
from pytest_llmeval.sandbox.types import read_limits

__all__ = ["Execution", "Program", "Sandbox", "Status", "open_sandbox", "sandbox_identity"]

KINDS: dict[str, Callable[[Limits], Cells]] = {
    "docker": DockerCells,
    "bubblewrap": BubblewrapCells,
    "none": HostCells,
}


def open_sandbox(kind: str = "docker", **limits: Any) -> Sandbox:
    """Open a sandbox of `kind`. Raises `ConfigError` where this machine does not support it."""
    chosen = read_limits(limits, Limits)
    return Pool(_cells(kind, chosen), chosen.workers, chosen.timeout_scale)


def sandbox_identity(kind: str = "docker", **limits: Any) -> str:
    """Return everything that can change a verdict of such a sandbox, without starting it."""
    cells = _cells(kind, read_limits(limits, Limits))
    try:
        return cells.identity
    finally:
        cells.close()


def _cells(kind: str, limits: Limits) -> Cells:
    if kind not in KINDS:
        raise ConfigError(f"no sandbox {kind!r}{suggestion(kind, KINDS)}")
    return KINDS[kind](limits)
