"""A pool of cells: programs in, executions out, and recovery of lost cells."""

from __future__ import annotations

import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any
from typing import Protocol
from typing import Self

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox.cell import Cell
from pytest_llmeval.sandbox.cell import CellLostError
from pytest_llmeval.sandbox.cell import LaunchError
from pytest_llmeval.sandbox.parallel import in_parallel
from pytest_llmeval.sandbox.types import Execution
from pytest_llmeval.sandbox.types import Program
from pytest_llmeval.sandbox.types import one_line

_SLACK = 6.0
"""Seconds after a program's largest limit within which its cell must report."""
_LONGEST = 3.0
"""Largest duration in a cell with a shared CPU, as a multiple of the limit (see the supervisor)."""
_STARVED = 2.4
"""Time without a CPU, as a multiple of the limit, from which a timeout is repeated alone."""

_REFERENCE_SECONDS = 0.1
"""CPU seconds of `_REFERENCE` on the machine that the time limits were chosen for."""
_REFERENCE = """\
total = 0
for number in range(1_500_000):
    total += number % 7
"""
_GENEROUS = 10.0
"""Multiple of its limit that a reference program may take while the speed is measured."""


class Cells(Protocol):
    """One kind of sandbox on this machine."""

    @property
    def identity(self) -> str: ...

    def start(self, number: int) -> Cell:
        """Start cell `number`. Raises `LaunchError` where that fails."""

    def close(self) -> None:
        """Release what starting cells needed; the cells are closed already."""


class Pool:
    """A sandbox of several cells. Cells start when first needed and are kept between runs."""

    def __init__(self, cells: Cells, workers: int, time_scale: float | None) -> None:
        self.identity = cells.identity
        self._cells = cells
        self._slots = [_Slot(cells.start, number) for number in range(workers)]
        self._room = _Room()
        self.time_scale = time_scale or 1.0
        if time_scale is None:
            self._measure_speed()

    def run(self, programs: Iterable[Program]) -> Iterator[Execution]:
        """Run `programs`, one in each cell at a time."""
        return in_parallel(programs, [partial(self._execute, slot) for slot in self._slots])

    def calibrate(self, programs: Iterable[Program]) -> list[Execution]:
        """Run correct programs; raise the time scale until the slowest takes half its limit."""
        by_id = {program.id: program for program in programs}
        generous = [
            replace(program, timeout=program.timeout * _GENEROUS) for program in by_id.values()
        ]
        executions = list(self.run(generous))
        for execution in executions:
            if execution.status == "passed" and execution.seconds is not None:
                self.time_scale = max(
                    self.time_scale, 2 * execution.seconds / by_id[execution.id].timeout
                )
        return executions

    def close(self) -> None:
        """Remove all cells; running programs are abandoned, others not started."""
        with ThreadPoolExecutor(len(self._slots)) as threads:
            list(threads.map(_Slot.close, self._slots))
        self._cells.close()

    def _measure_speed(self) -> None:
        """Set the time scale from the CPU time of a small program, run in each cell at once."""
        message = _message(Program("speed", _REFERENCE, ""), _GENEROUS)
        with ThreadPoolExecutor(len(self._slots)) as threads:
            reports = list(
                threads.map(lambda slot: self._reported(slot, message, _GENEROUS), self._slots)
            )
        for report in reports:
            if report["status"] != "passed":
                self.close()
                raise ConfigError(f"the sandbox does not work: {one_line(report['detail'])}")
        fastest = min(report["cpu"] for report in reports)
        self.time_scale = max(1.0, round(fastest / _REFERENCE_SECONDS, 2))

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
        message = _message(program, limit)
        with self._room.shared():
            report = self._reported(slot, message, limit)
        if report["status"] == "timeout" and _had_no_cpu(report, limit):
            with self._room.alone():
                report = self._reported(slot, message, limit)
        return Execution(
            program.id, report["status"], one_line(report["detail"]), report.get("seconds")
        )

    def _reported(self, slot: _Slot, message: dict[str, Any], limit: float) -> dict[str, Any]:
        """Run a program in a cell, with a second attempt where the machinery failed."""
        crashes, failures = 0, 0
        while True:
            try:
                report = slot.run(message, limit * _LONGEST + _SLACK)
            except CellLostError as error:
                report = {"status": "crashed", "detail": f"the sandbox is lost: {error}"}
            except LaunchError as error:
                report = {"status": "error", "detail": f"the sandbox does not start: {error}"}
            if report["status"] == "crashed":
                crashes += 1
                if crashes == 2:
                    # A program that loses a second cell has failed: it cannot force an `error`.
                    return {"status": "failed", "detail": f"twice, {report['detail']}"}
            elif report["status"] == "error":
                failures += 1
                if failures == 2:
                    return report
            else:
                return report


class _Slot:
    """A slot for a cell, and the cell that is in it at present."""

    def __init__(self, start: Callable[[int], Cell], number: int) -> None:
        self._start = start
        self._number = number
        self._cell: Cell | None = None
        self._lock = threading.Lock()
        self._taking = threading.Lock()
        self._closed = False

    def run(self, program: dict[str, Any], patience: float) -> dict[str, Any]:
        with self._lock:
            if self._cell is None and not self._closed:
                self._cell = self._start(self._number)
            cell = self._cell
            if cell is None or self._closed:
                self._close_cell()
                raise LaunchError("it was closed")
            try:
                return cell.run(program, patience)
            except CellLostError:
                self._close_cell()
                raise

    def close(self) -> None:
        """Remove the cell, also while it runs a program, and start no other."""
        self._closed = True
        self._close_cell()
        with self._lock:  # what was starting meanwhile
            self._close_cell()

    def _close_cell(self) -> None:
        with self._taking:
            cell, self._cell = self._cell, None
        if cell is not None:
            cell.close()


class _Room:
    """A lock under which programs run at the same time, or one alone while the others wait."""

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


def _message(program: Program, limit: float) -> dict[str, Any]:
    return {
        "id": program.id,
        "source": program.source,
        "tests": program.tests,
        "context": program.context,
        "entry_point": program.entry_point,
        "limit": limit,
    }


def _had_no_cpu(report: dict[str, Any], limit: float) -> bool:
    starved = report.get("starved")
    if starved is None:
        # Unknown to the kernel: a program that did not use its time may have had no CPU.
        return bool(report.get("cpu", 0.0) < 0.5 * limit)
    return bool(starved > _STARVED * limit)
