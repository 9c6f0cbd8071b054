"""State that several processes share: a small JSON object in a locked file, or in memory."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import TypeVar

from pytest_llmeval.core import ModelError
from pytest_llmeval.storage.locks import locked

T = TypeVar("T")

State = dict[str, Any]


class Shared:
    """A JSON object that is read, changed and written under a lock.

    The lock goes with the process that holds it; what a killed one left half written counts as
    empty. Without a path the object lives in this process alone.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._handle: int | None = None
        self._memory: State = {}
        # The lock of the file excludes other processes, this one the threads of this process.
        self._lock = threading.Lock()

    @property
    def is_file(self) -> bool:
        """Whether other processes see it."""
        return self._path is not None

    def update(self, change: Callable[[State], T]) -> T:
        """Let ``change`` read and modify the object; return what it returns.

        Raises ModelError where the file cannot be written.
        """
        with self._lock:
            if self._path is None:
                return change(self._memory)
            try:
                return self._update_file(self._path, change)
            except OSError as error:
                reason = error.strerror or str(error)
                raise ModelError(f"cannot share limits through {self._path}: {reason}") from None

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _update_file(self, path: Path, change: Callable[[State], T]) -> T:
        if self._handle is None:
            self._handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        with locked(self._handle):
            state = _parse(os.pread(self._handle, 1 << 20, 0))
            result = change(state)
            content = json.dumps(state).encode()
            os.ftruncate(self._handle, os.pwrite(self._handle, content, 0))
        return result


def _parse(content: bytes) -> State:
    try:
        state = json.loads(content)
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def alive(pid: int) -> bool:
    """Whether a process of this machine still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
