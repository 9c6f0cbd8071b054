"""Work on several things at once: inputs are taken as there is room, results come as completed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

_Input = TypeVar("_Input")
_Result = TypeVar("_Result")


def in_parallel(
    inputs: Iterable[_Input],
    workers: Sequence[Callable[[_Input], _Result]],
    abandon: Callable[[], None] | None = None,
) -> Iterator[_Result]:
    """Results of `inputs`, each from any one of `workers`, as completed.

    A thread takes the inputs, so that waiting for one holds up no result. An exception of the
    inputs or of a worker is raised here. Where the caller stops early, inputs that are not begun
    are left out, `abandon` is called to end those that run, and the threads are waited for.
    """
    waiting: queue.Queue[_Input | None] = queue.Queue(maxsize=2 * len(workers))
    done: queue.Queue[tuple[_Result] | BaseException | None] = queue.Queue()
    stopped = threading.Event()

    def feed() -> None:
        try:
            for value in inputs:
                if not _put(waiting, value, stopped):
                    return
        except BaseException as error:
            done.put(error)
        for _ in workers:
            _put(waiting, None, stopped)

    def work(worker: Callable[[_Input], _Result]) -> None:
        try:
            while (value := _get(waiting, stopped)) is not None:
                done.put((worker(value),))
        except BaseException as error:
            done.put(error)
        finally:
            done.put(None)

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    threading.Thread(target=feed, daemon=True).start()
    for thread in threads:
        thread.start()
    working = len(threads)
    try:
        while working:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result[0]
    finally:
        stopped.set()
        if working and abandon is not None:
            abandon()
        for thread in threads:
            thread.join()


def _put(waiting: queue.Queue[Any], value: Any, stopped: threading.Event) -> bool:
    while not stopped.is_set():
        try:
            waiting.put(value, timeout=0.2)
        except queue.Full:
            continue
        return True
    return False


def _get(waiting: queue.Queue[Any], stopped: threading.Event) -> Any:
    while not stopped.is_set():
        try:
            return waiting.get(timeout=0.2)
        except queue.Empty:
            continue
    return None
