"""Line files that several threads and processes append to at the same time, and their lock.

Every append is one locked write of whole lines. A line is torn only if the process or the machine
stops during the write; the next writer removes the torn line, and readers ignore it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_llmeval.core import RunError

# Seconds between attempts. The lock is held for microseconds; filelock's own 0.05 s would make
# eight processes that append at the same time wait ten times as long as the kernel's queue does.
_POLL_SECONDS = 0.001


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Hold the exclusive lock of an open file, and wait for it while another process holds it.

    It is a lock of the operating system on the open file itself: it needs no second file and ends
    with the process that holds it. It does not exclude other threads of the process. Raises OSError
    if the file system has no locks.
    """
    # Imported here: commands that only read do not need filelock.
    from filelock import lock_descriptor
    from filelock import unlock_descriptor

    lock_descriptor(descriptor, poll_interval=_POLL_SECONDS)
    try:
        yield
    finally:
        unlock_descriptor(descriptor)


def try_lock(descriptor: int) -> bool:
    """Acquire the exclusive lock of an open file until it is closed; return False if it is held.

    Raises OSError if the file system has no locks.
    """
    from filelock import lock_descriptor

    return bool(lock_descriptor(descriptor, blocking=False))


class LineWriter:
    """Writer that appends lines to a file, which the first write creates."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        # The file lock is held by the process: it does not exclude other threads.
        self._lock = threading.Lock()

    def write(self, lines: bytes) -> None:
        """Write whole lines and hand them to the operating system before returning.

        Raises RunError if they cannot be written in full (for example, a full disk); a partial
        write is removed, so that the file stays readable.
        """
        try:
            with self._lock:
                self._write(lines)
        except OSError as error:
            reason = error.strerror or str(error)
            raise RunError(f"cannot write {self._path}: {reason}") from error

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _write(self, lines: bytes) -> None:
        if self._handle is None:
            flags = os.O_CREAT | os.O_RDWR | os.O_APPEND
            self._handle = os.open(self._path, flags, 0o644)
        with locked(self._handle):
            size = _cut_torn_tail(self._handle)
            try:
                if os.write(self._handle, lines) != len(lines):
                    raise OSError("no space left on device")
            except OSError:
                os.ftruncate(self._handle, size)
                raise


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, from 1, without a torn last line.

    Yields nothing if the file is missing.
    """
    if not path.is_file():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.endswith(b"\n"):
                yield number, line


def _cut_torn_tail(handle: int) -> int:
    """Truncate the file after its last complete line; return its new size in bytes."""
    size = os.fstat(handle).st_size
    if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
        return size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    os.ftruncate(handle, end)
    return end
