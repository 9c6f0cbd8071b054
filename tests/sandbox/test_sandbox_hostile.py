"""Programs that mean harm end as they should, disturb no other program and leave nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox.docker import LABEL
from pytest_llmeval.sandbox.docker import OWNER
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import owner
from support import hostile_programs as hostile

_LIMIT, _ROOMY = 1.0, 20.0
"""Seconds for the hostile programs, and for those beside them."""
_NEIGHBOURS = 3
"""Harmless programs after each hostile one."""
_LEFT = """
import os
homes = [f"/tmp/{one}" for one in os.listdir("/tmp")]
for top in (*homes, "/dev/shm", "/dev/mqueue"):
    for folder, folders, files in os.walk(top):
        for one in folders + files:
            print(f"{folder}/{one}")
"""


def _programs() -> Iterator[Program]:
    for name, case in hostile.ALL.items():
        yield Program(name, case.source, case.tests, case.context, "f", _LIMIT)
        for number in range(_NEIGHBOURS):
            yield Program(f"{name} {number}", hostile.RIGHT, hostile.CHECKS, "", "f", _ROOMY)


@pytest.mark.parametrize("number", [1, 2], ids="round {}".format)
def test_hostile_programs(sandbox: Sandbox, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds in the same containers: what one leaves, the next would find."""
    monkeypatch.setenv("LLMEVAL_HOST_SECRET", "host secret")
    executions = {execution.id: execution for execution in sandbox.run(_programs())}
    unexpected = [
        executions[name]
        for name, case in hostile.ALL.items()
        if executions[name].status not in case.expected or case.says not in executions[name].detail
    ]
    assert unexpected == []
    neighbours = [f"{name} {number}" for name in hostile.ALL for number in range(_NEIGHBOURS)]
    assert [executions[name] for name in neighbours if executions[name].status != "passed"] == []
    assert [
        execution
        for execution in executions.values()
        if execution.seconds and execution.seconds > _limit(execution) + 5
    ] == []
    with _containers() as containers:
        assert containers
        for container in containers:
            _nothing_is_left(container)


def _limit(execution: Execution) -> float:
    return _LIMIT if execution.id in hostile.ALL else _ROOMY


@contextmanager
def _containers() -> Iterator[list[Any]]:
    """This session's."""
    client = connect()
    yield client.containers.list(
        filters={"label": [f"{LABEL}=1", f"{OWNER}={owner()}"]}, ignore_removed=True
    )
    client.close()


def _nothing_is_left(container: Any) -> None:
    # As the host sees it: the supervisor and two warm interpreters, and a candidate and a checker
    # that wait for the next program, once these have been forked.
    deadline = time.monotonic() + 10
    while (users := _users(container)) != ["0", "0", "0", "candidate", "checker"]:
        assert time.monotonic() < deadline, users
        time.sleep(0.05)
    left = container.exec_run(["python3", "-c", _LEFT]).output.decode().split()
    assert left == []


def _users(container: Any) -> list[str]:
    """Whom a container's processes belong to; the checker's user comes after the candidates'."""
    top = container.top(ps_args="-o pid,uid")
    users = sorted(int(row[top["Titles"].index("UID")]) for row in top["Processes"])
    names = {0: "0", **({users[-1]: "checker"} if users[-1] else {})}
    return [names.get(user, "candidate") for user in users]
