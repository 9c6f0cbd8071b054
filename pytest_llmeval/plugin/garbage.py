"""Python's garbage collector while a session has thousands of tests that are no garbage.

Items, tests, reports and records live until the end of the session. Going through them again and
again would cost a tenth of what a run of 14,042 recorded answers takes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
