"""Cells without Docker: the guest under bubblewrap, or on the host itself."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox.bundle import COMMAND
from pytest_llmeval.sandbox.bundle import ENVIRONMENT
from pytest_llmeval.sandbox.cell import Cell
from pytest_llmeval.sandbox.cell import ProcessStream
from pytest_llmeval.sandbox.types import Limits

_START_SECONDS = 60.0
_USERS = (10_000, 100)
"""The first user id of candidates, and how many a cell has, where root runs bubblewrap."""
_HOMES = "/candidates"
_FOLDERS = ("/bin", "/sbin", "/lib", "/lib64")


class BubblewrapCells:
    """Guests in namespaces of their own, with this Python read-only."""

    def __init__(self, limits: Limits) -> None:
        program = shutil.which("bwrap")
        if program is None:
            raise ConfigError("sandbox bubblewrap: no bwrap here: install the package bubblewrap")
        self._limits = limits
        self._command = [program, *_namespaces(limits)]
        tried = subprocess.run([*self._command, "/bin/true"], capture_output=True, text=True)
        if tried.returncode:
            raise ConfigError(f"sandbox bubblewrap: bwrap does not work: {tried.stderr.strip()}")
        # The kernel ends a guest with the thread that started it: one that lives as long as this.
        self._starter = ThreadPoolExecutor(1)

    @property
    def identity(self) -> str:
        return f"bubblewrap {_python()} {self._limits.identity}"

    def start(self, number: int) -> Cell:
        return self._starter.submit(self._start, number).result()

    def close(self) -> None:
        self._starter.shutdown()

    def _start(self, number: int) -> Cell:
        first, count = _USERS
        config = self._limits.for_guest(first + number * count) | {"own_users": os.getuid() == 0}
        command = [*self._command, sys.executable, *COMMAND]
        return Cell(ProcessStream(command, ENVIRONMENT, "/"), config, _START_SECONDS)


class HostCells:
    """Guests on the host: limits and a system call filter, but no isolation."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._folders = contextlib.ExitStack()

    @property
    def identity(self) -> str:
        return f"none {_python()} {self._limits.identity}"

    def start(self, number: int) -> Cell:
        folder = self._folders.enter_context(tempfile.TemporaryDirectory(prefix="llmeval-"))
        # A user's processes on the host all count for its limit: none can be set for a candidate.
        config = self._limits.for_guest(0) | {
            "own_users": False,
            "own_machine": False,
            "processes": None,
        }
        stream = ProcessStream([sys.executable, *COMMAND], ENVIRONMENT | {"TMPDIR": folder}, folder)
        return Cell(stream, config, _START_SECONDS)

    def close(self) -> None:
        self._folders.close()


def _namespaces(limits: Limits) -> list[str]:
    """Return bwrap's options: everything unshared, this Python and the system's files read-only."""
    options = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    options += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--as-pid-1"]
    options += ["--clearenv"]
    for name, value in (ENVIRONMENT | {"TMPDIR": _HOMES}).items():
        options += ["--setenv", name, value]
    if os.getuid() == 0:
        # Candidates get users of their own, as in a container.
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
            options += ["--cap-add", capability]
    else:
        options += ["--unshare-user", "--cap-drop", "ALL"]
    options += ["--dir", "/tmp"]
    for folder in _FOLDERS:
        if Path(folder).is_symlink():
            options += ["--symlink", os.readlink(folder), folder]
        elif Path(folder).is_dir():
            options += ["--ro-bind", folder, folder]
    for folder in _python_folders():
        for parent in reversed(Path(folder).parents[:-1]):
            # Open to candidates, which have other users, also where it is not on the host.
            options += ["--perms", "0755", "--dir", str(parent)]
        options += ["--ro-bind", folder, folder]
    options += ["--proc", "/proc", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", str(8 << 20), "--tmpfs", "/dev/shm"]
    options += ["--perms", "1777", "--size", str(limits.disk_mb << 20), "--tmpfs", _HOMES]
    # Where candidates have one user with the guest, nothing but these would keep them out.
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def _python_folders() -> list[str]:
    """Return the folders of this Python: /usr, and those of its installation and packages."""
    wanted = ["/usr", sys.base_prefix, sys.prefix, str(Path(sys.executable).resolve().parents[1])]
    folders: list[str] = []
    for folder in wanted:
        if not any(Path(folder).is_relative_to(parent) for parent in folders):
            folders.append(folder)
    return folders


@functools.cache
def _python() -> str:
    """Return the version of this Python and its packages: numpy by name, the others as a digest."""
    packages = sorted(
        {f"{package.metadata['Name']} {package.version}" for package in metadata.distributions()}
    )
    numpy = [package for package in packages if package.startswith("numpy ")]
    digest = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:12]
    return ", ".join([f"python {platform.python_version()}", *numpy, f"packages {digest}"])
