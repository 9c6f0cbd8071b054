"""Commands take the newest run by default, and show what its session did."""

from __future__ import annotations

import json
import subprocess

import pytest

from pytest_llmeval import cli
from pytest_llmeval.core import ConfigError
from pytest_llmeval.runs.run import newest_run
from pytest_llmeval.runs.run import run_folder

GATES = """
[benchmarks.bench]
accuracy = 0.7
max_errors = 0
[benchmarks.bench.regression]
max_drop = 0.0
"""


def llmeval(capsys, *arguments):
    capsys.readouterr()
    code = cli.main([*map(str, arguments)])
    return code, *capsys.readouterr()


def stored(root, name, started):
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"started": started}))
    return folder


def test_the_newest_run_is_the_one_that_was_started_last(tmp_path):
    stored(tmp_path, "z", "2026-03-01T10:00:00+02:00")
    last = stored(tmp_path, "a", "2026-03-01T09:00:00+00:00")
    stored(tmp_path, "y", "no time")
    stored(tmp_path, "x", None)
    assert newest_run(tmp_path) == last
    again = stored(tmp_path, "a-2", "2026-03-01T09:00:00+00:00")
    assert newest_run(tmp_path) == again


def test_without_a_run_there_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"^no run in .*/: name the folder of one$"):
        newest_run(tmp_path)


def test_a_folder_of_that_name_is_meant_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    newest = stored(tmp_path / "runs", "a", "2026-03-01T09:00:00+00:00")
    assert run_folder("latest").resolve() == newest
    (tmp_path / "latest").mkdir()
    assert str(run_folder("latest")) == "latest"


@pytest.fixture
def two_runs(project):
    """A green run, and a newer one that lost an item of law."""
    project.run("--llm-baseline=none")
    (first,) = (project.path / "runs").glob("*/")
    project.model(
        respond="""
        def respond(self, request):
            wrong = request.id.endswith("-0000") or request.id == "law-0001"
            scores = (-1.0, -2.0, -3.0, -4.0) if wrong else (-2.0, -1.0, -3.0, -4.0)
            return Response(request.id, logprobs=scores, seconds=0.01)
        """
    )
    project.thresholds(GATES)
    project.run(f"--llm-baseline={first}")
    return first, project.run_folder


def test_show_has_verdict_model_gates_and_comparison(two_runs, capsys):
    first, newest = two_runs
    code, output, _ = llmeval(capsys, "show")
    assert code == 0
    lines = output.splitlines()
    assert lines[0] == "FAIL: 1 of 3 gates failed, 1 passed with a warning, 1 passed"
    assert lines[1].startswith("model scripted (a custom model, from the project's model fixture)")
    assert any(line.startswith("FAIL bench::accuracy: 0.5556 ") for line in lines)
    assert any(line.startswith("WARN bench::regression::max_drop: 0.1111 ") for line in lines)
    assert any(line.startswith("PASS bench::max_errors: 0 ") for line in lines)
    assert f"bench[letter]: runs/{first.name} (scripted) → runs/{newest.name} (scripted)" in lines
    assert "newly wrong: law-0001" in lines
    assert lines[-1] == f"run: runs/{newest.name}"
    assert llmeval(capsys, "show", "latest")[1] == output
    assert llmeval(capsys, "show", newest)[1] == output


def test_every_command_takes_the_newest(two_runs, capsys):
    _, newest = two_runs
    assert llmeval(capsys, "gate", "--baseline=none")[0] == 1
    assert llmeval(capsys, "gate", "thresholds.toml")[0] == 1
    for command in (("report", "--format=markdown"), ("export",)):
        code, output, _ = llmeval(capsys, *command)
        assert (code, output.split()[1].rpartition("/")[0]) == (0, f"runs/{newest.name}")
    assert llmeval(capsys, "history")[0] == 0
    assert "FAIL bench::accuracy" not in llmeval(capsys, "show", two_runs[0])[1]


def test_a_comparison_with_the_newest(two_runs, capsys):
    first, newest = two_runs
    code, output, _ = llmeval(capsys, "compare", first)
    assert code == 0
    assert f"→ runs/{newest.name} (scripted)" in output
    code, _, errors = llmeval(capsys, "compare", "latest")
    assert code == 4
    assert errors == f"llmeval: runs/{newest.name} would be compared with itself\n"


def test_a_red_run_becomes_a_baseline_with_a_warning(two_runs, capsys):
    code, output, _ = llmeval(capsys, "baseline", "release")
    assert code == 0
    saved, warning = output.splitlines()
    assert saved.startswith("saved baselines/release.json (")
    assert warning == (
        "warning: this run did not pass: 1 of 3 gates failed, 1 passed with a warning, 1 passed"
    )
    code, output, _ = llmeval(capsys, "baseline", two_runs[0], "green")
    assert output.count("\n") == 1


def test_errors_and_interruptions_are_warned_of(project, capsys):
    project.model(
        respond="""
        def respond(self, request):
            return Response(request.id, error="on fire")
        """
    )
    project.run("--maxfail=4")
    _, output, _ = llmeval(capsys, "baseline", "release")
    red, errors, unfinished = output.splitlines()[1:]
    assert red.startswith("warning: this run did not pass: No gate was judged; 4 items failed")
    assert errors == "warning: 4 answers are errors, which no later run is compared with"
    assert unfinished == (
        "warning: the run is not finished (interrupted): the same command with --llm-resume"
        " continues it"
    )
    shown = llmeval(capsys, "show")[1].splitlines()
    assert "ERROR 4 answers, such as art-0000: on fire" in shown
    assert unfinished.removeprefix("warning: ") in shown


def test_a_session_that_is_cut_short_names_the_next_step(project):
    project.model(
        respond="""
        def respond(self, request):
            return Response(request.id, error="on fire")
        """
    )
    result = project.run("-x")
    result.stdout.fnmatch_lines(["the run is not finished *: the same command with --llm-resume *"])


def test_a_repository_without_a_commit_has_none(project):
    subprocess.run(["git", "init", "-q", "."], cwd=project.path, check=True)
    project.run()
    assert project.document("run.json")["git"] is None
