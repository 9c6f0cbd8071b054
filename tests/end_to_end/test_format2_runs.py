"""A run folder and a baseline of format 2: read, judged, compared, resumed, replayed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.reports.export import rows
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.judging import judge_run
from pytest_llmeval.storage.folder import RunFolder
from support.format2_project import BENCHMARKS
from support.format2_project import MODEL
from support.format2_project import OPTIONS
from support.format2_project import THRESHOLDS

OLD = Path(__file__).parents[1] / "data" / "format2"
NAME = "20261201-031602-model"
DOCUMENTS = ("metrics.json", "gates.json", "comparison.json")


@pytest.fixture
def old(project):
    """The project with the run and the baseline that its earlier version left."""
    (project.path / "test_bench.py").write_text(BENCHMARKS)
    (project.path / "conftest.py").write_text(MODEL)
    (project.path / "thresholds.toml").write_text(THRESHOLDS)
    shutil.copytree(OLD / "run", project.path / "runs" / NAME)
    (project.path / "baselines").mkdir()
    shutil.copy(OLD / "before.json", project.path / "baselines")
    return project


LATER = ("refused", "refused_rate")
"""Fields that documents of format 2 do not have."""


def documents(folder: Path) -> dict[str, dict]:
    contents = {name: json.loads((folder / name).read_text()) for name in DOCUMENTS}
    return {
        name: without_later_fields({key: document[key] for key in document if key != "format"})
        for name, document in contents.items()
    }


def without_later_fields(value):
    """Remove fields that the version that wrote format 2 did not know; no answer was refused."""
    if isinstance(value, list):
        return [without_later_fields(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    assert not any(value.get(name) for name in LATER)
    return {key: without_later_fields(value[key]) for key in value if key not in LATER}


WANTED = documents(OLD / "run")


def test_the_same_numbers_and_verdicts_are_computed(old):
    """In the project's folder, which the names in the documents start from."""
    folder = old.run_folder
    run = load_run(folder)
    metrics = json.loads(json.dumps(run.metrics()))
    assert without_later_fields(metrics) == WANTED["metrics.json"]
    baseline = load_baseline("before", Path("baselines"))
    judged = judge_run(run, load_thresholds(Path("thresholds.toml")), baseline)
    (old.path / "again").mkdir()
    judged.write(RunFolder(old.path / "again"))
    assert documents(old.path / "again") == WANTED


def test_commands_read_a_run_of_format_2(old):
    def command(*arguments: str):
        return old.pytester.run("llmeval", *arguments)

    gate = command("gate", str(old.run_folder), "thresholds.toml", "--baseline", "before")
    assert gate.ret == 1
    gate.stdout.fnmatch_lines(["FAIL said::scorers.choice::accuracy: 0.6667 *"])
    show = command("show", str(old.run_folder))
    assert show.ret == 0
    show.stdout.fnmatch_lines(["lettered?letter?, cyclic: *", "said?choice?, cyclic: *"])
    assert command("compare", "before", str(old.run_folder)).ret == 0
    assert command("baseline", str(old.run_folder), "after").ret == 0
    before = json.loads((old.path / "baselines" / "before.json").read_text())
    after = json.loads((old.path / "baselines" / "after.json").read_text())
    assert (before["format"], after["format"]) == (2, 3)
    assert command("report", str(old.run_folder), "--out", "report.html").ret == 0
    assert "cyclic@1" in (old.path / "report.html").read_text()


def test_a_run_of_format_2_is_exported_with_its_arms(old):
    run = load_run(old.run_folder)
    exported = {(row["benchmark"], row["arm"], row["sample"]) for row in rows(run)}
    audited = {
        (name, f"cyclic@{n}", 0)
        for name, most in (("lettered", 4), ("said", 3))
        for n in range(1, most)
    }
    free = {("lettered", f"free@{text}", 0) for text in ("N/A", "[MASK]", "")}
    plain = {("lettered", None, 0), ("said", None, 0), *(("sums", None, n) for n in range(3))}
    assert exported == audited | free | plain


def test_a_complete_run_is_resumed_without_a_question(old):
    """An error of the earlier session is requested again, without the skipped items."""
    assert old.run(*OPTIONS, "--llm-thresholds=thresholds.toml", "--llm-resume").ret == 1
    assert [folder.name for folder in (old.path / "runs").glob("*/")] == [NAME]
    assert old.requested == ["law-1"]  # the order in which it had an error
    assert documents(old.run_folder) == WANTED
    assert old.document("run.json")["format"] == 3
    lines = (old.run_folder / "records.jsonl").read_text().splitlines()
    assert {json.loads(line).get("sample", 0) for line in lines if '"order"' in line} == {0}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_interrupted_run_is_completed_by_resuming(old, workers):
    file = old.run_folder / "records.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    kept = [*lines[: len(lines) // 2], '{"model": "plan']
    file.write_text("".join(kept))
    result = old.run(*OPTIONS, "--llm-thresholds=thresholds.toml", "--llm-resume", "-n", workers)
    assert result.ret == 1
    assert 0 < len(old.requested) < len(lines)
    assert documents(old.run_folder) == WANTED


def test_records_of_format_2_are_replayed(old):
    shutil.copy(old.run_folder / "records.jsonl", old.path / "records.jsonl")
    (old.path / "conftest.py").unlink()
    model = "--llm-model=replay:records.jsonl"
    assert old.run(*OPTIONS, model, "--llm-baseline=none", "--llm-runs=replayed").ret == 1
    (folder,) = (old.path / "replayed").glob("*/")
    metrics = json.loads((folder / "metrics.json").read_text())
    results = without_later_fields(metrics)["results"]
    wanted = WANTED["metrics.json"]["results"]
    assert len(results) == len(wanted)
    for result, other in zip(results, wanted, strict=True):
        for name in ("accuracy", "errors", "correct", "answered", "subjects", "audit"):
            assert result.get(name) == other.get(name), (result["scorer"], name)
