"""Each kind of sandbox runs programs, has an identity, and reports in one line why it cannot run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox import open_sandbox
from pytest_llmeval.sandbox import sandbox_identity
from pytest_llmeval.sandbox.docker import CONTENTS
from pytest_llmeval.sandbox.docker import LABEL
from pytest_llmeval.sandbox.docker import OWNER
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import find_image
from pytest_llmeval.sandbox.docker import owner
from pytest_llmeval.sandbox.docker import owner_lives
from pytest_llmeval.sandbox.docker import remove_left
from pytest_llmeval.sandbox.types import IMAGE
from support import hostile_programs as hostile
from support.opened_sandbox import opened

_PATIENCE = 20.0
_HOLD = """
import sys
from pytest_llmeval.sandbox import Program, open_sandbox
sandbox = open_sandbox(sys.argv[1], timeout_scale=1.0)
programs = [Program(str(n), "import time\\ntime.sleep(60)", "", timeout=8.0) for n in range(9)]
first = [Program("first", "", "")] * 4
for one in sandbox.run(first + programs):
    print(one.status, flush=True)
"""


def _eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def test_the_identity_of_docker_names_image_and_contents(sandbox: Sandbox) -> None:
    client = connect()
    image = find_image(client, IMAGE)
    client.close()
    assert sandbox.identity == sandbox_identity("docker")
    assert image.id in sandbox.identity
    assert image.labels[CONTENTS] in sandbox.identity
    assert "python 3." in sandbox.identity
    assert "numpy" in sandbox.identity
    assert sandbox_identity("docker", memory_mb=256) != sandbox.identity


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_the_identity_of_this_python_names_its_packages(kind: str) -> None:
    if kind == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("no bwrap here")
    python = ".".join(map(str, sys.version_info[:3]))
    assert sandbox_identity(kind).startswith(f"{kind} python {python}, numpy ")


def test_bubblewrap_holds_hostile_programs() -> None:
    """All but those about what only Docker has: an empty machine and a limit on all memory."""
    docker_only = {"host_files", "memory_of_children", "memory_in_files"}
    chosen = {name: case for name, case in hostile.ALL.items() if name not in docker_only}
    programs = [
        Program(name, case.source, case.tests, case.context, "f", 1.0)
        for name, case in chosen.items()
    ]
    with opened("bubblewrap", timeout_scale=1.0) as sandbox:
        executions = {execution.id: execution for execution in sandbox.run(programs)}
    wrong = [
        execution
        for execution in executions.values()
        if execution.status not in chosen[execution.id].expected
    ]
    assert wrong == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_docker_leaves_no_container_behind_a_killed_session(
    sandbox: Sandbox, end: signal.Signals
) -> None:
    client = connect()
    with _holding("docker") as process:
        label = f"{OWNER}={owner(process.pid)}"
        filters = {"label": label}
        assert len(client.containers.list(filters=filters, ignore_removed=True)) == 2
        process.send_signal(end)
        process.wait()
    assert _eventually(
        lambda: not client.containers.list(all=True, filters=filters, ignore_removed=True)
    )
    client.close()


def test_bubblewrap_leaves_no_process_behind_a_killed_session() -> None:
    opened("bubblewrap").close()
    with _holding("bubblewrap") as process:
        left = _descendants(process.pid)
        assert left
        process.kill()
        process.wait()
    assert _eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))


def _holding(kind: str) -> subprocess.Popen[str]:
    """A session whose cells have started."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, kind], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(4):
        assert process.stdout.readline() == "passed\n"
    return process


def _descendants(pid: int) -> set[int]:
    children: dict[int, set[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, set()).add(int(folder.name))
    below, new = set[int](), {pid}
    while new:
        new = {child for parent in new for child in children.get(parent, set())} - below
        below |= new
    return below


def test_clean_removes_what_has_no_owner_and_keeps_the_rest(sandbox: Sandbox) -> None:
    assert next(sandbox.run([Program("a", "", "")])).status == "passed"
    client = connect()
    ended = subprocess.Popen(["true"])
    dead = owner(ended.pid)
    ended.wait()
    orphan = client.containers.create(IMAGE, command=["python3"], labels={LABEL: "1", OWNER: dead})
    remove_left(client)
    containers = client.containers.list(
        all=True, filters={"label": f"{LABEL}=1"}, ignore_removed=True
    )
    assert orphan.id not in [container.id for container in containers]
    assert owner() in [container.labels.get(OWNER) for container in containers]
    client.close()


def test_opening_removes_what_a_killed_session_had_not_started(sandbox: Sandbox) -> None:
    client = connect()
    ended = subprocess.Popen(["true"])
    owners = [owner(ended.pid), owner()]
    ended.wait()
    made = [
        client.containers.create(IMAGE, command=["python3"], labels={LABEL: "1", OWNER: each})
        for each in owners
    ]
    try:
        with opened("docker", timeout_scale=1.0, workers=1):
            listed = client.containers.list(all=True, ignore_removed=True)
        assert [each.id in {container.id for container in listed} for each in made] == [False, True]
    finally:
        made[1].remove()
        client.close()


def test_an_owner_is_a_process_and_not_its_number() -> None:
    assert owner_lives(owner()) is True
    host, pid, started = owner().split()
    assert owner_lives(f"{host} {pid} {int(started) + 1}") is False
    assert owner_lives(f"elsewhere {pid} {started}") is None


def test_closing_leaves_nothing() -> None:
    with opened("docker", timeout_scale=1.0, workers=1) as sandbox:
        list(sandbox.run([Program("a", "", "")]))
        client = connect()
        filters = {"label": f"{OWNER}={owner()}"}
        before = {
            container.id
            for container in client.containers.list(filters=filters, ignore_removed=True)
        }
    after = {
        container.id
        for container in client.containers.list(all=True, filters=filters, ignore_removed=True)
    }
    assert len(before - after) == 1
    client.close()


def test_a_missing_image_is_reported_with_the_command_that_builds_it() -> None:
    opened("docker", timeout_scale=1.0).close()
    with pytest.raises(
        ConfigError, match=r"no image .nothing-like-it.: make it with `llmeval sandbox build`"
    ):
        open_sandbox("docker", image="nothing-like-it")
    with pytest.raises(ConfigError, match="sandbox runtime 'nothing-like-it'"):
        open_sandbox("docker", runtime="nothing-like-it")


def test_a_missing_engine_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(ConfigError, match="no Docker engine answers") as caught:
        open_sandbox("docker")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("start it, or use another kind of sandbox (bubblewrap)")


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[docker\]'"):
        open_sandbox("docker")


def test_a_missing_bwrap_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="install the package bubblewrap"):
        open_sandbox("bubblewrap")


def test_wrong_names_are_reported() -> None:
    with pytest.raises(ConfigError, match="no sandbox 'doker'; did you mean 'docker'"):
        open_sandbox("doker")
    with pytest.raises(ConfigError, match="no limit 'memory'; did you mean 'memory_mb'"):
        open_sandbox("none", memory=5)
    with pytest.raises(ConfigError, match="workers: 0 is less than 1"):
        open_sandbox("none", workers=0)
