"""From a stored run and a thresholds file to verdicts: for a session and ``llmeval gate`` alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
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
from pytest_llmeval.runs.bias import DEBIASED
from pytest_llmeval.runs.comparison import ALPHA
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.runs.comparison import compare
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import first_outcomes
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import Spent
from pytest_llmeval.runs.usage import spent
from pytest_llmeval.scorers import SCORERS
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import run_name


@dataclass(frozen=True)
class Regressed:
    """A subject that is significantly worse than in the baseline; ``result`` as ``mmlu[letter]``.

    ``drop`` is baseline less candidate, a proportion; ``p_value`` is Holm-adjusted.
    """

    result: str
    model: str
    subject: str
    items: int
    baseline: float
    candidate: float
    drop: float
    p_value: float

    @property
    def words(self) -> str:
        """``mmlu[letter], law: 0.6000 -> 0.4500 over 100 items, p = 0.0035 (Holm)``."""
        return (
            f"{self.result}, {self.subject}: {self.baseline:.4f} -> {self.candidate:.4f} over"
            f" {self.items:,} items, p = {self.p_value:.2g} (Holm)"
        )


@dataclass(frozen=True)
class JudgedRun:
    """The documents of a run folder: ``run.json``, ``metrics.json``, ``gates.json``, comparison.

    ``verdict`` is ``pass``, ``fail`` or ``not gated``; ``results`` are the entries of
    ``metrics.json``, ``hybrids`` its weighted ones, ``pairs`` its texts against letters;
    ``comparison`` is None without a baseline. ``thresholds`` is the name of the gates' file,
    ``thresholds_path`` its path from where the session ran. ``items_failed``: items that turned the
    build red, whatever the gates say: by an error that no gate allows for, or as wrong under
    ``--llm-wrong=fail``.
    """

    path: Path
    manifest: Mapping[str, Any]
    results: Sequence[Mapping[str, Any]]
    verdict: str
    verdicts: Sequence[Verdict]
    thresholds: str | None = None
    comparison: Mapping[str, Any] | None = None
    thresholds_path: str | None = None
    hybrids: Sequence[Mapping[str, Any]] = ()
    pairs: Sequence[Mapping[str, Any]] = ()
    items_failed: int = 0

    def write(self, folder: RunFolder) -> None:
        """Write ``metrics.json``, ``gates.json`` and, where there is one, ``comparison.json``.

        Raises RunError where they cannot be written.
        """
        more = {"hybrids": self.hybrids, "pairs": self.pairs}
        folder.write(
            "metrics.json",
            {"results": self.results, **{name: found for name, found in more.items() if found}},
        )
        folder.write(
            "gates.json",
            {
                "thresholds": self.thresholds,
                "path": self.thresholds_path,
                "verdict": self.verdict,
                "items_failed": self.items_failed,
                "gates": [asdict(verdict) for verdict in self.verdicts],
            },
        )
        if self.comparison is not None:
            folder.write("comparison.json", self.comparison)

    @property
    def compared(self) -> RunComparison | None:
        """The comparison as an object. Raises RunError for one of another version."""
        return None if self.comparison is None else RunComparison.from_json(self.comparison)

    @property
    def models(self) -> list[str]:
        """The models that were measured, by the names that their results have."""
        return list(dict.fromkeys(result["model"] for result in self.results))

    @property
    def failed(self) -> list[Verdict]:
        """The gates that failed, worst first; subjects without a value as one."""
        return self._in_state("failed")

    @property
    def undecided(self) -> list[Verdict]:
        """The gates that this run could not decide; subjects without a value as one."""
        return self._in_state("undecided")

    @property
    def warned(self) -> list[Verdict]:
        """The gates that passed with a warning."""
        return self._in_state("warned")

    def _in_state(self, state: State) -> list[Verdict]:
        return [
            one
            for one in sort_worst_first(
                group_subject_verdicts(self.verdicts, STATUSES_WITHOUT_VALUE)
            )
            if one.state == state
        ]

    @property
    def errors(self) -> int:
        """Answers that ended in an error."""
        return sum(result["errors"] for result in self.results)

    def regressed(self) -> list[Regressed]:
        """Subjects that are significantly worse than in the baseline, largest drop first."""
        found = list(self._regressed())
        return sorted(found, key=lambda one: (-one.drop, one.result, one.subject))

    def _regressed(self) -> Iterator[Regressed]:
        for comparison in (self.comparison or {}).get("comparisons", ()):
            if not comparison["comparable"]:
                continue
            for subject, one in comparison["subjects"].items():
                if one["drop"] is not None and one["drop"] > 0 and one["adjusted"] <= ALPHA:
                    yield Regressed(
                        f"{comparison['benchmark']}[{comparison['scorer']}]",
                        comparison["candidate"],
                        subject,
                        one["items"],
                        one["baseline"],
                        one["candidate"],
                        one["drop"],
                        one["adjusted"],
                    )


def name_of(result: Mapping[str, Any]) -> str:
    """``mmlu[letter]`` for an entry of ``metrics.json``."""
    return f"{result['benchmark']}[{result['scorer']}]"


def key_of(result: Mapping[str, Any]) -> Key:
    """(model, benchmark, scorer) of an entry of ``metrics.json``."""
    return result["model"], result["benchmark"], result["scorer"]


def read_judged(path: Path, comparison: Mapping[str, Any] | None = None) -> JudgedRun:
    """Read the documents of a run folder; metrics from its records where it was not finished.

    ``comparison``: instead of the session's own, as ``RunComparison.as_json`` gives it. Raises RunError,
    in one line, for what is missing or damaged.
    """
    folder = RunFolder(path)
    manifest = folder.manifest()
    gates = _document(folder, "gates.json") or {"verdict": "not gated", "gates": []}
    metrics = _document(folder, "metrics.json") or load_run(path).metrics()
    try:
        verdicts = [Verdict.from_json(value) for value in gates["gates"]]
    except TypeError as error:  # a gate with more than this version knows
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
        items_failed=gates.get("items_failed", 0),
    )


def used(run: JudgedRun) -> dict[Key, Spent]:
    """What the answers of each result took, from the run's records."""
    return spent(RunFolder(run.path).latest_records(run.manifest))


def _document(folder: RunFolder, name: str) -> dict[str, Any] | None:
    return folder.read(name) if (folder.path / name).exists() else None


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
    verdict = (
        "not gated" if file is None or not gated else overall_verdict(verdicts, allow_undecided)
    )
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
    nothing = undecided_run_verdict(verdicts, file)
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
