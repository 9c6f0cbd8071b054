"""Findings for GitLab's merge requests: its fields, stable fingerprints, and the gates' lines."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.reports.ci import code_quality
from pytest_llmeval.reports.ci import project_path
from pytest_llmeval.runs.judging import JudgedRun
from support.judged_runs import REGRESSION
from support.judged_runs import THRESHOLDS
from support.judged_runs import judged
from support.judged_runs import stored
from support.judged_runs import write_documents

GOOD, WORSE = "c" * 80 + "w" * 20, "c" * 40 + "w" * 60
SEVERITIES = ("info", "minor", "major", "critical", "blocker")


def check(report) -> None:
    """GitLab's rules for a report: types, allowed severities, fingerprints that are unique."""
    assert isinstance(report, list)
    for entry in report:
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert all(
            isinstance(entry[name], str) and entry[name] for name in set(entry) - {"location"}
        )
        assert entry["severity"] in SEVERITIES
        location = entry["location"]
        assert set(location) == {"path", "lines"}
        assert not location["path"].startswith(("/", "./"))
        assert set(location["lines"]) == {"begin"}
        assert location["lines"]["begin"] >= 1
    assert len({entry["fingerprint"] for entry in report}) == len(report)


def report_of(run: JudgedRun):
    report = code_quality(run, "thresholds.toml")
    check(report)
    return report


def listed(report) -> list[tuple[str, str, int]]:
    """Check, the beginning of the description, and the line of every entry."""
    return [
        (
            entry["check_name"].removeprefix("llmeval: "),
            entry["description"].split(": ")[0],
            entry["location"]["lines"]["begin"],
        )
        for entry in report
    ]


def test_failed_and_undecided_gates_and_worse_subjects(tmp_path):
    before = {"art": GOOD, "law": GOOD}
    text = THRESHOLDS + REGRESSION + "[benchmarks.mmlu.subjects.zoo]\naccuracy = 0.5\n"
    run = judged(tmp_path, {"art": WORSE, "law": GOOD}, before, text)
    report = report_of(run)
    # THRESHOLDS begins with an empty line, behind the version.
    assert listed(report) == [  # worst first, by margin
        ("gate failed", "FAIL mmlu::regression::every_subject::art::max_subject_drop", 11),
        ("gate failed", "FAIL mmlu::regression::max_drop", 10),
        ("gate failed", "FAIL mmlu::every_subject::art::accuracy", 7),
        ("gate undecided", "UNDECIDED mmlu::subjects.zoo::accuracy", 13),
        ("subject got worse", "mmlu[letter], art", 10),
    ]
    assert [entry["severity"] for entry in report] == ["critical"] * 3 + ["major", "minor"]


def test_a_green_run_has_an_empty_report(tmp_path):
    assert report_of(judged(tmp_path, {"art": GOOD})) == []


def test_a_run_without_gates_lists_worse_subjects_on_the_first_line(tmp_path):
    run = judged(tmp_path, {"art": WORSE}, {"art": GOOD}, None)
    assert listed(report_of(run)) == [("subject got worse", "mmlu[letter], art", 1)]


def test_fingerprints_depend_on_the_gates_and_not_on_the_results(tmp_path):
    before = {"art": GOOD, "law": GOOD}
    runs = [
        judged(
            tmp_path / str(wrong),
            {"art": "c" * (50 - wrong) + "w" * 50 + "w" * wrong, "law": GOOD},
            before,
            THRESHOLDS + REGRESSION,
        )
        for wrong in (1, 2)
    ]
    first, two = map(report_of, runs)
    assert [entry["description"] for entry in first] != [entry["description"] for entry in two]
    assert [entry["fingerprint"] for entry in first] == [entry["fingerprint"] for entry in two]
    # Where several models ran, each has its own.
    other = replace(runs[0], results=[*runs[0].results, {**runs[0].results[0], "model": "other"}])
    assert report_of(other)[-1]["fingerprint"] != first[-1]["fingerprint"]


@pytest.mark.parametrize(
    "name", ["<script>", "\x1b[31m\x00", "a\n\n::error::b", "x" * 5000, "\ud800"]
)
def test_names_are_shown_on_one_line_and_shortened(tmp_path, name):
    run = judged(tmp_path, {name: WORSE}, {name: GOOD}, THRESHOLDS + REGRESSION)
    for entry in report_of(run):
        assert re.fullmatch(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,1100}", entry["description"])


def test_paths_are_those_of_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert project_path(Path("ci/thresholds.toml"), {}) == "ci/thresholds.toml"
    project = {"CI_PROJECT_DIR": str(tmp_path.parent)}
    assert (
        project_path(Path("ci/thresholds.toml"), project) == f"{tmp_path.name}/ci/thresholds.toml"
    )
    outside = {"CI_PROJECT_DIR": str(tmp_path / "elsewhere")}
    assert project_path(Path("thresholds.toml"), outside) == "thresholds.toml"


def test_the_command_writes_what_the_session_judged(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    judged_run = judged(tmp_path, {"art": WORSE})
    stored(tmp_path, {"art": WORSE})
    write_documents(judged_run)
    out = tmp_path / "quality.json"
    assert main(["report", str(judged_run.path), "--format", "codequality", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out} (1 kB)\n"
    assert json.loads(out.read_text()) == code_quality(judged_run, "thresholds.toml")
    assert main(["report", str(judged_run.path), "--format=codequality"]) == 0
    assert json.loads((judged_run.path / "gl-code-quality-report.json").read_text())
