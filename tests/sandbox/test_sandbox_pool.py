"""Programs over several cells, with cells that have every fault."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox.cell import Cell
from pytest_llmeval.sandbox.cell import CellLostError
from pytest_llmeval.sandbox.cell import LaunchError
from pytest_llmeval.sandbox.pool import Pool

_PASSED = {"status": "passed", "detail": "", "seconds": 0.1, "cpu": 0.1, "starved": 0.0}


class _Cell:
    """Answers as `answer` does: a report, or an exception."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self._answer = answer
        self.closed = False

    def run(self, program: dict[str, Any], patience: float) -> dict[str, Any]:
        answer = self._answer(program)
        if isinstance(answer, Exception):
            raise answer
        return {"id": program["id"], **_PASSED, **answer}

    def close(self) -> None:
        self.closed = True


class _Cells:
    identity = "test"

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self._answer = answer
        self.started: list[_Cell] = []
        self.closed = False

    def start(self, number: int) -> Any:
        self.started.append(_Cell(self._answer))
        return self.started[-1]

    def close(self) -> None:
        self.closed = True


def _programs(count: int) -> list[Program]:
    return [Program(str(number), "", "") for number in range(count)]


def _run(answer: Callable[[dict[str, Any]], Any], workers: int = 1) -> tuple[Execution, _Cells]:
    cells = _Cells(answer)
    with Pool(cells, workers, 1.0) as pool:
        (execution,) = pool.run(_programs(1))
    assert all(cell.closed for cell in cells.started)
    assert cells.closed
    return execution, cells


def _in_turn(*answers: Any) -> Callable[[dict[str, Any]], Any]:
    left = list(answers)
    return lambda program: left.pop(0)


def test_each_program_comes_back_once() -> None:
    with Pool(_Cells(lambda program: {}), 3, 1.0) as pool:
        ids = sorted(execution.id for execution in pool.run(_programs(50)))
        again = [execution.id for execution in pool.run(_programs(2))]
    assert ids == sorted(map(str, range(50)))
    assert sorted(again) == ["0", "1"]


def test_a_lost_cell_is_replaced_and_its_program_run_again() -> None:
    execution, cells = _run(_in_turn(CellLostError("ended"), {}))
    assert execution.status == "passed"
    assert len(cells.started) == 2


def test_a_program_that_ends_two_cells_has_failed() -> None:
    execution, cells = _run(_in_turn(CellLostError("ended"), CellLostError("ended")))
    assert (execution.status, execution.detail) == ("failed", "twice, the sandbox is lost: ended")
    assert len(cells.started) == 2


@pytest.mark.parametrize("failure", [{"status": "error", "detail": "x"}, LaunchError("x")])
def test_a_failure_of_the_machinery_is_tried_again_and_then_an_error(failure: Any) -> None:
    execution, _ = _run(_in_turn(failure, {}))
    assert execution.status == "passed"
    execution, _ = _run(_in_turn(failure, failure))
    assert execution.status == "error"
    assert execution.detail.endswith("x")


@pytest.mark.parametrize(
    ("report", "again"),
    [
        ({"starved": 0.1, "cpu": 2.9}, False),
        ({"starved": 0.1, "cpu": 0.0}, False),
        ({"starved": 8.0, "cpu": 1.0}, True),
        ({"starved": None, "cpu": 2.9}, False),
        ({"starved": None, "cpu": 1.0}, True),
    ],
)
def test_programs_that_timed_out_without_a_cpu_are_run_again(
    report: dict[str, Any], again: bool
) -> None:
    timeout = {"status": "timeout", **report}
    execution, _ = _run(_in_turn(timeout, {}))
    assert execution.status == ("passed" if again else "timeout")
    if again:
        execution, _ = _run(_in_turn(timeout, timeout))
        assert execution.status == "timeout"


def test_a_timed_out_program_is_run_again_alone() -> None:
    running, most = [0], [0]
    tried: set[str] = set()
    lock = threading.Lock()

    def answer(program: dict[str, Any]) -> dict[str, Any]:
        with lock:
            running[0] += 1
            alone = program["id"] in tried
            tried.add(program["id"])
        threading.Event().wait(0.005)
        with lock:
            beside = running[0]
            running[0] -= 1
        if alone:
            most[0] = max(most[0], beside)
            return {}
        return {"status": "timeout", "starved": 9.0, "cpu": 0.0}

    with Pool(_Cells(answer), 3, 1.0) as pool:
        assert {execution.status for execution in pool.run(_programs(12))} == {"passed"}
    assert most == [1]


def test_waiting_for_a_program_holds_up_no_execution() -> None:
    waiting: queue.Queue[Program | None] = queue.Queue()
    with Pool(_Cells(lambda program: {}), 2, 1.0) as pool:
        executions = pool.run(iter(waiting.get, None))
        for number in range(3):
            waiting.put(Program(str(number), "", ""))
            assert next(executions).id == str(number)
        waiting.put(None)
        assert list(executions) == []


