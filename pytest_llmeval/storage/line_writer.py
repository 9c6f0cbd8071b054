"""Files of the run folder that several threads and processes append lines to at the same time.

Every append is one locked write of whole lines, so a line is torn only when the process or the
machine stops within it; the next writer cuts such a tail off, and readers ignore it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

from pytest_llmeval.core import RunError
from pytest_llmeval.storage.locks import locked


class LineWriter:
    """Appends lines to a file, which is made by the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        # The lock of the file is the process's: it does not keep its threads apart.
        self._lock = threading.Lock()

    def write(self, lines: bytes) -> None:
        """Write whole lines and hand them to the operating system before returning.

        Raises RunError when they cannot be written in full (a full disk, say); what was
        written of them is taken back, so that the file stays readable.
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
    """The lines of a file, numbered from 1, without a torn last one; none where it is missing."""
    if not path.is_file():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.endswith(b"\n"):
                yield number, line


def _cut_torn_tail(handle: int) -> int:
    """Cut the file after its last complete line; return its size then."""
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
