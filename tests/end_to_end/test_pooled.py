"""Models for replicas in a session without Ray, and ``--llm-ray`` where it has no effect."""

from __future__ import annotations

import pytest

import pytest_llmeval.models.ray.cluster
from support.run_checks import check_consistent


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch):
    """Nothing in these sessions needs a cluster."""

    def fail(_cluster: object) -> None:
        raise AssertionError("a session without replicas connected to Ray")

    monkeypatch.setattr(pytest_llmeval.models.ray.cluster.Cluster, "connect", fail)


def notes(result: pytest.RunResult) -> str:
    return " ".join(result.stdout.str().split())


def test_a_factory_is_called_once_without_ray(project):
    file = project.path / "conftest.py"
    text = file.read_text()
    head, _, _ = text.partition("@pytest.fixture")
    file.write_text(
        "from pytest_llmeval.models.ray import pooled\n"
        + head
        + "def make():\n    return Scripted()\n\n"
        + '@pytest.fixture(scope="session")\ndef model():\n    return pooled(make)\n'
    )
    assert project.run().ret == 0
    assert len((project.path / "loads.txt").read_text().splitlines()) == 1
    assert project.metrics()["answered"] == 9
    check_consistent(project)
    assert "replicas" not in project.document("run.json")


def test_a_fixture_that_returns_a_model_has_no_replicas(project):
    result = project.run("--llm-ray", "local")
    assert result.ret == 0
    assert "--llm-ray: no effect on scripted: to have replicas" in notes(result)


def test_recorded_answers_have_no_replicas(project):
    (project.path / "conftest.py").unlink()
    (project.path / "answers.jsonl").write_text('{"item": "art-0000", "text": "B"}\n')
    result = project.run("--llm-model=replay:answers.jsonl", "--llm-ray", "local")
    assert "--llm-ray: no replicas, because no model of this run has weights" in notes(result)
