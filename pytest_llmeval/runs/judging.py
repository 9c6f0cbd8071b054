"""Verdicts on a stored run by a thresholds file, for sessions and for ``llmeval gate``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import RunError
from pytest_llmeval.gates import FIRST_RUN
from pytest_llmeval.gates import NO_BASELINE
from pytest_llmeval.gates import STATUSES_WITHOUT_VALUE
from pytest_llmeval.gates import CollectedBenchmark
from pytest_llmeval.gates import Comparisons
from pytest_llmeval.gates import EarlierNames
from pytest_llmeval.gates import KnownNames
from pytest_llmeval.gates import NotCompared
from pytest_llmeval.gates import Overlaps
from pytest_llmeval.gates import State
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import errors_allowed
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import overall_verdict
from pytest_llmeval.gates import sort_worst_first
from pytest_llmeval.gates import undecided_run_verdict
from pytest_llmeval.gates import unknown_models
from pytest_llmeval.gates.evidence import Evidence
from pytest_llmeval.gates.evidence import Reference
from pytest_llmeval.overlap.report import DOCUMENT as OVERLAP
from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.overlap.report import read_report
from pytest_llmeval.overlap.report import write_report
from pytest_llmeval.runs.bias import DEBIASED
from pytest_llmeval.runs.comparison import ALPHA
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.runs.comparison import compare
from pytest_llmeval.runs.measured_orders import origins_of
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import first_outcomes
from pytest_llmeval.runs.overlap import add_overlap
from pytest_llmeval.runs.overlap import divided
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import ResourceUse
from pytest_llmeval.runs.usage import resource_use
from pytest_llmeval.scorers import scorer_names
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import run_name


@dataclass(frozen=True)
class SubjectRegression:
    """A subject that is significantly worse than in the baseline."""

    #: Name of the result, such as ``mmlu[letter]``.
    result: str
    model: str
    subject: str
    items: int
    #: Accuracies.
    baseline: float
    candidate: float
    #: Accuracy of the baseline minus that of the candidate.
    drop: float
    #: Holm-adjusted.
    p_value: float

    @property
    def words(self) -> str:
        """One line: ``mmlu[letter], law: 0.6000 -> 0.4500 over 100 items, p = 0.0035 (Holm)``."""
        return (
            f"{self.result}, {self.subject}: {self.baseline:.4f} -> {self.candidate:.4f} over"
            f" {self.items:,} items, p = {self.p_value:.2g} (Holm)"
        )


@dataclass(frozen=True)
class JudgedRun:
    """The documents of a run folder: ``run.json``, ``metrics.json``, ``gates.json``, comparison."""

    path: Path
    #: Content of ``run.json``.
    manifest: Mapping[str, Any]
    #: Entries of ``metrics.json``.
    results: Sequence[Mapping[str, Any]]
    #: ``pass``, ``fail`` or ``not gated``.
    verdict: str
    verdicts: Sequence[Verdict]
    #: Name of the thresholds file.
    thresholds: str | None = None
    #: Content of ``comparison.json``; None without a baseline.
    comparison: Mapping[str, Any] | None = None
    #: Path of the thresholds file, relative to the working directory of the session.
    thresholds_path: str | None = None
    #: Hybrid scores of ``metrics.json``.
    hybrids: Sequence[Mapping[str, Any]] = ()
    #: Comparisons of answers as texts with answers as letters.
    pairs: Sequence[Mapping[str, Any]] = ()
    #: Order tests (``contamination_entries``).
    contamination: Sequence[Mapping[str, Any]] = ()
    #: Items that fail the build independently of the gates: errors that no gate allows, and wrong
    #: answers under ``--llm-wrong=fail``.
    items_failed: int = 0
    #: Overlap of the run's benchmarks with a corpus.
    overlap: OverlapReport | None = None

    def write(self, folder: RunFolder) -> None:
        """Write ``metrics.json``, ``gates.json`` and, if they exist, comparison and overlap.

        Raises RunError if they cannot be written.
        """
        optional = {
            "hybrids": self.hybrids,
            "pairs": self.pairs,
            "contamination": self.contamination,
        }
        folder.write(
            "metrics.json",
            {"results": self.results, **{name: value for name, value in optional.items() if value}},
        )
        folder.write(
            "gates.json",
            {
                "thresholds": self.thresholds,
                "path": self.thresholds_path,
                "verdict": self.verdict,
                "items_failed": self.items_failed,
                "gates": [verdict.as_json() for verdict in self.verdicts],
            },
        )
        if self.comparison is not None:
            folder.write("comparison.json", self.comparison)
        if self.overlap is not None:
            write_report(folder.path, self.overlap)

    @property
    def run_comparison(self) -> RunComparison | None:
        """The comparison as an object. Raises RunError for a document of another version."""
        return None if self.comparison is None else RunComparison.from_json(self.comparison)

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order of the results."""
        return list(dict.fromkeys(result["model"] for result in self.results))

    @property
    def failed(self) -> list[Verdict]:
        """Failed gates, worst first; subjects without a value are grouped."""
        return self._in_state("failed")

    @property
    def undecided(self) -> list[Verdict]:
        """Undecided gates; subjects without a value are grouped."""
        return self._in_state("undecided")

    @property
    def warned(self) -> list[Verdict]:
        """Gates that passed with a warning."""
        return self._in_state("warned")

    def _in_state(self, state: State) -> list[Verdict]:
        return [
            gate
            for gate in sort_worst_first(
                group_subject_verdicts(self.verdicts, STATUSES_WITHOUT_VALUE)
            )
            if gate.state == state
        ]

    @property
    def errors(self) -> int:
        """Number of answers that are errors."""
        return sum(result["errors"] for result in self.results)

    def regressions(self) -> list[SubjectRegression]:
        """Return the subjects that are significantly worse than in the baseline, largest drop first."""
        return sorted(self._find_regressions(), key=lambda r: (-r.drop, r.result, r.subject))

    def _find_regressions(self) -> Iterator[SubjectRegression]:
        for comparison in (self.comparison or {}).get("comparisons", ()):
            if not comparison["comparable"]:
                continue
            for subject, change in comparison["subjects"].items():
                if change["drop"] is None:
                    continue
                if change["drop"] > 0 and change["adjusted"] <= ALPHA:
                    yield SubjectRegression(
                        f"{comparison['benchmark']}[{comparison['scorer']}]",
                        comparison["candidate"],
                        subject,
                        change["items"],
                        change["baseline"],
                        change["candidate"],
                        change["drop"],
                        change["adjusted"],
                    )


