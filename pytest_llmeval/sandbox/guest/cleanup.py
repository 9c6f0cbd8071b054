"""Removal of what a program leaves behind: processes, files and shared memory."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time
from collections.abc import Callable
from functools import partial

from pytest_llmeval.sandbox.guest import confinement

_SHARED = "/dev/shm"
_MODE = 0o755
_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
_PATIENCE = 4.0
"""Seconds within which everything a program left must be removed; then the sandbox is discarded."""


class Home:
    """A candidate's identity and the one folder that it can write.

    `shared`: /dev/shm belongs to the sandbox, so that all files in it are a candidate's.
    """

    def __init__(self, user: int, path: str, shared: bool) -> None:
        self.user = user
        self.path = path
        self.shared = shared


def make_homes(users: list[int], own_machine: bool) -> list[Home]:
    """Make a folder for each of `users` that only this user can write; one if there are none."""
    root = os.environ["TMPDIR"]
    if not users:
        os.chmod(root, _MODE)
        return [Home(0, root, own_machine)]
    homes = [Home(user, f"{root}/{place}", own_machine) for place, user in enumerate(users)]
    for home in homes:
        _as_user(home.user, partial(_new_folder, home.path))
    os.chmod(root, _MODE)
    return homes


def _new_folder(path: str) -> None:
    os.mkdir(path)
    os.chmod(path, _MODE)


def clear(home: Home, kept: set[int]) -> None:
    """Remove everything that a program left; return when nothing is left."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        reap()
        left = _children() - kept
        if not left and not _has_files(home):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"a program left what cannot be removed: {len(left)} processes")
        if left:
            _kill_all(home, left)
        else:
            _as_user(home.user, lambda: _remove_files(home))


def _kill_all(home: Home, left: set[int]) -> None:
    if home.user:
        # All processes of the user at once, also those that fork faster than they can be listed.
        _as_user(home.user, lambda: os.kill(-1, signal.SIGKILL))
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _children() -> set[int]:
    """Return the ids of this process's children, adopted orphans included."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return {int(pid) for pid in file.read().split()}
    except OSError:
        return {int(name) for name in os.listdir("/proc") if name.isdecimal() and _is_child(name)}


def _is_child(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1]) == os.getpid()
    except OSError:
        return False  # It ended meanwhile.


def reap() -> None:
    """Reap orphans that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _has_files(home: Home) -> bool:
    mode = stat.S_IMODE(os.stat(home.path).st_mode)
    return mode != _MODE or bool(os.listdir(home.path)) or bool(_shared(home))


def _shared(home: Home) -> list[str]:
    if not home.shared:
        return []
    try:
        return os.listdir(_SHARED)
    except FileNotFoundError:
        return []


def _remove_files(home: Home) -> None:
    os.chmod(home.path, _MODE)
    _empty(home.path)
    if home.shared:
        _empty(_SHARED)


def _empty(folder: str) -> None:
    """Remove what is in `folder`, without recursion: inner folders are moved up."""
    os.chdir(folder)
    moved = 0
    while names := os.listdir("."):
        for name in names:
            if not _open_folder(name):
                os.unlink(name)
                continue
            for inner in os.listdir(name):
                path = os.path.join(name, inner)
                _open_folder(path)  # Only a folder that can be written can be moved.
                moved += 1
                os.rename(path, f"moved-{time.monotonic_ns()}-{moved}")
            os.rmdir(name)


def _open_folder(path: str) -> bool:
    """Return whether `path` is a folder and not a link; make a folder readable and writable."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return False
    os.chmod(path, 0o700)
    return True


def _as_user(user: int, action: Callable[[], object]) -> None:
    """Run `action` in a process of `user` and wait for it."""
    pid = os.fork()
    if pid == 0:
        try:
            confinement.become(user)
            action()
        finally:
            os._exit(0)
    # A candidate of the same user may have killed it: the caller looks and tries again.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def memory_kills() -> int:
    """Return how many processes of this sandbox the kernel has killed for lack of memory."""
    for path in _COUNTERS:
        try:
            with open(path) as file:
                for line in file:
                    name, _, count = line.partition(" ")
                    if name == "oom_kill":
                        return int(count)
        except OSError:
            continue
    return 0


def waited_for_cpu(pid: int) -> float | None:
    """Return the seconds in which `pid` was ready but had no CPU; None if unknown."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def packages() -> dict[str, str]:
    """Return the installed distributions and their versions."""
    from importlib import metadata

    return {package.metadata["Name"]: package.version for package in metadata.distributions()}
