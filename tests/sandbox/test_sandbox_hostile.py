"""Programs that mean harm end as they should, disturb nobody and leave nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hostile_programs as hostile
import pytest

from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox.docker import LABEL
from pytest_llmeval.sandbox.docker import OWNER
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import owner

_LIMIT = 1.0
_NEIGHBOURS = 3
"""Harmless programs after each hostile one."""
_LEFT = """
import os
left = [f"process {one}" for one in os.listdir("/proc") if one.isdecimal()]
for top in ("/tmp", "/dev/shm", "/dev/mqueue"):
    for folder, folders, files in os.walk(top):
        if folder.count("/") >= 2 or top != "/tmp":
            left += [f"{folder}/{one}" for one in folders + files]
print("\\n".join(left))
"""


def _programs() -> Iterator[Program]:
    for name, one in hostile.ALL.items():
        yield Program(name, one.source, one.tests, one.context, "f", _LIMIT)
        for number in range(_NEIGHBOURS):
            yield Program(f"{name} {number}", hostile.RIGHT, hostile.CHECKS, "", "f", 20.0)


@pytest.fixture(scope="module", params=[1, 2, 3], ids="round {}".format)
def executions(request: pytest.FixtureRequest, sandbox: Sandbox) -> dict[str, Execution]:
    """What becomes of all programs in one stream: three rounds, in the same cells."""
    patch = pytest.MonkeyPatch()
    patch.setenv("LLMEVAL_HOST_SECRET", "host secret")
    try:
        return {one.id: one for one in sandbox.run(_programs())}
    finally:
        patch.undo()


@pytest.mark.parametrize("name", hostile.ALL)
def test_it_ends_as_it_should(executions: dict[str, Execution], name: str) -> None:
    execution, expected = executions[name], hostile.ALL[name]
    assert execution.status in expected.expected, execution
    assert expected.says in execution.detail
    assert execution.seconds is None or execution.seconds < _LIMIT + 5


def test_its_neighbours_pass(executions: dict[str, Execution]) -> None:
    names = [f"{name} {number}" for name in hostile.ALL for number in range(_NEIGHBOURS)]
    disturbed = [executions[name] for name in names if executions[name].status != "passed"]
    assert disturbed == []


@pytest.fixture
def containers() -> Iterator[list[Any]]:
    client = connect()
    found = client.containers.list(filters={"label": [f"{LABEL}=1", f"{OWNER}={owner()}"]})
    assert found
    yield found
    client.close()


def test_nothing_is_left_in_the_containers(
    executions: dict[str, Execution], containers: list[Any]
) -> None:
    for container in containers:
        left = container.exec_run(["python3", "-c", _LEFT]).output.decode().split("\n")
        processes = [one for one in left if one.startswith("process")]
        files = [one for one in left if one.startswith("/") and one.count("/") > 2]
        # The supervisor, two warm interpreters, and the process that looks.
        assert len(processes) == 4
        assert files == []


def test_nothing_is_left_on_the_host(
    executions: dict[str, Execution], containers: list[Any]
) -> None:
    """As the host sees it, a container's processes are the supervisor's and no candidate's."""
    for container in containers:
        names = container.top(ps_args="-o pid,uid")["Titles"]
        users = [
            row[names.index("UID")] for row in container.top(ps_args="-o pid,uid")["Processes"]
        ]
        assert users == ["0", "0", "0"]