def test_closing_gives_up_what_runs_and_starts_no_other_cell() -> None:
    """An interrupted session does not wait for an endless program, nor leave its sandbox."""
    running, ended = threading.Event(), threading.Event()

    def answer(program: dict[str, Any]) -> Any:
        running.set()
        assert ended.wait(10)
        return CellLostError("ended")

    cells = _Cells(answer)
    start = cells.start

    def started(number: int) -> Any:
        cell = start(number)
        cell.close = ended.set
        return cell

    cells.start = started  # type: ignore[method-assign]
    pool = Pool(cells, 1, 1.0)
    executions: list[Execution] = []
    thread = threading.Thread(target=lambda: executions.extend(pool.run(_programs(3))))
    thread.start()
    assert running.wait(10)
    pool.close()
    thread.join(10)
    assert ended.is_set()
    assert cells.closed
    assert len(cells.started) == 1
    assert {execution.status for execution in executions} == {"error"}


def test_programs_are_taken_as_there_is_room() -> None:
    taken = [0]

    def programs() -> Iterator[Program]:
        for program in _programs(1000):
            taken[0] += 1
            yield program

    with Pool(_Cells(lambda program: {}), 1, 1.0) as pool:
        executions = pool.run(programs())
        next(executions)
        executions.close()  # type: ignore[attr-defined]
    assert taken[0] < 1000


def test_an_exception_of_the_programs_is_the_callers() -> None:
    def programs() -> Iterator[Program]:
        yield from _programs(1)
        raise ZeroDivisionError

    with Pool(_Cells(lambda program: {}), 2, 1.0) as pool, pytest.raises(ZeroDivisionError):
        list(pool.run(programs()))


def test_known_programs_raise_the_time_scale() -> None:
    limits = []

    def answer(program: dict[str, Any]) -> dict[str, Any]:
        limits.append(program["limit"])
        return {"seconds": 6.0}

    with Pool(_Cells(answer), 1, 1.0) as pool:
        pool.calibrate(_programs(1))
        assert pool.time_scale == 4.0
        list(pool.run(_programs(1)))
    assert limits == [30.0, 12.0]


def test_a_slow_machine_gets_longer_limits() -> None:
    with Pool(_Cells(lambda program: {"cpu": 0.35}), 2, None) as pool:
        assert pool.time_scale == 3.5
    with Pool(_Cells(lambda program: {"cpu": 0.01}), 2, None) as pool:
        assert pool.time_scale == 1.0


def test_a_sandbox_that_does_not_work_is_reported_at_once() -> None:
    cells = _Cells(lambda program: LaunchError("no python3"))
    with pytest.raises(ConfigError, match="does not work: the sandbox does not start: no python3"):
        Pool(cells, 2, None)
    assert cells.closed


class _Stream:
    """A guest that says `said`."""

    def __init__(self, *messages: bytes) -> None:
        self._said = list(messages)
        self.stopped = 0

    def write(self, data: bytes) -> None:
        pass

    def read(self, seconds: float) -> bytes:
        if not self._said:
            raise TimeoutError
        return self._said.pop(0)

    def stop(self) -> str:
        self.stopped += 1
        return "Traceback\nModuleNotFoundError: json\n"


def _framed(message: Any) -> bytes:
    data = json.dumps(message).encode()
    return len(data).to_bytes(4, "big") + data


_READY = _framed({"ready": {"python": "3.11"}})


def test_a_message_may_come_in_parts() -> None:
    report = _framed({"id": "a", "status": "passed"})
    cell = Cell(_Stream(_READY[:3], _READY[3:] + report[:9], report[9:]), {}, 1.0)
    assert cell.run({"id": "a"}, 1.0) == {"id": "a", "status": "passed"}


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "no answer in time"),
        ([b""], "ended"),
        ([b"\xff\xff\xff\xff"], "not a message"),
        ([b"\x00\x00\x00\x02{]"], "not a message"),
        ([b"\x00\x00\x00\x02[]"], "not a message"),
        ([_framed({"id": "b", "status": "passed"})], "another program"),
    ],
)
def test_a_cell_that_does_not_keep_to_the_protocol_is_lost(messages: list[bytes], why: str) -> None:
    cell = Cell(_Stream(_READY, *messages), {}, 1.0)
    with pytest.raises(CellLostError, match=why):
        cell.run({"id": "a"}, 0.1)


def test_a_guest_that_does_not_start_is_quoted() -> None:
    stream = _Stream(b"")
    with pytest.raises(LaunchError, match=r"^ModuleNotFoundError: json$"):
        Cell(stream, {}, 1.0)
    assert stream.stopped == 1
