"""Cells side by side: programs in, executions out, and what happens when a cell is lost."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from typing import Self

from pytest_llmeval.sandbox.cell import Cell
from pytest_llmeval.sandbox.cell import CellLostError
from pytest_llmeval.sandbox.cell import LaunchError
from pytest_llmeval.sandbox.core import DETAIL_LENGTH
from pytest_llmeval.sandbox.core import Execution
from pytest_llmeval.sandbox.core import Program

_SLACK = 10.0
"""Seconds beyond a program's longest time in which a cell must have reported."""
_LONGEST = 2.0
"""Times its limit that a program may take in a cell whose CPU is shared (see the supervisor)."""
_STARVED = 1.0
"""Share of its limit for which a program that timed out had no CPU: then it is run again alone."""

Start = Callable[[int], Cell]


class Pool:
    """A sandbox of several cells. Cells start when first needed and are kept between runs."""

    def __init__(self, start: Start, workers: int, identity: str, time_scale: float = 1.0) -> None:
        self.identity = identity
        self.time_scale = time_scale
        self._slots = [_Slot(start, number) for number in range(workers)]
        self._room = _Room()

    def run(self, programs: Iterable[Program]) -> Iterator[Execution]:
        """Run `programs`; they are taken from a thread, so that waiting for one holds up nothing."""
        waiting: queue.Queue[Program | None] = queue.Queue(maxsize=2 * len(self._slots))
        done: queue.Queue[Execution | BaseException | None] = queue.Queue()
        stopped = threading.Event()

        def feed() -> None:
            try:
                for program in programs:
                    if not _put(waiting, program, stopped):
                        return
            except BaseException as error:
                done.put(error)
            for _ in self._slots:
                _put(waiting, None, stopped)

        def work(slot: _Slot) -> None:
            try:
                while (program := _get(waiting, stopped)) is not None:
                    done.put(self._execute(slot, program))
            except BaseException as error:
                done.put(error)
            finally:
                done.put(None)

        threads = [threading.Thread(target=work, args=(slot,)) for slot in self._slots]
        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        for thread in threads:
            thread.start()
        try:
            working = len(threads)
            while working:
                one = done.get()
                if isinstance(one, BaseException):
                    raise one
                if one is None:
                    working -= 1
                else:
                    yield one
        finally:
            stopped.set()
            for thread in threads:
                thread.join()

    def close(self) -> None:
        for slot in self._slots:
            slot.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _execute(self, slot: _Slot, program: Program) -> Execution:
        limit = program.timeout * self.time_scale
        with self._room.shared():
            report = self._report(slot, program, limit)
        if report["status"] == "timeout" and _had_no_cpu(report, limit):
            with self._room.alone():
                report = self._report(slot, program, limit)
        return Execution(
            program.id, report["status"], _one_line(report["detail"]), report.get("seconds")
        )

    def _report(self, slot: _Slot, program: Program, limit: float) -> dict[str, Any]:
        """What a cell says of `program`, after a second try where the machinery failed."""
        message = {
            "id": program.id,
            "source": program.source,
            "tests": program.tests,
            "context": program.context,
            "entry_point": program.entry_point,
            "limit": limit,
        }
        lost, failures = 0, 0
        while True:
            try:
                report = slot.run(message, limit * _LONGEST + _SLACK)
            except CellLostError as error:
                lost += 1
                if lost == 2:
                    return {"status": "failed", "detail": f"ended two sandboxes: {error}"}
                continue
            except LaunchError as error:
                report = {"status": "error", "detail": f"the sandbox does not start: {error}"}
            failures += report["status"] == "error"
            if report["status"] != "error" or failures == 2:
                return report


class _Slot:
    """A place for a cell, and the cell that is in it at present."""

    def __init__(self, start: Start, number: int) -> None:
        self._start = start
        self._number = number
        self._cell: Cell | None = None
        self._lock = threading.Lock()

    def run(self, program: dict[str, Any], patience: float) -> dict[str, Any]:
        with self._lock:
            if self._cell is None:
                self._cell = self._start(self._number)
            try:
                return self._cell.run(program, patience)
            except CellLostError:
                self._cell.close()
                self._cell = None
                raise

    def close(self) -> None:
        with self._lock:
            if self._cell is not None:
                self._cell.close()
                self._cell = None


class _Room:
    """Programs run beside each other, or one alone while the others wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True
            self._changed.wait_for(lambda: not self._running)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


def _had_no_cpu(report: dict[str, Any], limit: float) -> bool:
    starved = report.get("starved")
    if starved is None:
        # The kernel does not say: what did not use its time may have been kept from it.
        return bool(report.get("cpu", 0.0) < 0.5 * limit)
    return bool(starved > _STARVED * limit)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= DETAIL_LENGTH else line[: DETAIL_LENGTH - 1] + "…"


def _put(waiting: queue.Queue[Any], one: Any, stopped: threading.Event) -> bool:
    while not stopped.is_set():
        try:
            waiting.put(one, timeout=0.2)
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
