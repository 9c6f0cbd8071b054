"""Sandboxes on the nodes of a cluster give the verdicts of a sandbox on this machine."""

from __future__ import annotations

import json
from socket import gethostname
from types import SimpleNamespace

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.evaluation.node_jobs import RESOURCE
from pytest_llmeval.evaluation.node_jobs import NodeJobs
from pytest_llmeval.evaluation.node_jobs import places_of
from pytest_llmeval.sandbox import Program
from support.code_benchmark import BENCHMARK
from support.opened_sandbox import opened
from support.replicated_project import metrics
from support.replicated_project import newest
from support.replicated_project import run

SETTINGS = SimpleNamespace(sandbox="docker", trials={})
SOURCES = {
    "right": "def add(a, b):\n    return a + b\n",
    "wrong": "def add(a, b):\n    return a - b\n",
    "endless": "def add(a, b):\n    while True: pass\n",
    "exit": "import os\nos._exit(0)\n",
    "syntax": "def add(a, b:\n",
}
PROGRAMS = [
    Program(f"{name}-{number}", source, f"assert add({number}, 1) == {number + 1}", timeout=1.0)
    for number in range(2)
    for name, source in SOURCES.items()
]


@pytest.fixture(scope="module")
def here():
    """Verdicts of a sandbox on this machine."""
    with opened("docker", workers=2) as sandbox:
        return {result.id: result.status for result in sandbox.run(PROGRAMS)}


def test_the_verdicts_are_those_of_one_machine(here, cluster):
    assert places_of(cluster) == 2
    jobs = NodeJobs(cluster, "program", SETTINGS)
    try:
        right = [program for program in PROGRAMS if program.id.startswith("right")]
        assert {result.status for result in jobs.calibrate(right)} == {"passed"}
        results = list(jobs.run(PROGRAMS))
        assert {result.id: result.status for result in results} == here
        assert {result.node for result in results} == {gethostname()}
    finally:
        jobs.close()
    assert set(here.values()) >= {"passed", "failed", "timeout"}


def test_a_lost_place_costs_no_verdict(here, cluster):
    jobs = NodeJobs(cluster, "program", SETTINGS)
    try:
        results = {}
        for result in jobs.run(PROGRAMS):
            if not results:
                cluster.connect().kill(jobs._places[0])
            results[result.id] = result.status
        assert results == here
    finally:
        jobs.close()


CODER = """
import pytest
from pytest_llmeval import Response
from pytest_llmeval.models.ray import pooled

WRONG = ["    return a", "    import os; os._exit(0)", "    return ("]

class Coder:
    name = "coder"
    fingerprint = "weights-1"
    asks = frozenset({"text"})

    def answer(self, requests):
        for request in requests:
            number = int(request.id[-2:])
            text = WRONG[number // 2 % 3] if number % 2 else f"    return a + {number}"
            yield Response(request.id, text=text)

@pytest.fixture(scope="session")
def model():
    return pooled(Coder)
"""


@pytest.mark.usefixtures("here")
def test_a_run_with_sandboxes_on_nodes_equals_one_without(tmp_path, nodes):
    (tmp_path / "test_bench.py").write_text(BENCHMARK.replace("ITEMS = 2", "ITEMS = 6"))
    (tmp_path / "conftest.py").write_text(CODER)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    project = SimpleNamespace(path=tmp_path)
    assert run(project).returncode == 0
    alone = metrics(project)
    options = ("--llm-ray", nodes.address, "--llm-replicas", "2", "--llm-gpus-per-replica", "0")
    on_nodes = run(project, *options)
    assert on_nodes.returncode == 0, on_nodes.stdout + on_nodes.stderr
    assert metrics(project) == alone
    lines = (newest(project) / "records.jsonl").read_text().splitlines()
    records = {record["item"]: record for record in map(json.loads, lines)}
    assert {record.get("node") for record in records.values()} == {gethostname()}


def test_a_node_without_docker_is_named(nodes, cluster, here, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/docker.sock")
    node = nodes.add_node(num_cpus=0, resources={RESOURCE: 1}, object_store_memory=80_000_000)
    monkeypatch.undo()
    try:
        nodes.wait_for_nodes()
        with pytest.raises(ConfigError, match=f"has the resource {RESOURCE}, but no sandbox: "):
            NodeJobs(cluster, "program", SETTINGS)
    finally:
        nodes.remove_node(node, allow_graceful=False)
