"""Nothing is lost: the same command continues, and ends with the numbers of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.storage.records import read_records
from support.interrupting import start
from support.interrupting import wait_for_records

SLOW = """
def respond(self, request):
    import time
    time.sleep(0.01)
    wrong = int(request.id[-4:]) % 3 == 0
    scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
    return Response(request.id, logprobs=scores, seconds=0.01)
"""
SIZES = {"art": 60, "law": 90, "zoo": 150}


@pytest.fixture
def slow(project):
    """300 items that take three seconds on one worker, under gates."""
    project.benchmark(**SIZES)
    project.model(respond=SLOW)
    project.thresholds(
        "[benchmarks.bench]\naccuracy = 0.5\n[benchmarks.bench.every_subject]\naccuracy = 0.5"
    )
    return project


def undisturbed(project) -> tuple[dict, dict]:
    project.run("--llm-runs=other")
    (folder,) = (project.path / "other").glob("*/")
    text = {name: (folder / name).read_text() for name in ("metrics.json", "gates.json")}
    (project.path / "asked.txt").unlink()
    return text


def check_resumed(project, expected: dict[str, str], *arguments: str) -> None:
    result = project.run("--llm-resume", *arguments)
    assert result.ret == 0
    (folder,) = (project.path / "runs").glob("*/")
    for name, text in expected.items():
        assert (folder / name).read_text() == text
    assert project.document("run.json")["status"] == "finished"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_kill_9_of_the_controller(slow, workers):
    expected = undisturbed(slow)
    process = start(slow, "-n", workers)
    wait_for_records(slow, random.randint(1, 250))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(read_records(slow.run_folder / "records.jsonl")))
    check_resumed(slow, expected, "-n", workers)
    # At most the item in flight in each process was requested twice.
    assert len(slow.requested) <= 300 + max(1, int(workers))
    assert done > 0


def test_kill_9_of_a_worker_then_resume(slow):
    expected = undisturbed(slow)
    process = start(slow, "-n", "2")
    wait_for_records(slow, 20)
    children = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(children[-1]), signal.SIGKILL)
    assert process.wait(timeout=60) == 1
    assert "crashed while running" in (slow.path / "killed.txt").read_text()
    check_resumed(slow, expected, "-n", "2")


def test_ctrl_c_keeps_what_was_answered_and_is_no_success(slow):
    expected = undisturbed(slow)
    process = start(slow)
    wait_for_records(slow, 100)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 2
    output = (slow.path / "killed.txt").read_text()
    assert "UNDECIDED bench::accuracy" in output
    assert slow.document("run.json")["status"] == "interrupted"
    done = {record.item for record in read_records(slow.run_folder / "records.jsonl")}
    asked_before = len(slow.requested)
    check_resumed(slow, expected)
    assert len(done) >= 100
    # Nothing that was on disk is requested again.
    assert not done & set(slow.requested[asked_before:])


def test_a_finished_run_is_resumed_without_a_request(slow):
    slow.run()
    (slow.path / "asked.txt").unlink()
    expected = slow.document("metrics.json")
    result = slow.run("--llm-resume")
    assert result.ret == 0
    assert slow.requested == []
    assert slow.document("metrics.json") == expected


def test_errors_are_requested_again(project):
    project.model(
        respond="""
        def respond(self, request):
            if not os.path.exists("repaired"):
                return Response(request.id, error="down")
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    assert project.run().ret == 1
    (project.path / "repaired").touch()
    assert project.run("--llm-resume").ret == 0
    assert project.metrics()["correct"] == 9


def test_another_models_answers_are_not_taken(project):
    project.run()
    requested = len(project.requested)
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text().replace("weights-1", "weights-2"))
    project.run("--llm-resume")
    assert len(project.requested) == 2 * requested


def test_nothing_to_resume_is_reported_with_the_reason(project):
    project.run()
    result = project.run("--llm-resume", "--llm-limit=1")
    result.stdout.fnmatch_lines(["nothing to resume: * differs in the selected items; a new run*"])
    assert len(list((project.path / "runs").glob("*/"))) == 2


