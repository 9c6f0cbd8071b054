"""What ``llmeval init`` writes runs as written, red and green, and overwrites nothing."""

from __future__ import annotations

import shlex

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.scaffold import COMMAND
from pytest_llmeval.scaffold import FILES

# Stands in for the demo model, which takes a minute: `knows` is how many items it answers rightly.
MODEL = """
import pytest
from pytest_llmeval import Response
from pytest_llmeval.catalog import starter

GOLD = {{item.id: item.gold for item in starter().source(None).items[:{knows}]}}

class Model:
    name, fingerprint, asks = "scripted", "weights", frozenset({{"choices"}})

    def answer(self, requests):
        for request in requests:
            best = GOLD.get(request.id, -1)
            scores = [-1.0 if n == best else -2.0 - n for n in range(len(request.choices))]
            yield Response(request.id, logprobs=tuple(scores))

@pytest.fixture(scope="session")
def model():
    return Model()
"""


@pytest.fixture
def repository(pytester: pytest.Pytester, capsys):
    assert main(["init", str(pytester.path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        *(f"wrote {pytester.path / name}" for name in FILES),
        f"next: cd {shlex.quote(str(pytester.path))} && {COMMAND}",
    ]
    return pytester


@pytest.mark.parametrize(("knows", "verdict"), [(60, 1), (360, 0)])
def test_the_command_of_the_workflow_runs_as_written(repository, knows, verdict):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads workflows")
    (repository.path / "conftest.py").write_text(MODEL.format(knows=knows))
    workflow = yaml.safe_load((repository.path / ".github/workflows/llmeval.yml").read_text())
    (job,) = workflow["jobs"].values()
    (step,) = [step for step in job["steps"] if step.get("name") == "evaluate"]
    words = shlex.split(step["run"])
    assert words[0] == "pytest"
    assert step["run"].startswith(COMMAND)
    result = repository.runpytest_inprocess(*words[1:], "-p", "no:hypothesispytest")
    assert result.ret == verdict
    status = "FAIL" if verdict else "PASS"
    result.stdout.fnmatch_lines([f"{status} starter::accuracy*", "PASS starter::max_errors*"])
    assert (repository.path / "junit.xml").exists()


def test_every_file_of_the_workflow_is_one_that_is_made(repository):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads workflows")
    workflow = yaml.safe_load(FILES[".github/workflows/llmeval.yml"])
    (job,) = workflow["jobs"].values()
    assert {step.get("uses", "").partition("@")[0] for step in job["steps"]} == {
        "",
        "actions/checkout",
        "actions/setup-python",
        "actions/upload-artifact",
    }


def test_nothing_is_overwritten(repository, capsys):
    for name in FILES:
        (repository.path / name).write_text("mine")
    (repository.path / "thresholds.toml").unlink()
    assert main(["init", str(repository.path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line[:5] for line in out] == ["wrote", "kept ", "kept ", "next:"]
    assert (repository.path / "benchmarks/test_starter.py").read_text() == "mine"
    assert main(["init", str(repository.path)]) == 0
    assert "next:" not in capsys.readouterr().out


def test_what_is_in_the_way_is_told(pytester, capsys):
    (pytester.path / "benchmarks").write_text("a file")
    assert main(["init", str(pytester.path)]) == 4
    (pytester.path / "benchmarks").unlink()
    (pytester.path / "benchmarks" / "test_starter.py").mkdir(parents=True)
    assert main(["init", str(pytester.path)]) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("llmeval: cannot write ") for line in lines)
