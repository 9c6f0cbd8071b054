"""A stored run has the results of its session, for any models, samples and workers."""

from __future__ import annotations

import json

import pytest

FUNCTION = """
import pytest

def system(prompt):
    {body}

@pytest.fixture(scope="session")
def model():
    return system
"""


def checked_result(project) -> dict:
    """The newest run's results, after checking that it reads back as the session reported it."""
    folder = project.run_folder
    value = json.loads((folder / "metrics.json").read_text())
    from pytest_llmeval.runs import load_run

    again = {"format": value["format"], **load_run(folder).metrics()}
    assert json.loads(json.dumps(again)) == value
    (result,) = value["results"]
    return result


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_text_model_that_always_fails(project, workers):
    project.model(FUNCTION.format(body="raise OSError('down')"))
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    result = project.run("--llm-samples=3", "-n", workers)
    assert result.ret == 1
    metrics = checked_result(project)
    assert (metrics["scorer"], metrics["samples"], metrics["errors"]) == ("choice", 3, 27)
    judged = project.pytester.run("llmeval", "gate", project.run_folder)
    assert judged.ret == 1


@pytest.mark.parametrize("samples", [1, 3])
def test_a_text_model_that_kills_its_worker(project, samples):
    """The lost item's errors are as many as its answers would have been."""
    project.model(
        FUNCTION.format(
            body="import os; return 'B' if 'law question 1' not in prompt else os._exit(1)"
        )
    )
    project.thresholds("[benchmarks.bench]\nmax_errors = 50\n")
    result = project.run("-n", "2", f"--llm-samples={samples}")
    assert result.ret in (0, 1)
    metrics = checked_result(project)
    assert metrics["errors"] > 0
    assert metrics["errors"] % samples == 0
    assert metrics["missing"] == 0
    judged = project.pytester.run("llmeval", "gate", project.run_folder)
    assert judged.ret == result.ret


def test_a_body_that_kills_its_worker_after_the_answer(project):
    project.model(FUNCTION.format(body="return 'B'"))
    test = project.path / "test_bench.py"
    body = "import os, pathlib\n    if answer.item.id == 'law-0001' and not pathlib.Path('ok').exists(): os._exit(1)\n    assert answer.correct"
    test.write_text(test.read_text().replace("assert answer.correct", body))
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    assert project.run("-n", "2").ret == 1
    assert checked_result(project)["errors"] == 1
    assert project.pytester.run("llmeval", "gate", project.run_folder).ret == 1


def test_a_resumed_run_of_an_own_model_keeps_no_stale_error(project):
    test = project.path / "test_bench.py"
    body = "import os, pathlib\n    if answer.item.id == 'law-0001' and not pathlib.Path('ok').exists(): os._exit(1)\n    assert answer.correct"
    test.write_text(test.read_text().replace("assert answer.correct", body))
    project.thresholds("[benchmarks.bench]\naccuracy = 0\n")
    assert project.run("-n", "2").ret == 1
    (project.path / "ok").touch()
    assert project.run("-n", "2", "--llm-resume").ret == 0
    metrics = checked_result(project)
    assert (metrics["errors"], metrics["answered"]) == (0, 9)
    assert project.pytester.run("llmeval", "gate", project.run_folder).ret == 0


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_empty_shard_is_a_shard(project, workers):
    for part in range(1, 11):
        result = project.run(f"--llm-shard={part}/10", "-n", workers)
        assert result.ret == 0, part
    shards = sorted((project.path / "runs").glob("*/"))
    assert len(shards) == 10
    assert project.pytester.run("llmeval", "merge", *shards, "--out", "whole").ret == 0
    assert project.run("--llm-runs=one").ret == 0
    (unsharded,) = (project.path / "one").glob("*/")
    whole = project.path / "whole" / "metrics.json"
    assert whole.read_bytes() == (unsharded / "metrics.json").read_bytes()


def test_a_shard_with_deselected_items_is_a_gap(project):
    project.run("--llm-shard=1/2", "-k", "not art-0000")
    project.run("--llm-shard=2/2")
    shards = sorted((project.path / "runs").glob("*/"))
    merged = project.pytester.run("llmeval", "merge", *shards, "--out", "whole")
    assert merged.ret == 4
    merged.stderr.fnmatch_lines(["llmeval: gap: *left out 1 of the 4 items*"])


