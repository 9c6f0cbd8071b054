"""SIGTERM and SIGINT, while tests run and while they are collected."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from pytest_llmeval.runs import load_run
from support.code_benchmark import BENCHMARK as CODE
from support.interrupting import start
from support.interrupting import wait_until
from support.interrupting import written

SLOW = """
def respond(self, request):
    import time
    time.sleep(0.02)
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0), seconds=0.02)
"""


def alone(process) -> bool:
    """Whether nothing is left of the session that a process was the leader of."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
@pytest.mark.parametrize(("workers", "to"), [("0", "process"), ("2", "process"), ("2", "group")])
def test_a_signal_ends_a_run_with_all_its_answers(alternating, workers, to, number):
    """A shell sends Ctrl-C to the group, `kill` and containers SIGTERM to the first process."""
    alternating.benchmark(art=100, law=100)
    alternating.model(respond=SLOW)
    process = start(alternating, "-n", workers)
    wait_until(alternating, lambda: written(alternating) >= 20)
    (os.kill if to == "process" else os.killpg)(process.pid, number)
    assert process.wait(timeout=30) == 2
    wait_until(alternating, lambda: alone(process))
    output = (alternating.path / "killed.txt").read_text()
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output
    assert output.count("\n") < 40
    assert alternating.document("run.json")["status"] == "interrupted"
    # The records are those that run.json counts: no worker wrote after the run was summed up.
    answered = [record for record in load_run(alternating.run_folder).records if record.logprobs]
    assert 20 <= len(answered) < 200
    before = len(alternating.requested)
    assert alternating.run("--llm-resume").ret == 0
    assert not {record.item for record in answered} & set(alternating.requested[before:])
    assert alternating.metrics()["answered"] == 200


def test_sigterm_ends_a_test_that_catches_everything(project):
    project.benchmark(
        """
        import time

        @pytest.mark.parametrize("n", range(100))
        def test_stubborn(n):
            try:
                time.sleep(0.2)
            except BaseException:
                pass
        """
    )
    process = start(project)
    wait_until(project, lambda: written(project) >= 9)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=15) == 2


SLOW_TO_COLLECT = """
import os, time
with open("collecting.txt", "a") as file:
    file.write(os.environ.get("PYTEST_XDIST_WORKER", "main") + "\\n")
if os.environ.get("PYTEST_XDIST_WORKER") != {quick!r}:
    time.sleep(60)
def test_ordinary(): pass
"""


def collecting(project) -> int:
    """The number of processes that have begun to collect the slow file."""
    file = project.path / "collecting.txt"
    return file.read_text().count("\n") if file.exists() else 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
@pytest.mark.parametrize(
    ("workers", "to", "slow"),
    [
        ("0", "process", "test_a.py"),  # before a marked test is known of, and after it
        ("0", "process", "test_z.py"),
        ("2", "process", "test_z.py"),
        ("2", "group", "test_a.py"),
        ("2", "group", "test_z.py"),
    ],
)
def test_a_signal_ends_the_collection_and_leaves_nothing(
    project, workers, to, slow, number, monkeypatch
):
    (project.path / slow).write_text(SLOW_TO_COLLECT.format(quick=""))
    (project.path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project.path / "tmp"))
    process = start(project, "-n", workers)
    wait_until(project, lambda: collecting(project) == (int(workers) or 1))
    (os.kill if to == "process" else os.killpg)(process.pid, number)
    assert process.wait(timeout=30) == 2
    wait_until(project, lambda: alone(process))
    output = (project.path / "killed.txt").read_text()
    assert "!!! KeyboardInterrupt" in output
    assert "no tests ran" in output
    assert "Traceback" not in output
    assert "llmeval ===" not in output
    assert not (project.path / "runs").exists()
    assert list((project.path / "tmp").glob("llmeval-*")) == []


