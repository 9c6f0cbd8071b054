"""Progress while a run goes on: a line that moves on a terminal, now and then a line elsewhere.

The number of finished items is read off the records file, which every answering process
appends to: it moves inside long chunks, and under xdist, without any message between them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

import pytest

from pytest_llmeval.session import RunSession

_TTY_SECONDS = 0.5
_PLAIN_SECONDS = 30.0


class Progress:
    """A thread that shows how far the records file has grown; daemonic, stopped by ``stop``."""

    def __init__(self, stream: TextIO, records: Path, total: int, label: str, tty: bool) -> None:
        self._stream = stream
        self._records = records
        self._total = total
        self._label = label
        self._tty = tty
        self._offset = records.stat().st_size if records.exists() else 0
        self._done = _lines(records, 0)
        self._began = time.monotonic()
        self._first = self._done
        self._stopped = threading.Event()
        self._width = 0
        self._thread = threading.Thread(target=self._watch, name="llmeval-progress", daemon=True)

    @classmethod
    def start(cls, config: pytest.Config, run: RunSession) -> Progress | None:
        """Start showing progress where somebody reads it; None with ``-q`` or without stdout."""
        if config.get_verbosity() < 0 or not config.pluginmanager.hasplugin("terminalreporter"):
            return None
        try:
            # A copy of the descriptor: pytest points the original at a file during a test.
            stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        except (OSError, ValueError, AttributeError):
            return None
        label = ", ".join(dict.fromkeys(result.benchmark for result in run.plan.results))
        progress = cls(stream, run.folder.records, len(run.plan.items), label[:30], stream.isatty())
        progress._thread.start()
        return progress

    def stop(self) -> None:
        """Erase the line and end the thread."""
        self._stopped.set()
        self._thread.join(timeout=2)
        if self._tty:
            self._write("\r" + " " * self._width + "\r")
        with contextlib.suppress(OSError):
            self._stream.close()

    def _watch(self) -> None:
        seconds = _TTY_SECONDS if self._tty else _PLAIN_SECONDS
        while not self._stopped.wait(seconds):
            self._update()
            line = self.line()
            if self._tty:
                self._write("\r" + line.ljust(self._width))
                self._width = len(line)
            else:
                self._write(f"\n{line}")

    def _update(self) -> None:
        self._done += _lines(self._records, self._offset)
        self._offset = self._records.stat().st_size if self._records.exists() else 0

    def line(self) -> str:
        """For example ``mmlu: 4,000 of 14,042 items (28 %), 12.3/s, 13:37 left``."""
        done = min(self._done, self._total)
        share = done / self._total if self._total else 1.0
        line = f"{self._label}: {done:,} of {self._total:,} items ({share:.0%})"
        elapsed = time.monotonic() - self._began
        if self._done > self._first and elapsed > 0:
            rate = (self._done - self._first) / elapsed
            left = int((self._total - done) / rate)
            line += f", {rate:.1f}/s, {left // 60}:{left % 60:02d} left"
        return line

    def _write(self, text: str) -> None:
        # A closed pipe must not end the run: progress is a courtesy.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _lines(path: Path, offset: int) -> int:
    """Number of line ends in a file from ``offset`` on."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        file.seek(offset)
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
