"""Judged runs made by hand, from outcomes by subject."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.gates import judge
from pytest_llmeval.gates import overall_verdict
from pytest_llmeval.gates import parse_thresholds
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import compare
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.storage.folder import RunFolder
from support.stored_runs import make_run
from support.stored_runs import store

THRESHOLDS = """
[benchmarks.mmlu]
accuracy = 0.5
max_errors = 0
[benchmarks.mmlu.every_subject]
accuracy = 0.5
"""
REGRESSION = """
[benchmarks.mmlu.regression]
max_drop = 0.01
max_subject_drop = 0.05
"""

Letters = Mapping[str, str]
"""Subject → one letter for each of its items."""


def items(subjects: Letters) -> dict[str, str]:
    return {
        f"{subject}-{row:04d}": letter
        for subject, letters in subjects.items()
        for row, letter in enumerate(letters)
    }


def judged(
    root: Path,
    subjects: Letters,
    baseline: Letters | None = None,
    thresholds: str | None = THRESHOLDS,
    name: str = "run",
    **more: Any,
) -> JudgedRun:
    """A run as a session would have judged it; its documents are not on disk."""
    return _judged(make_run(root, name, items(subjects), **more), root, baseline, thresholds)


def _judged(run: Run, root: Path, baseline: Letters | None, thresholds: str | None) -> JudgedRun:
    comparison = None
    if baseline is not None:
        comparison = compare(make_run(root, "before", items(baseline)), run)
    verdicts = []
    if thresholds is not None:
        parsed = parse_thresholds(f"version = 1\n{thresholds}")
        verdicts = judge(
            parsed,
            run.results(),
            run.manifest["models"],
            ["mmlu"],
            None if comparison is None else comparison.for_gates(),
        )
    return JudgedRun(
        path=run.path,
        manifest=run.manifest,
        results=run.metrics()["results"],
        verdict="not gated" if thresholds is None else overall_verdict(verdicts),
        verdicts=verdicts,
        thresholds=thresholds and "thresholds.toml",
        comparison=None if comparison is None else comparison.as_json(),
    )


def stored(root: Path, subjects: Letters, **more: Any) -> Path:
    """A run folder with its records and its ``run.json``, and no other document."""
    run = make_run(root, more.pop("name", "run"), items(subjects), **more)
    store(run)
    return run.path


def write_documents(judged_run: JudgedRun) -> None:
    """The documents that a session leaves beside the records."""
    from dataclasses import asdict

    folder = RunFolder(judged_run.path)
    folder.write("metrics.json", {"results": list(judged_run.results)})
    gates = [asdict(verdict) for verdict in judged_run.verdicts]
    folder.write(
        "gates.json",
        {"thresholds": judged_run.thresholds, "verdict": judged_run.verdict, "gates": gates},
    )
    if judged_run.comparison is not None:
        folder.write("comparison.json", judged_run.comparison)