def test_a_signal_while_another_worker_collects_leaves_no_run(project, monkeypatch):
    (project.path / "test_z.py").write_text(SLOW_TO_COLLECT.format(quick="gw0"))
    (project.path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project.path / "tmp"))
    process = start(project, "-n", "2")
    # The controller has opened a run for the worker that is ready.
    wait_until(project, lambda: any((project.path / "tmp").glob("llmeval-*/run")))
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=30) == 2
    wait_until(project, lambda: alone(process))
    output = (project.path / "killed.txt").read_text()
    assert "no answer was received: the run folder was removed" in output
    assert "--llm-resume" not in output
    assert list((project.path / "runs").glob("*/")) == []
    assert list((project.path / "tmp").glob("llmeval-*")) == []


def test_ctrl_c_during_collection_is_an_interruption(project):
    """Before a marked test is collected there is none, which is a mistake in a whole collection."""
    (project.path / "conftest.py").unlink()
    (project.path / "test_a.py").write_text(SLOW_TO_COLLECT.format(quick=""))
    process = start(project, "--llm-model=demo")
    wait_until(project, lambda: collecting(project) == 1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 2
    assert "ERROR" not in (project.path / "killed.txt").read_text()


def test_a_test_that_does_not_exist_is_what_is_reported(project):
    (project.path / "conftest.py").unlink()
    result = project.run("test_bench.py::test_bnech", "--llm-model=demo")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: not found: *test_bnech*"])
    result.stderr.no_fnmatch_line("*--llm-model*")


ENDLESS = """
import pytest
from pytest_llmeval.testing import FakeModel

@pytest.fixture(scope="session")
def model():
    return FakeModel(lambda request: "    while True: pass")
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_sigterm_removes_sandboxes(project, workers, monkeypatch):
    (project.path / "test_bench.py").write_text(CODE)
    (project.path / "conftest.py").write_text(ENDLESS)
    (project.path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(project.path / "tmp"))
    process = start(
        project, "--llm-sandbox=none", "--llm-i-trust-this-code", "-n", workers, "-p", "xdist"
    )
    # The response is there, and its program runs.
    wait_until(project, lambda: written(project) >= 1 and bool(running_below(project.path / "tmp")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 2
    wait_until(project, lambda: alone(process) and not running_below(project.path / "tmp"))
    assert list((project.path / "tmp").glob("llmeval-*")) == []


def running_below(folder) -> list[str]:
    """The processes that work in a folder, as candidates do in a sandbox's."""
    children = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = os.readlink(link)
        except OSError:
            continue  # it has ended
        if where.startswith(f"{folder}/"):
            children.append(link.parent.name)
    return children


def test_a_handler_of_the_program_stays(project):
    project.benchmark(
        """
        import signal

        def test_handler():
            assert signal.getsignal(signal.SIGTERM).__name__ == "mine"
        """
    )
    conftest = project.path / "conftest.py"
    own = "import signal\ndef mine(number, frame): pass\nsignal.signal(signal.SIGTERM, mine)\n"
    conftest.write_text(own + conftest.read_text())
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert project.run().ret == 0
        assert signal.getsignal(signal.SIGTERM).__name__ == "mine"
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_sigterm_is_handled_for_items_alone(project, workers):
    """Without any, and after the session, it does what it did."""
    handled = """
        import signal

        def test_handler():
            assert (signal.getsignal(signal.SIGTERM) is signal.SIG_DFL) is {}
        """
    project.benchmark(handled.format(False))
    assert project.run("-n", workers).ret == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    project.benchmark(handled.format(True))
    assert project.run("-n", workers, "-k", "handler").ret == 0


@pytest.mark.parametrize("option", ["llm_model = 'demo'", "llm_skip = true\nllm_model = 'demo'"])
def test_sigterm_during_the_collection_by_the_ini_file(project, option):
    """With ``llm_skip`` nothing is to be evaluated: SIGTERM does what it did."""
    (project.path / "conftest.py").unlink()
    (project.path / "pytest.ini").write_text("[pytest]\n" + option.replace("'", "") + "\n")
    (project.path / "test_a.py").write_text(SLOW_TO_COLLECT.format(quick=""))
    process = start(project)
    wait_until(project, lambda: collecting(project) == 1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == (-signal.SIGTERM if "skip" in option else 2)