def test_resume_does_not_take_a_shard_for_a_selection(project):
    project.benchmark(art=3, law=9)
    project.run("-k", "art")
    project.run("--llm-shard=1/4", "--llm-resume")
    assert len(list((project.path / "runs").glob("*/"))) == 2
    assert project.document("run.json")["shard"] == [1, 4]


def test_errors_turn_a_stored_run_red_as_they_do_a_session(project):
    project.model(
        respond="""
        def respond(self, request):
            if request.id == "law-0001":
                return Response(request.id, error="down")
            return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
        """
    )
    for gates, code in (
        ("[benchmarks.bench]\nerror_rate = 0.5\n", 1),
        ("[benchmarks.bench.subjects.art]\naccuracy = 0.5\n", 1),
        ("[benchmarks.bench.subjects.law]\nmax_errors = 1\n", 0),
        ("[benchmarks.bench]\nmax_errors = 1\n", 0),
    ):
        project.thresholds(gates)
        assert project.run().ret == code, gates
        assert project.pytester.run("llmeval", "gate", project.run_folder).ret == code, gates


def test_an_own_model_whose_name_differs_by_worker_is_one_model(project):
    text = (project.path / "conftest.py").read_text()
    (project.path / "conftest.py").write_text(
        text.replace('name = "scripted"', 'name = f"scripted-{os.getpid()}"')
    )
    assert project.run("-n", "2").ret == 0
    assert checked_result(project)["answered"] == 9


def test_a_letter_without_samples_needs_no_answer_fixture(project):
    test = project.path / "test_bench.py"
    test.write_text(
        test.read_text().replace(
            "test_bench(answer):\n    assert answer.correct", "test_bench(item, model): pass"
        )
    )
    assert project.run("--llm-samples=5").ret == 0


def test_greedy_samples_are_warned_about(project):
    project.model(FUNCTION.format(body="return 'B'"))
    result = project.run("--llm-samples=2")
    result.stdout.fnmatch_lines(["protocol 'plain+generate' of bench is greedy*"])


@pytest.mark.parametrize("option", ["samples", "seed", "shots", "limit", "shard", "baseline"])
def test_an_empty_value_is_the_default(project, option):
    assert project.run(f"--llm-{option}=").ret == 0


def test_a_baseline_in_an_ini_file_starts_at_the_rootdir(project):
    project.run("--llm-runs=old")
    (baseline,) = (project.path / "old").glob("*/")
    (project.path / "pytest.ini").write_text(f"[pytest]\nllm_baseline = old/{baseline.name}\n")
    (project.path / "sub").mkdir()
    (project.path / "sub" / "test_bench.py").write_text(
        (project.path / "test_bench.py").read_text()
    )
    project.pytester.chdir()
    import os

    os.chdir(project.path / "sub")
    result = project.run("test_bench.py", "--llm-runs=runs")
    assert result.ret == 0


def test_a_table_for_a_misspelt_model(project):
    (project.path / "conftest.py").unlink()
    (project.path / "answers.jsonl").write_text('{"item": "art-0000", "text": "B"}\n')
    project.thresholds('[models."replay:answer.jsonl".benchmarks.bench]\naccuracy = 0.99\n')
    result = project.run("--llm-model=replay:answers.jsonl", "--llm-allow-undecided")
    assert result.ret == 4
    assert "did you mean 'replay:answers.jsonl'?" in result.stderr.str()


@pytest.mark.parametrize("workers", ["0", "2"])
def test_choices_encoded_apart_are_counted_on_disk_and_in_reports(project, workers):
    project.model(
        respond="""
        def respond(self, request):
            scores = (-1.0, -2.0, -3.0, -4.0)
            apart = 2 if "law" in request.id else 0
            return Response(request.id, logprobs=scores, encoded_apart=apart)
        """
    )
    result = project.run("-n", workers, "--llm-report", "html")
    result.stdout.fnmatch_lines(["*3 items were scored with choices encoded separately*"])
    assert checked_result(project)["encoded_apart"] == 3
    assert "3 items were scored with choices" in (project.run_folder / "report.html").read_text()