def result_name(result: Mapping[str, Any]) -> str:
    """Return the name of an entry of ``metrics.json``, such as ``mmlu[letter]``."""
    return f"{result['benchmark']}[{result['scorer']}]"


def result_key(result: Mapping[str, Any]) -> Key:
    """Return (model, benchmark, scorer) of an entry of ``metrics.json``."""
    return result["model"], result["benchmark"], result["scorer"]


def read_judged_run(
    path: Path,
    comparison: Mapping[str, Any] | None = None,
    overlap: OverlapReport | None = None,
) -> JudgedRun:
    """Read the documents of a run folder; compute the metrics if the run is not finished.

    ``comparison`` (``RunComparison.as_json``) and ``overlap`` replace those of the session. Raises
    RunError, in one line, for a missing or damaged document.
    """
    folder = RunFolder(path)
    manifest = folder.manifest()
    gates = _document(folder, "gates.json") or {"verdict": "not gated", "gates": []}
    metrics = _document(folder, "metrics.json") or load_run(path).metrics()
    if overlap is not None:
        measurements = load_run(path).measurements()
        add_overlap(metrics["results"], measurements, divided(measurements, overlap))
    try:
        verdicts = [Verdict.from_json(value) for value in gates["gates"]]
    except TypeError as error:  # a gate with fields of another version
        raise RunError(f"{path / 'gates.json'}: damaged, or of another version: {error}") from None
    return JudgedRun(
        path=path,
        manifest=manifest,
        results=metrics["results"],
        verdict=gates["verdict"],
        verdicts=verdicts,
        thresholds=gates.get("thresholds"),
        comparison=comparison or _document(folder, "comparison.json"),
        thresholds_path=gates.get("path"),
        hybrids=metrics.get("hybrids", ()),
        pairs=metrics.get("pairs", ()),
        contamination=metrics.get("contamination", ()),
        items_failed=gates.get("items_failed", 0),
        overlap=read_report(path) if overlap is None and (path / OVERLAP).exists() else overlap,
    )


def run_resource_use(run: JudgedRun) -> dict[Key, ResourceUse]:
    """Return the time and tokens of each result, from the run's records."""
    return resource_use(RunFolder(run.path).latest_records(run.manifest))


def _document(folder: RunFolder, name: str) -> dict[str, Any] | None:
    return folder.read(name) if (folder.path / name).exists() else None


FIRST_RUN_OPTION = "none"
"""Value of ``--llm-baseline`` for the first run, which has no baseline."""


