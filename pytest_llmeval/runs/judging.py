"""From a stored run and a thresholds file to verdicts: for a session and ``llmeval gate`` alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import FIRST_RUN
from pytest_llmeval.gates import NO_BASELINE
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import Comparisons
from pytest_llmeval.gates import EarlierNames
from pytest_llmeval.gates import KnownNames
from pytest_llmeval.gates import NotCompared
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import errors_allowed
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import nothing_decided
from pytest_llmeval.gates import overall
from pytest_llmeval.gates import unknown_models
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.runs.comparison import compare
from pytest_llmeval.runs.debiased_results import DEBIASED
from pytest_llmeval.runs.judged import JudgedRun
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.weighted_scores import first_outcomes
from pytest_llmeval.scorers import SCORERS
from pytest_llmeval.storage.folder import run_name

FIRST = "none"
"""What ``--llm-baseline`` is for the first run, which there is nothing to compare with."""


def check_thresholds(
    thresholds: Thresholds,
    collected: Mapping[str, CollectedBenchmark],
    earlier: Iterable[Path],
    models: Mapping[str, str] | None,
    tests: Mapping[str, str] | None = None,
) -> None:
    """Raise ConfigError for the first name in the file that cannot be right.

    ``earlier``: folders of runs and of baselines. ``models`` and ``tests`` as in ``KnownNames``.
    """
    from pytest_llmeval.catalog import NAMES  # all benchmarks, for a file of gates alone

    folders = tuple(earlier)
    known = KnownNames(
        benchmarks=NAMES,
        scorers={*SCORERS, *DEBIASED},
        tests=tests or {},
        models=models,
        earlier=lambda: _earlier_names(folders),
    )
    check_names(thresholds, known, collected)


def judge_run(
    run: Run,
    thresholds: Thresholds | None,
    baseline: Run | NotCompared = NO_BASELINE,
    *,
    earlier: Iterable[Path] = (),
    allow_undecided: bool = False,
    allow_mismatch: bool = False,
    gated: bool = True,
    failed_tests: int | None = None,
) -> JudgedRun:
    """The run with the verdicts on every gate of the file and its comparison with the baseline.

    ``earlier``: folders of runs and of baselines, whose names the file may know. Without ``gated``
    the file only says which errors are allowed (a shard has a part of what gates are about).
    ``failed_tests``: tests that failed for another reason than an item's error; by default those that
    the run has stored.
    Raises MismatchError where the baseline has other protocols or data (``allow_mismatch`` shows
    the numbers all the same), ConfigError where it has no result in common with the run.
    """
    measurements = run.measurements()
    comparison: RunComparison | None = None
    comparisons: Comparisons | NotCompared
    if isinstance(baseline, NotCompared):
        comparisons = baseline
    else:
        comparison = compare(baseline, run, allow_mismatch=allow_mismatch)
        comparisons = comparison.for_gates()
    file = None if thresholds is None else Path(thresholds.file)
    verdicts: list[Verdict] = []
    if thresholds is not None and file is not None and gated:
        verdicts = _verdicts(
            measurements,
            thresholds,
            file.name,
            [planned.benchmark for planned in run.planned],
            comparisons,
            earlier=earlier,
            allow_undecided=allow_undecided,
        )
    if failed_tests is None:
        failed_tests = run.manifest.get("failed_tests", 0)
    items_failed = _items_failed(thresholds, measurements) + failed_tests
    verdict = "not gated" if file is None or not gated else overall(verdicts, allow_undecided)
    metrics = run.metrics()
    return JudgedRun(
        path=run.path,
        manifest=run.manifest,
        results=metrics["results"],
        verdict="fail" if items_failed else verdict,
        verdicts=verdicts,
        thresholds=None if file is None else file.name,
        thresholds_path=None if file is None else run_name(file),
        comparison=None if comparison is None else comparison.as_json(),
        hybrids=metrics.get("hybrids", ()),
        pairs=metrics.get("pairs", ()),
        items_failed=items_failed,
    )


def _items_failed(thresholds: Thresholds | None, measurements: Iterable[Measurement]) -> int:
    """Items with errors that the file does not allow for."""
    return sum(
        Outcome.ERROR in item.outcomes
        and (thresholds is None or not errors_allowed(thresholds, one.result, item.subject))
        for one in measurements
        if not one.scored_again
        for item in one.items.values()
    )


def _verdicts(
    measurements: Sequence[Measurement],
    thresholds: Thresholds,
    file: str,
    collected: Iterable[str],
    comparisons: Comparisons | NotCompared,
    *,
    earlier: Iterable[Path],
    allow_undecided: bool,
) -> list[Verdict]:
    """Verdicts on every gate of the file; one more where none of them was decided (rule 2 of ARCHITECTURE.md).

    ``file``: its name; ``collected`` and ``comparisons`` as in ``judge``; ``earlier`` as in
    ``check_thresholds``.
    """
    results = [one.result for one in measurements]
    models = list(dict.fromkeys(result.model for result in results))
    folders = tuple(earlier)
    unknown = unknown_models(thresholds, models, lambda: _earlier_names(folders))
    outcomes = first_outcomes(measurements)
    verdicts = judge(thresholds, results, models, collected, comparisons, outcomes, unknown)
    nothing = nothing_decided(verdicts, file)
    return verdicts if nothing is None or allow_undecided else [*verdicts, nothing]


def chosen_baseline(given: str | None, thresholds: Thresholds | None) -> str | NotCompared:
    """The baseline that a run is compared with, or why there is none.

    ``given``: on the command line, or stored with the run. Otherwise the file may name it.
    """
    text = given or (thresholds.baseline if thresholds is not None else None)
    if text is None:
        return NO_BASELINE
    return FIRST_RUN if text == FIRST else text


@cache
def _earlier_names(folders: tuple[Path, ...]) -> EarlierNames:
    """The names in all runs and baselines of some folders, whatever their version or state."""
    models: set[str] = set()
    benchmarks: set[str] = set()
    for folder in folders:
        for file in (*folder.glob("*/run.json"), *folder.glob("*.json")):
            for name, value in _named(file):
                (models if name == "model" else benchmarks).add(value)
    return EarlierNames(frozenset(models), frozenset(benchmarks))


def _named(file: Path) -> Iterator[tuple[str, str]]:
    """The models and benchmarks in one JSON document; none of a file that is something else."""
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
        for model in (*document.get("models", ()), *document.get("model_fingerprints", ())):
            yield "model", str(model)
        for result in document.get("results", ()):
            yield "benchmark", str(result["benchmark"])
        for group in document.get("outcomes", ()):
            yield "model", str(group["model"])
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return
