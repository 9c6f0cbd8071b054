"""Summary and annotations of a job of GitHub Actions, and the files of --llm-report."""

from __future__ import annotations

import json

import pytest

from pytest_llmeval.cli import main

RED = "[benchmarks.bench]\naccuracy = 0.9\n[benchmarks.bench.every_subject]\naccuracy = 0.6\n"


@pytest.fixture
def github(project, monkeypatch):
    """Run the project in a job of GitHub's, with a gate that fails; return the summary's file."""
    summary = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    project.thresholds(RED)
    return summary


def test_a_red_run_in_a_job_of_github(project, github):
    github.write_text("# before\n")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "::error title=llmeval%3A gate failed::FAIL bench::accuracy: 0.6667 (bound >= 0.9)*",
            "::error title=llmeval%3A gate failed::FAIL bench::every_subject::art::accuracy*",
        ]
    )
    text = github.read_text()
    assert text.startswith("# before\n### llmeval: FAIL")
    assert "FAIL `bench::accuracy`" in text


def test_annotations_and_summary_without_a_terminal(project, github):
    result = project.pytester.runpytest_subprocess("-p", "no:terminal", "-p", "no:cacheprovider")
    lines = result.stdout.lines
    assert [line[:7] for line in lines if line.startswith("::")] == ["::error"] * 2
    assert github.read_text().count("### llmeval") == 1


def test_annotations_and_summary_appear_once_under_xdist(project, github):
    result = project.run("-n2")
    assert sum(line.startswith("::error") for line in result.outlines) == 2
    assert github.read_text().count("### llmeval") == 1


def test_a_summary_that_cannot_be_written_changes_no_verdict(project, github, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "no" / "summary.md"))
    project.thresholds("[benchmarks.bench]\naccuracy = 0.5\n")
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["GITHUB_STEP_SUMMARY cannot be written: No such file*"])


def test_no_annotations_outside_of_github(project):
    project.thresholds(RED)
    result = project.run()
    assert not [line for line in result.outlines if line.startswith("::")]


def test_the_gate_command_writes_annotations_and_summary(project, github, capsys, monkeypatch):
    project.run()
    capsys.readouterr()
    github.unlink()
    monkeypatch.chdir(project.path)
    assert main(["gate", str(project.run_folder)]) == 1
    out = capsys.readouterr().out
    assert sum(line.startswith("::error") for line in out.splitlines()) == 2
    assert github.read_text().startswith("### llmeval: FAIL")


@pytest.mark.parametrize("words", ["--llm-notify=true", "--llm-notify true"])
def test_the_removed_notify_option_is_refused(project, words):
    result = project.run(*words.split())
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*error: unrecognized arguments: --llm-notify*"])
    assert not (project.path / "runs").exists()


def test_the_removed_notify_option_of_the_gate_command_is_refused(capsys):
    with pytest.raises(SystemExit) as exit:
        main(["gate", "latest", "--notify", "true"])
    assert exit.value.code == 4
    assert "unrecognized arguments: --notify true" in capsys.readouterr().err


ONE_ERROR = """
def respond(self, request):
    if request.id == "zoo-0002":
        return Response(request.id, error="lost")
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
"""


@pytest.mark.parametrize(
    "gates", ["[benchmarks.bench.subjects.art]\naccuracy = 0.1\n", None], ids=["gated", "not gated"]
)
def test_a_build_that_an_error_turned_red_is_reported_as_failed(
    project, github, capsys, monkeypatch, gates
):
    project.model(respond=ONE_ERROR)
    if gates is None:
        (project.path / "thresholds.toml").unlink()
    else:
        project.thresholds(gates)
    result = project.run("--llm-report=html")
    assert result.ret == 1
    gates_json = project.document("gates.json")
    assert (gates_json["verdict"], gates_json["items_failed"]) == ("fail", 1)
    result.stdout.fnmatch_lines(["::error title=llmeval%3A items failed::1 item failed*"])
    assert "### llmeval: FAIL" in github.read_text()
    assert "1 item failed the build**" in github.read_text()
    head = "No gate was judged" if gates is None else "The only gate passed"
    page = (project.run_folder / "report.html").read_text()
    assert "<strong>FAIL</strong>" in page
    assert f"{head}; 1 item failed the build" in page
    if gates is not None:  # judged again, the stored run is as red
        capsys.readouterr()
        monkeypatch.chdir(project.path)
        assert main(["gate", str(project.run_folder)]) == 1
        assert "1 item failed the build" in capsys.readouterr().out


def test_wrong_items_that_are_failures_are_reported_as_failures(project, github):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1\n")
    result = project.run("--llm-wrong=fail")
    assert result.ret == 1
    wrong = sum(line.startswith("FAILED test_bench") for line in result.outlines)
    assert project.document("gates.json")["items_failed"] == wrong == 3
    assert "### llmeval: FAIL" in github.read_text()


def test_reports_are_written_into_the_run_folder(project):
    project.thresholds(RED)
    result = project.run("--llm-report=markdown,codequality,json,parquet")
    result.stdout.fnmatch_lines(["report: runs/*/report.md", "report: runs/*/export.json"])
    findings = json.loads((project.run_folder / "gl-code-quality-report.json").read_bytes())
    assert [finding["location"] for finding in findings] == [
        {"path": "thresholds.toml", "lines": {"begin": line}} for line in (3, 5)
    ]
    assert (project.run_folder / "report.md").read_text().startswith("### llmeval: FAIL")
    value = json.loads((project.run_folder / "export.json").read_bytes())
    assert value["verdict"] == "fail"
    assert len(value["answers"]) == 9
    assert (project.run_folder / "export.parquet").stat().st_size > 1000


def test_an_unknown_format(project):
    result = project.run("--llm-report=json,markdwn")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --llm-report: unknown report format 'markdwn'*markdown*"])