def test_a_torn_last_line_is_requested_again(project):
    project.run()
    records = project.run_folder / "records.jsonl"
    expected = project.document("metrics.json")
    records.write_bytes(records.read_bytes()[:-20])
    assert project.run("--llm-resume").ret == 0
    assert project.document("metrics.json") == expected
    assert len(list(read_records(records))) == 9


def test_a_full_disk_stops_the_run_and_loses_nothing(project):
    project.benchmark(**SIZES)
    conftest = project.path / "conftest.py"
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
    ignore = "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    whole = conftest.read_text()
    conftest.write_text(limit + ignore + whole)
    process = start(project)
    assert process.wait(timeout=60) == 1
    assert "cannot write" in (project.path / "killed.txt").read_text()
    done = {record.item for record in read_records(project.run_folder / "records.jsonl")}
    assert 0 < len(done) < 300
    conftest.write_text(whole)
    assert project.run("--llm-resume").ret == 0
    assert project.metrics()["answered"] == 300


def test_a_killed_resumed_run_does_not_show_earlier_results(project):
    """Metrics and gates of the first session are about other answers than are there."""
    project.thresholds("[benchmarks.bench]\naccuracy = 0.5\n")
    project.model(
        respond="""
        def respond(self, request):
            if request.id == "law-0002" and not os.path.exists("again"):
                return Response(request.id, error="down")
            if request.id == "zoo-0003":
                return os._exit(9) if os.path.exists("again") else Response(request.id, error="down")
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    assert project.run().ret == 1
    assert project.metrics()["errors"] == 2
    (project.path / "again").touch()
    assert start(project, "--llm-resume").wait() == 9
    out = project.path / "out.json"
    assert main(["export", str(project.run_folder), "--out", str(out)]) == 0
    value = json.loads(out.read_text())
    errors = [answer["item"] for answer in value["answers"] if answer["outcome"] == "error"]
    assert value["results"][0]["errors"] == len(errors) == 1
    assert (value["run"]["status"], value["verdict"]) == ("running", "not gated")


def test_a_finished_run_of_a_function_is_not_resumed(project):
    """Versions of a function cannot be distinguished, so a finished run is left alone."""
    function = "import pytest\n\n@pytest.fixture(scope='session')\ndef model():\n    return lambda p: '{}'\n"
    project.model(function.format("B"))
    project.run()
    project.model(function.format("A"))
    result = project.run("--llm-resume")
    result.stdout.fnmatch_lines(["nothing to resume: * is finished, and its model has no finger*"])
    assert project.metrics()["correct"] == 0


def test_damage_is_reported_before_anything_is_replaced(project):
    project.run()
    folder = project.run_folder
    before = (folder / "metrics.json").read_text()
    lines = (folder / "records.jsonl").read_text().splitlines()
    lines[3] = lines[3][:-9]
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")
    result = project.run("--llm-resume")
    assert result.ret == 4
    assert "line 4: damaged record" in result.stderr.str()
    assert (folder / "metrics.json").read_text() == before


def test_a_foreign_folder_is_ignored(project):
    project.run()
    foreign = project.path / "runs" / "99999999-future"
    foreign.mkdir()
    (foreign / "run.json").write_text('{"format": 99}')
    requested = len(project.requested)
    assert project.run("--llm-resume").ret == 0
    assert len(project.requested) == requested


@pytest.mark.parametrize("results", ["3", "[{}]", "null"])
def test_a_manifest_of_nonsense(project, results):
    project.run()
    file = project.run_folder / "run.json"
    file.write_text(json.dumps({"format": 1, "models": [], "results": json.loads(results)}))
    for result in (
        project.run("--llm-resume"),
        project.pytester.run("llmeval", "show", project.run_folder),
    ):
        assert result.ret == 4
        assert len([line for line in result.errlines if line]) == 1


def test_a_reordered_run_is_resumed(project):
    project.run()
    with (project.path / "conftest.py").open("a") as file:
        file.write("\n\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n")
    requested = len(project.requested)
    result = project.run("--llm-resume")
    assert result.ret == 0
    assert len(project.requested) == requested
