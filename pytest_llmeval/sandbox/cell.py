"""A cell: one started guest and the connection to it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from typing import Any
from typing import Protocol

from pytest_llmeval.core import LlmevalError
from pytest_llmeval.sandbox.bundle import first_message

_HEAD = 4
_REPORT_BYTES = 4_000_000
"""Largest accepted message of a guest, in bytes."""


class CellLostError(LlmevalError):
    """A cell that ended, did not answer in time, or violated the protocol."""


class LaunchError(LlmevalError):
    """A cell that cannot be started."""


class Stream(Protocol):
    """A byte stream to and from a guest."""

    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises `OSError` where the guest has ended."""

    def read(self, seconds: float) -> bytes:
        """Receive bytes, b"" at the end. Raises `TimeoutError` where none arrive in time."""

    def stop(self) -> str:
        """Kill the guest and wait for its end; return what it wrote to standard error."""


class Cell:
    """A guest at the other end of `stream`, which runs one program at a time."""

    def __init__(self, stream: Stream, config: dict[str, object], patience: float) -> None:
        self._stream = stream
        self._buffer = bytearray()
        try:
            self._send(first_message(config))
            self.contents: dict[str, Any] = self._receive(patience)["ready"]
        except (CellLostError, KeyError) as error:
            complaint = stream.stop()
            lines = complaint.strip().splitlines()
            raise LaunchError(lines[-1] if lines else str(error)) from None

    def run(self, program: dict[str, Any], patience: float) -> dict[str, Any]:
        """Return the report on `program`; `CellLostError` where none arrives in `patience` s."""
        self._send(json.dumps(program).encode())
        report = self._receive(patience)
        if report.get("id") != program["id"]:
            raise CellLostError("a report on another program")
        return report

    def close(self) -> None:
        self._stream.stop()

    def _send(self, data: bytes) -> None:
        try:
            self._stream.write(len(data).to_bytes(_HEAD, "big") + data)
        except OSError as error:
            raise CellLostError(str(error)) from None

    def _receive(self, patience: float) -> dict[str, Any]:
        deadline = time.monotonic() + patience
        length = int.from_bytes(self._take(_HEAD, deadline), "big")
        if length > _REPORT_BYTES:
            raise CellLostError("not a message")
        try:
            report = json.loads(self._take(length, deadline))
        except ValueError as error:
            raise CellLostError(f"not a message: {error}") from None
        if not isinstance(report, dict):
            raise CellLostError("not a message")
        return report

    def _take(self, count: int, deadline: float) -> bytes:
        while len(self._buffer) < count:
            try:
                part = self._stream.read(deadline - time.monotonic())
            except OSError as error:
                raise CellLostError(str(error) or "no answer in time") from None
            if not part:
                raise CellLostError("ended")
            self._buffer += part
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data


class ProcessStream:
    """A guest that is a process of this machine, connected by pipes."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], folder: str) -> None:
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            raise LaunchError(str(error)) from None

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read(self, seconds: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        if not select.select([descriptor], [], [], max(seconds, 0))[0]:
            raise TimeoutError
        return os.read(descriptor, 1 << 16)

    def stop(self) -> str:
        process = self._process
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # Unsent data has no reader any more.
            process.stdin.close()
        try:
            # At the end of its input the guest ends and removes what it made.
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read().decode(errors="replace")
        process.stderr.close()
        return complaint
