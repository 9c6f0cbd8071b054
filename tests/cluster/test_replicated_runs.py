"""Sessions of pytest with replicas: equal to those without, also after an interruption."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.interrupting import kill
from support.interrupting import start as begin
from support.interrupting import wait_until
from support.interrupting import written
from support.replicated_project import metrics
from support.replicated_project import newest
from support.replicated_project import run

BENCHMARK = """
import pytest
from pytest_llmeval import Benchmark, Dataset, Item, Protocol, Template

def load(data_dir):
    return Dataset(tuple(
        Item(f"{subject}-{row:04d}", subject, f"{subject} question {row}?", 1,
             ("one", "two", "three", "four"))
        for row in range(50) for subject in ("art", "law", "zoo")
    ))

TEMPLATE = Template(
    name="plain",
    description=lambda subject: f"On {subject}.",
    question=lambda item: item.question,
    choices=lambda item: ("A", "B", "C", "D"),
)

@pytest.mark.llmeval(Benchmark("bench", load, (Protocol("plain", TEMPLATE, scorer="letter"),)))
def test_bench(answer):
    assert answer.correct
"""

MODEL = """
import hashlib
import os
import time

import pytest

from pytest_llmeval import Response
from pytest_llmeval.models.ray import pooled

class Hashing:
    name = "hashing"
    fingerprint = "weights-1"
    asks = frozenset({"choices"})

    def __init__(self):
        with open("loads.txt", "a") as file:
            file.write(f"{os.getpid()}\\n")

    def answer(self, requests):
        for request in requests:
            time.sleep(0.1 if os.path.exists("slow") else 0.005)
            digest = hashlib.sha256(request.prompt.text.encode()).digest()
            yield Response(request.id, logprobs=[-byte / 64 for byte in digest[:4]], seconds=0.1)

def make():
    return Hashing()

@pytest.fixture(scope="session")
def model():
    return pooled(make)
"""


def written_project(folder: Path) -> SimpleNamespace:
    (folder / "test_bench.py").write_text(BENCHMARK)
    (folder / "conftest.py").write_text(MODEL)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return SimpleNamespace(path=folder)


@pytest.fixture
def project(tmp_path: Path) -> SimpleNamespace:
    return written_project(tmp_path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Metrics and records of an undisturbed run without Ray."""
    made = written_project(tmp_path_factory.mktemp("alone"))
    assert run(made).returncode == 0
    assert len(processes(made)) == 1
    return SimpleNamespace(metrics=metrics(made), records=records(made))


def records(project) -> dict[str, dict]:
    lines = (newest(project) / "records.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len({row["item"] for row in rows}) == len(rows)
    return {row["item"]: row for row in rows}


def answered(project) -> list[dict]:
    """The answers of the newest run, each once."""
    lines = (newest(project) / "records.jsonl").read_text().splitlines()
    rows = {row["item"]: row for row in map(json.loads, lines)}
    return [row for row in rows.values() if row.get("logprobs")]


def processes(project) -> list[int]:
    return [int(line) for line in (project.path / "loads.txt").read_text().split()]


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_on_two_nodes_equals_one_without(project, nodes, alone):
    on_ray = run(
        project, "--llm-ray", nodes.address, "--llm-replicas", "2", "--llm-gpus-per-replica", "0"
    )
    assert on_ray.returncode == 0, on_ray.stdout + on_ray.stderr
    assert (metrics(project), records(project)) == (alone.metrics, alone.records)
    assert "(raylet)" not in on_ray.stdout + on_ray.stderr
    assert f"hashing ran as 2 replicas on Ray ({nodes.address})" in " ".join(on_ray.stdout.split())
    manifest = json.loads((newest(project) / "run.json").read_text())
    assert manifest["replicas"]["hashing"]["replicas"] == 2
    assert len(processes(project)) == 2


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_a_run_that_ends_early_is_completed(project, nodes, how, alone):
    (project.path / "slow").touch()
    options = ("--llm-ray", nodes.address, "--llm-replicas", "2", "--llm-gpus-per-replica", "0")
    process = begin(project, *options)
    wait_until(project, lambda: written(project) >= 20)
    if how == "killed":
        kill(process)
    else:
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 2
        assert "Traceback" not in (project.path / "killed.txt").read_text()
    assert 20 <= len(answered(project)) < 150
    # No replica outlives the driver.
    wait_until(project, lambda: not any(map(exists, processes(project))))
    (project.path / "slow").unlink()
    # An interrupted run goes on without Ray, a killed one with it.
    again = run(project, "--llm-resume", *(options if how == "killed" else ()))
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(list((project.path / "runs").glob("*/"))) == 1
    assert metrics(project) == alone.metrics
