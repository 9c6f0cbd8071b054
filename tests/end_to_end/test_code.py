"""Code end to end: programs run in a sandbox beside the answering, each distinct one once."""

from __future__ import annotations

import json

import pytest

from support.code_benchmark import BENCHMARK

# Right for even items; for odd ones each sample but the third is wrong in its own way.
MODEL = """
import pytest
from pytest_llmeval import Response

WRONG = ["    return a", "    import os; os._exit(0)", None, "    while True: pass", "    return ("]

class Coder:
    name = "coder"
    fingerprint = "weights-1"
    asks = frozenset({"text"})

    def answer(self, requests):
        for request in requests:
            with open("asked.txt", "a") as file:
                file.write(f"main {request.id}\\n")
            number = int(request.id[-2:])
            text = WRONG[request.sample % 5] if number % 2 else None
            yield Response(request.id, text=text or f"    return a + {number}",
                           sample=request.sample)

@pytest.fixture(scope="session")
def model():
    return Coder()
"""


@pytest.fixture
def code(project):
    (project.path / "test_bench.py").write_text(BENCHMARK)
    (project.path / "conftest.py").write_text(MODEL)
    return project


def records(project) -> list[dict]:
    lines = (project.run_folder / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def final(project) -> dict[tuple[str, str, int], dict]:
    """The last record about every scorer, item and sample."""
    return {
        (record["scorer"], record["item"], record.get("sample", 0)): record
        for record in records(project)
    }


def results(project) -> dict[str, dict]:
    return {result["scorer"]: result for result in project.document("metrics.json")["results"]}


@pytest.mark.usefixtures("docker_sandbox")
@pytest.mark.parametrize("workers", ["0", "2"])
def test_programs_decide(code, workers):
    code.thresholds('[benchmarks.sums.scorers.execution]\n"pass@1" = 0.5\n"pass@5" = 1.0')
    result = code.run("--llm-samples=5", "-n", workers)
    assert result.ret == 0
    for metrics in results(code).values():
        assert metrics["pass@k"]["1"]["value"] == pytest.approx((1 + 0.2) / 2)
        assert metrics["pass@k"]["5"]["value"] == 1.0
        assert metrics["errors"] == 0
    answers = {
        sample: record["answer"]
        for (scorer, item, sample), record in final(code).items()
        if (scorer, item) == ("execution_raw", "add-01")
    }
    assert answers[0].startswith("failed: AssertionError")
    assert "exited" in answers[1]
    assert answers[2] == "passed"
    assert answers[3].startswith("timeout")
    assert "SyntaxError" in answers[4]


@pytest.mark.usefixtures("docker_sandbox")
def test_a_resumed_run_runs_the_programs_again_without_requests(code):
    assert code.run("--llm-samples=2").ret == 0
    before, requested = results(code), len(code.requested)
    # As a run leaves it that is killed while programs run: responses without a verdict.
    file = code.run_folder / "records.jsonl"
    left = [
        record for record in records(code) if record.get("error") == "its program has not been run"
    ]
    assert len(left) == 4
    file.write_text("".join(json.dumps(record) + "\n" for record in left))
    assert code.run("--llm-samples=2", "--llm-resume").ret == 0
    assert len(code.requested) == requested
    assert results(code) == before


@pytest.mark.usefixtures("docker_sandbox")
def test_a_sandbox_that_fails_right_solutions_measures_nothing(code):
    text = BENCHMARK.replace('"    return a + %d', '"    return a - 1 + %d')
    (code.path / "test_bench.py").write_text(text)
    result = code.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the sandbox fails 2 of 2 reference solutions*"])


@pytest.mark.usefixtures("docker_sandbox")
def test_the_sandbox_is_part_of_the_protocol(code):
    assert code.run().ret == 0
    (variant,) = code.document("run.json")["results"][0]["ways"]
    assert variant["protocol"]["sandbox"].startswith("docker")


def test_a_missing_sandbox_is_reported_in_one_line(code, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    result = code.run()
    assert result.ret == 4
    (line,) = [line for line in result.errlines if line]
    assert "test_bench.py::test_sums runs code that models wrote, and" in line
    assert not (code.path / "runs").exists()
    # What does not need it goes on.
    (code.path / "test_other.py").write_text("def test_other(): pass")
    assert code.run("-k", "other").ret == 0


def test_nothing_runs_on_the_host_unless_allowed(code):
    result = code.run("--llm-sandbox=none")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--llm-i-trust-this-code on the command line*"])
    (code.path / "pytest.ini").write_text("[pytest]\nllm_i_trust_this_code = true\n")
    assert code.run("--llm-sandbox=none").ret == 4
    assert code.requested == []
    assert code.run("--llm-sandbox=none", "--llm-i-trust-this-code").ret == 0
    assert results(code)["execution"]["correct"] == 1
