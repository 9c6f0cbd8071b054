"""State of the process during a session: SIGTERM, and Python's garbage collector."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

# A full collection waits until a quarter of all objects is new. Frozen objects do not count, which
# would make it more frequent.
_FULL_COLLECTION_FACTOR = 5


class GarbageCollection:
    """Control of Python's garbage collector, which does not turn it on if the program has it off.

    Items, tests, reports and records live until the end of the session. Scanning them again and
    again would take a tenth of the time of a run of 14,042 recorded answers.
    """

    def __init__(self) -> None:
        self._was_on = gc.isenabled()
        self._thresholds = gc.get_threshold()

    def pause(self) -> None:
        """Disable the collector until ``resume``."""
        gc.disable()

    def resume(self, *, frozen: bool) -> None:
        """Enable the collector; with ``frozen``, exempt all present objects and run it less often."""
        if frozen:
            first, second, third = self._thresholds
            gc.freeze()
            gc.set_threshold(first, second, third * _FULL_COLLECTION_FACTOR)
        if self._was_on:
            gc.enable()

    def restore(self) -> None:
        """Restore the original thresholds; frozen objects stay frozen until the process ends."""
        gc.set_threshold(*self._thresholds)
        if self._was_on:
            gc.enable()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable the collector within the context, for code that makes many objects and no garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Termination:
    """SIGTERM handler that interrupts the session as Ctrl-C does.

    Answers are on disk, sandboxes are removed, a summary is printed, and pytest exits with 2.
    Without it SIGTERM, which CI services and schedulers send some seconds before SIGKILL, ends the
    process immediately.

    It is installed until ``restore`` is called or pytest is unconfigured. It replaces the default
    handler, and an earlier one of the same configuration, such as that of the collection. A handler
    of the program, or an ignored signal, is not replaced.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.received = False
        self._ending = False
        self._config = config
        if threading.current_thread() is not threading.main_thread():
            return
        present = signal.getsignal(signal.SIGTERM)
        earlier = getattr(present, "__self__", None)
        is_ours = isinstance(earlier, Termination) and earlier._config is config
        if present is signal.SIG_DFL or is_ours:
            signal.signal(signal.SIGTERM, self._interrupt)
            config.add_cleanup(self.restore)

    def end(self) -> None:
        """Ignore the signal from now on, so that the end of the session writes all results."""
        self._ending = True

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.received or self._ending:
            return  # a process group may receive the signal more than once
        self.received = True
        session = self._config.pluginmanager.get_plugin("session")
        if session is not None:  # for a test that catches every exception
            session.shouldstop = "SIGTERM"
        raise KeyboardInterrupt("SIGTERM")

    def restore(self) -> None:
        """Restore the default handler, unless another handler has replaced this one."""
        # Compared by equality: every access creates a new bound method.
        if signal.getsignal(signal.SIGTERM) == self._interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
