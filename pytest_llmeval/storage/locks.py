"""The lock under which a process reads and writes a file that other processes use, too.

It is a lock of the operating system on the open file itself, so it needs no second file and ends with
the process that holds it, however that ends. It does not exclude other threads of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# Seconds between attempts. The lock is held for microseconds; filelock's own 0.05 s would make
# eight processes that append at the same time wait ten times as long as the kernel's queue does.
_POLL_SECONDS = 0.001


@contextmanager
def locked(descriptor: int) -> Iterator[None]:
    """Hold the exclusive lock of an open file; wait for it as long as another process has it.

    Raises OSError where the file system has no locks.
    """
    # Here: a command that only reads goes without what filelock imports.
    from filelock import lock_descriptor
    from filelock import unlock_descriptor

    lock_descriptor(descriptor, poll_interval=_POLL_SECONDS)
    try:
        yield
    finally:
        unlock_descriptor(descriptor)


def taken(descriptor: int) -> bool:
    """Take the exclusive lock of an open file until it is closed; False where another process has it.

    Raises OSError where the file system has no locks.
    """
    from filelock import lock_descriptor

    return bool(lock_descriptor(descriptor, blocking=False))