def check_thresholds(
    thresholds: Thresholds,
    collected: Mapping[str, CollectedBenchmark],
    earlier: Iterable[Path],
    models: Mapping[str, str] | None,
    tests: Mapping[str, str] | None = None,
) -> None:
    """Check the names in a thresholds file. Raises ConfigError for the first unknown one.

    ``earlier``: folders of runs and of baselines. ``models`` and ``tests`` as in ``KnownNames``.
    """
    from pytest_llmeval.catalog import NAMES  # imports all benchmarks, which only thresholds need

    folders = tuple(earlier)
    names = KnownNames(
        benchmarks=NAMES,
        scorers={*scorer_names(), *DEBIASED},
        tests=tests or {},
        models=models,
        earlier=lambda: _earlier_names(folders),
    )
    check_names(thresholds, names, collected)


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
    overlap: OverlapReport | None = None,
    references: Mapping[str, Reference] | None = None,
) -> JudgedRun:
    """Judge a run by every gate of the file, and compare it with the baseline.

    ``earlier``: folders of runs and of baselines, whose names the file may contain. Without
    ``gated``, the file only determines which errors are allowed (a shard has only part of the items
    that gates need). ``failed_tests``: number of tests that failed for another reason than an item's
    error; by default the number that the run has stored. ``overlap``: overlap of its benchmarks with
    a corpus. ``references``: the runs that gates of contamination name (``load_references``). Raises MismatchError if the baseline has
    other protocols or data (``allow_mismatch`` compares the numbers nevertheless), ConfigError if it
    has no result in common with the run.
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
    overlaps = divided(measurements, overlap)
    verdicts: list[Verdict] = []
    if thresholds is not None and file is not None and gated:
        verdicts = _verdicts(
            measurements,
            thresholds,
            file.name,
            [planned.benchmark for planned in run.planned],
            comparisons,
            overlaps,
            earlier=earlier,
            allow_undecided=allow_undecided,
            evidence=Evidence(run.measured_orders, origins_of(measurements), references or {}),
        )
        if "sequential" in run.manifest:
            # Imported here because it imports numpy, which only sequential runs need.
            from pytest_llmeval.runs.sequential import run_progress

            earlier_run = None if isinstance(baseline, NotCompared) else baseline
            progress = run_progress(run, thresholds, earlier_run)
            verdicts = [progress.verdict(verdict) for verdict in verdicts]
    if failed_tests is None:
        failed_tests = run.manifest.get("failed_tests", 0)
    items_failed = _items_failed(thresholds, measurements) + failed_tests
    verdict = (
        "not gated" if file is None or not gated else overall_verdict(verdicts, allow_undecided)
    )
    metrics = run.metrics()
    add_overlap(metrics["results"], measurements, overlaps)
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
        contamination=metrics.get("contamination", ()),
        items_failed=items_failed,
        overlap=overlap,
    )


def _items_failed(thresholds: Thresholds | None, measurements: Iterable[Measurement]) -> int:
    """Count the items with errors that the file does not allow."""
    return sum(
        Outcome.ERROR in item.outcomes
        and (thresholds is None or not errors_allowed(thresholds, measurement.result, item.subject))
        for measurement in measurements
        if not measurement.shares_responses
        for item in measurement.items.values()
    )


def _verdicts(
    measurements: Sequence[Measurement],
    thresholds: Thresholds,
    file: str,
    collected: Iterable[str],
    comparisons: Comparisons | NotCompared,
    overlaps: Overlaps,
    *,
    earlier: Iterable[Path],
    allow_undecided: bool,
    evidence: Evidence,
) -> list[Verdict]:
    """Return the verdicts on every gate of the file, and a failed one if none of them was decided.

    See rule 2 of ARCHITECTURE.md. ``file``: its name; ``collected``, ``comparisons`` and ``overlaps``
    as in ``judge``; ``earlier`` as in ``check_thresholds``.
    """
    results = [measurement.result for measurement in measurements]
    models = list(dict.fromkeys(result.model for result in results))
    folders = tuple(earlier)
    unknown = unknown_models(thresholds, models, lambda: _earlier_names(folders))
    outcomes = first_outcomes(measurements)
    verdicts = judge(
        thresholds, results, models, collected, comparisons, outcomes, unknown, overlaps, evidence
    )
    nothing = undecided_run_verdict(verdicts, file)
    return verdicts if nothing is None or allow_undecided else [*verdicts, nothing]


def baseline_choice(option: str | None, thresholds: Thresholds | None) -> str | NotCompared:
    """Return the baseline of a run, or why there is none.

    ``option``: from the command line, or stored with the run. Otherwise the file can name one.
    """
    text = option or (thresholds.baseline if thresholds is not None else None)
    if text is None:
        return NO_BASELINE
    return FIRST_RUN if text == FIRST_RUN_OPTION else text


@cache
def _earlier_names(folders: tuple[Path, ...]) -> EarlierNames:
    """Return the names in all runs and baselines of folders, of any version and state."""
    models: set[str] = set()
    benchmarks: set[str] = set()
    for folder in folders:
        for file in (*folder.glob("*/run.json"), *folder.glob("*.json")):
            for name, value in _names_in(file):
                (models if name == "model" else benchmarks).add(value)
    return EarlierNames(frozenset(models), frozenset(benchmarks))


def _names_in(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the models and benchmarks of a JSON document; none if the file is not a run."""
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
