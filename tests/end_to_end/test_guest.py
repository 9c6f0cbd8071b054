"""In a project of ordinary tests the plugin changes nothing without an option."""

from __future__ import annotations

import pytest

UNIT = """
import pytest

def test_mine():
    pass

def test_broken():
    assert False
"""
MISSING = """
import pytest
from test_bench import TEMPLATE
from pytest_llmeval import Benchmark, Protocol
from pytest_llmeval.sources import jsonl

GONE = Benchmark("gone", jsonl("gone.jsonl"), (Protocol("plain", TEMPLATE, scorer="letter"),))

@pytest.mark.llmeval(GONE)
def test_gone(answer):
    assert answer.correct
"""
THRESHOLDS = "[benchmarks.bench]\nrequired = true\naccuracy = 0.5\n"


@pytest.fixture
def house(project):
    """Ordinary tests, one of which fails, beside the common benchmark without a model."""
    (project.path / "conftest.py").unlink()
    (project.path / "test_unit.py").write_text(UNIT)
    (project.path / "answers.jsonl").write_text('{"item": "art-0000", "text": "B"}\n')
    project.thresholds(THRESHOLDS)
    return project


@pytest.mark.parametrize("missing", [False, True], ids=["data", "no data"])
@pytest.mark.parametrize(
    ("arguments", "skipped"),
    [
        ((), True),
        (("-n", "2"), True),
        (("-m", "not llmeval"), False),
        (("-k", "mine or broken"), False),
        (("test_unit.py",), False),
        (("--llm-skip", "--llm-model=replay:answers.jsonl"), True),
        (("-m", "not llmeval", "-o", "llm_model=replay:answers.jsonl"), False),
    ],
)
def test_ordinary_tests_have_the_result_that_they_have_alone(house, arguments, skipped, missing):
    if missing:
        (house.path / "test_missing.py").write_text(MISSING)
    result = house.run(*arguments, "-rs")
    assert result.ret == 1
    marked = (2 if missing else 1) if skipped else 0
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1)
    assert outcomes.get("skipped", 0) == marked
    assert "errors" not in outcomes
    result.stdout.no_fnmatch_line("*= llmeval =*")
    if skipped:
        why = "--llm-skip" if "--llm-skip" in arguments else "no model to evaluate: give --llm-mod*"
        result.stdout.fnmatch_lines([f"SKIPPED * {why}"])
    assert not (house.path / "runs").exists()


def test_a_failure_of_an_ordinary_test_is_run_again_alone(house):
    quick = ("-p", "no:hypothesispytest", "-o", "llm_model=replay:answers.jsonl")
    house.pytester.runpytest_inprocess(*quick, "test_unit.py")
    again = house.pytester.runpytest_inprocess(*quick, "--lf")
    again.assert_outcomes(failed=1)
    assert not (house.path / "runs").exists()


def test_only_tests_without_a_model_are_no_success(house):
    for arguments in (("test_bench.py",), ("-m", "llmeval"), ("-n", "2", "test_bench.py")):
        result = house.run(*arguments)
        assert result.ret == 4
        assert "no model to evaluate: give --llm-model SPEC" in result.stderr.str()
    skipped = house.run("test_bench.py", "--llm-skip")
    assert skipped.ret == 0
    skipped.assert_outcomes(skipped=1)


def test_missing_data_is_an_error_of_its_file(house):
    (house.path / "test_missing.py").write_text(MISSING)
    result = house.run("-o", "llm_model=replay:answers.jsonl", "-k", "mine or gone")
    assert result.ret == 1
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR test_missing.py::test_gone - *gone.jsonl*"])
    alone = house.run("-o", "llm_model=replay:answers.jsonl", "test_missing.py")
    assert alone.ret == 4
    assert "gone.jsonl" in alone.stderr.str()


def test_collecting_lists_what_can_be_collected(house):
    (house.path / "test_missing.py").write_text(MISSING)
    listed = house.run("--collect-only", "-q")
    assert listed.ret == 0
    listed.stdout.fnmatch_lines(["test_missing.py::test_gone", "test_unit.py::test_mine"])
    requested = house.run("--collect-only", "-q", "--llm-model=replay:answers.jsonl")
    assert requested.ret == 2
    requested.stdout.fnmatch_lines(["*ERROR collecting test_missing.py*", "*gone.jsonl*"])


def test_a_run_without_any_answer_leaves_no_folder(project):
    project.model(
        "import pytest\n\n@pytest.fixture(scope='session')\ndef model():\n"
        "    raise RuntimeError('CUDA out of memory')\n"
    )
    for arguments in ((), ("-n", "2")):
        result = project.run(*arguments)
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*no answer was received: the run folder was removed*"])
        assert list((project.path / "runs").glob("*/")) == []


def test_git_ignores_runs_but_no_folder_that_was_there(project):
    project.run()
    assert (project.path / "runs" / ".gitignore").read_text().endswith("\n*\n")
    (project.path / "there").mkdir()
    project.run("--llm-runs=there")
    assert not (project.path / "there" / ".gitignore").exists()


def test_a_data_folder_that_pytest_takes_for_a_test_path_is_reported(project):
    """Without an ini file pytest derives its rootdir from all paths, option values included."""
    (project.path / "answers.jsonl").write_text('{"item": "art-0000", "text": "B"}\n')
    other = project.path.parent / "other-data"
    other.mkdir()
    moved = project.run("--llm-data", str(other), "test_bench.py")
    moved.stdout.fnmatch_lines(
        [f"*rootdir is {project.path.parent}, because pytest takes the value of --llm-data*"]
    )
    fixed = project.run(f"--llm-data={other}", "test_bench.py")
    fixed.stdout.no_fnmatch_line("*because pytest takes*")
