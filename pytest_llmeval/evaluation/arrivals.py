"""What arrives by itself, in the threads of models and sandboxes: waited for, or saved meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

# How long the saving of what has arrived may still take when the session ends.
_END_SECONDS = 10


class Arrivals:
    """Wakes the test that waits for an answer, and saves answers while the bodies of tests run."""

    def __init__(self) -> None:
        self._new = threading.Event()
        self._unsaved = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def note(self) -> None:
        """Note, in any thread, that something is here."""
        self._new.set()
        self._unsaved.set()

    def clear(self) -> None:
        """Forget what was noted so far: it is about to be looked for."""
        self._new.clear()

    def wait(self) -> None:
        """Wait until something is noted that was not yet when ``clear`` was called."""
        self._new.wait()

    def save_by(self, save: Callable[[], None]) -> None:
        """Call ``save`` in a thread of its own after everything that is noted, until the end."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._save, args=(save,), name="llmeval-saver", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Save no more."""
        self._ended = True
        self._unsaved.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def _save(self, save: Callable[[], None]) -> None:
        while True:
            self._unsaved.wait()
            self._unsaved.clear()
            if self._ended:
                return
            save()
