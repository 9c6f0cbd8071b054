"""State of the process during a session: SIGTERM, and Python's garbage collector.

Python's garbage collector while a session has thousands of tests that are no garbage.

Items, tests, reports and records live until the end of the session. Going through them again and
again would cost a tenth of what a run of 14,042 recorded answers takes.

SIGTERM ends a session as Ctrl-C does: answers on disk, sandboxes removed, a summary, exit 2.

pytest leaves SIGTERM to the system, which ends the process at once. CI services and schedulers send
it some seconds before they kill.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

# Without frozen objects a full collection waits until a quarter of all objects is new.
_RARER = 5


class GarbageCollection:
    """Pauses the collector where it is on, and makes its full collections rarer after that."""

    def __init__(self) -> None:
        self._was_on = gc.isenabled()
        self._thresholds = gc.get_threshold()

    def pause(self) -> None:
        """Collect nothing until ``resume``."""
        gc.disable()

    def resume(self, *, frozen: bool) -> None:
        """Collect again; ``frozen``: never what there is now, and the rest less often."""
        if frozen:
            first, second, third = self._thresholds
            gc.freeze()
            gc.set_threshold(first, second, third * _RARER)
        if self._was_on:
            gc.enable()

    def restore(self) -> None:
        """Collect as often as before. What is frozen stays so: the process is about to end."""
        gc.set_threshold(*self._thresholds)
        if self._was_on:
            gc.enable()


@contextmanager
def paused() -> Iterator[None]:
    """Collect nothing within the context, which makes many objects and no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Termination:
    """What SIGTERM does in this process, from now until ``restore`` or pytest's configuration ends.

    A handler that the program has of its own is left alone, and so is a signal that it ignores. An
    earlier one of the same configuration, such as that of the collection, is replaced.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.received = False
        self._ending = False
        self._config = config
        if threading.current_thread() is not threading.main_thread():
            return
        present = signal.getsignal(signal.SIGTERM)
        earlier = getattr(present, "__self__", None)
        ours = isinstance(earlier, Termination) and earlier._config is config
        if present is signal.SIG_DFL or ours:
            signal.signal(signal.SIGTERM, self._interrupt)
            config.add_cleanup(self.restore)

    def end(self) -> None:
        """Let the end of the session not be interrupted: it writes what the signal is to keep."""
        self._ending = True

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.received or self._ending:
            return  # to a group of processes it is sent more than once
        self.received = True
        session = self._config.pluginmanager.get_plugin("session")
        if session is not None:  # for a test that catches everything
            session.shouldstop = "SIGTERM"
        raise KeyboardInterrupt("SIGTERM")

    def restore(self) -> None:
        """Leave SIGTERM to the system again, unless another handler has replaced this one."""
        # Compared by equality: every access makes another bound method.
        if signal.getsignal(signal.SIGTERM) == self._interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
