"""What a session tells GitHub's job and whoever it is to notify, with and without a terminal."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from pytest_llmeval.cli import main

RED = "[benchmarks.bench]\naccuracy = 0.9\n[benchmarks.bench.every_subject]\naccuracy = 0.6\n"


@pytest.fixture
def github(project, monkeypatch):
    """The project in a job of GitHub's, with a gate that fails; returns the summary's file."""
    summary = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    project.thresholds(RED)
    return summary


def command(file, code: int = 0) -> str:
    """A command that keeps what it is told in a file."""
    body = f"import sys; open({str(file)!r}, 'w').write(sys.stdin.read()); sys.exit({code})"
    return shlex.join([sys.executable, "-c", body])


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
    assert text.startswith("# before\n### llmeval: failed")
    assert "FAIL `bench::accuracy`" in text


def test_without_a_terminal_the_job_is_told_too(project, github):
    result = project.pytester.runpytest_subprocess("-p", "no:terminal", "-p", "no:cacheprovider")
    lines = result.stdout.lines
    assert [line[:7] for line in lines if line.startswith("::")] == ["::error"] * 2
    assert github.read_text().count("### llmeval") == 1


def test_under_xdist_it_is_told_once(project, github):
    result = project.run("-n2")
    assert sum(line.startswith("::error") for line in result.outlines) == 2
    assert github.read_text().count("### llmeval") == 1


def test_a_summary_that_cannot_be_written_changes_no_verdict(project, github, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "no" / "summary.md"))
    project.thresholds("[benchmarks.bench]\naccuracy = 0.5\n")
    result = project.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["GITHUB_STEP_SUMMARY cannot be written: No such file*"])


def test_elsewhere_nothing_is_told(project):
    project.thresholds(RED)
    result = project.run()
    assert not [line for line in result.outlines if line.startswith("::")]


def test_a_command_is_told_the_verdict(project):
    project.thresholds(RED)
    file = project.path / "told.json"
    assert project.run("--llm-notify", command(file)).ret == 1
    value = json.loads(file.read_text())
    assert value["verdict"] == "fail"
    assert [gate["id"] for gate in value["failed_gates"]] == [
        "bench::accuracy",
        "bench::every_subject::art::accuracy",
    ]
    assert value["run"] == str(project.run_folder)


@pytest.mark.parametrize("way", ["-o llm_notify=SECRET", "--override-ini=llm_notify=SECRET"])
def test_an_address_that_is_set_as_an_ini_value_is_in_no_file(project, way):
    words = way.replace("SECRET", "http://127.0.0.1:9/T0KEN").split()
    result = project.run(*words)
    result.stdout.fnmatch_lines(["--llm-notify failed: the address cannot be reached*"])
    assert project.document("run.json")["command"][-1].endswith("llm_notify=…")
    for file in project.run_folder.iterdir():
        assert b"T0KEN" not in file.read_bytes()


@pytest.mark.parametrize("way", ["--llm-notify=SECRET", "--llm-notify SECRET"])
def test_a_failure_to_notify_is_a_warning_and_no_artefact_holds_the_address(project, way):
    address = "http://127.0.0.1:1/T0KEN"
    result = project.run("--junitxml=junit.xml", *way.replace("SECRET", address).split())
    assert result.ret == 0
    result.stdout.fnmatch_lines(["--llm-notify failed: the address cannot be reached*"])
    assert "T0KEN" not in result.stdout.str()
    kept = [file for file in project.path.rglob("*") if file.is_file()]
    assert not [file for file in kept if b"T0KEN" in file.read_bytes()]
    told = [word for word in project.document("run.json")["command"] if "llm-notify" in word]
    assert told in (["--llm-notify=…"], ["--llm-notify"])


def test_a_stored_run_that_is_judged_again_is_told_of_too(project, github, capsys, monkeypatch):
    project.run()
    capsys.readouterr()
    github.unlink()
    monkeypatch.chdir(project.path)
    file = project.path / "told.json"
    code = main(["gate", str(project.run_folder), "--notify", command(file, 3)])
    assert code == 1
    out = capsys.readouterr().out
    assert sum(line.startswith("::error") for line in out.splitlines()) == 2
    assert "--llm-notify failed" in out
    assert github.read_text().startswith("### llmeval: failed")
    assert json.loads(file.read_text())["gates"]["failed"] == 2


ONE_ERROR = """
def one(self, request):
    if request.id == "zoo-0002":
        return Response(request.id, error="lost")
    return Response(request.id, logprobs=(-2.0, -1.0, -3.0, -4.0))
"""


@pytest.mark.parametrize(
    "gates", ["[benchmarks.bench.subjects.art]\naccuracy = 0.1\n", None], ids=["gated", "not gated"]
)
def test_a_build_that_an_error_turned_red_is_told_as_failed(
    project, github, capsys, monkeypatch, gates
):
    project.model(one=ONE_ERROR)
    if gates is None:
        (project.path / "thresholds.toml").unlink()
    else:
        project.thresholds(gates)
    file = project.path / "told.json"
    result = project.run("--llm-notify", command(file), "--llm-report=html")
    assert result.ret == 1
    told = json.loads(file.read_text())
    assert (told["verdict"], told["items_failed"]) == ("fail", 1)
    assert "1 item turned the build red" in told["text"]
    gates_json = project.document("gates.json")
    assert (gates_json["verdict"], gates_json["items_failed"]) == ("fail", 1)
    result.stdout.fnmatch_lines(["::error title=llmeval%3A items failed::1 item turned*"])
    assert "### llmeval: failed" in github.read_text()
    assert "**1 item turned the build red.**" in github.read_text()
    head = "Nothing was gated" if gates is None else "Every gate passed"
    page = (project.run_folder / "report.html").read_text()
    assert "<strong>FAIL</strong>" in page
    assert f"{head}; 1 item turned the build red" in page
    if gates is not None:  # judged again, the stored run is as red
        capsys.readouterr()
        monkeypatch.chdir(project.path)
        assert main(["gate", str(project.run_folder), "--notify", command(file)]) == 1
        assert json.loads(file.read_text())["items_failed"] == 1
        assert "1 item turned the build red" in capsys.readouterr().out


def test_wrong_items_that_are_failures_are_told_as_such(project, github):
    project.thresholds("[benchmarks.bench]\naccuracy = 0.1\n")
    result = project.run("--llm-wrong=fail")
    assert result.ret == 1
    wrong = sum(line.startswith("FAILED test_bench") for line in result.outlines)
    assert project.document("gates.json")["items_failed"] == wrong == 3
    assert "### llmeval: failed" in github.read_text()


def test_reports_are_written_into_the_run_folder(project):
    project.thresholds(RED)
    result = project.run("--llm-report=markdown,codequality,json,parquet")
    result.stdout.fnmatch_lines(["report: runs/*/report.md", "report: runs/*/export.json"])
    findings = json.loads((project.run_folder / "gl-code-quality-report.json").read_bytes())
    assert [one["location"] for one in findings] == [
        {"path": "thresholds.toml", "lines": {"begin": line}} for line in (3, 5)
    ]
    assert (project.run_folder / "report.md").read_text().startswith("### llmeval: failed")
    value = json.loads((project.run_folder / "export.json").read_bytes())
    assert value["verdict"] == "fail"
    assert len(value["answers"]) == 9
    assert (project.run_folder / "export.parquet").stat().st_size > 1000


def test_a_format_that_is_none(project):
    result = project.run("--llm-report=json,markdwn")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --llm-report: no report format 'markdwn'*markdown*"])
