"""Early verdicts of a sequential run (``--llm-sequential``), from its folder.

A sequential run requests the items of each benchmark in random order and stops a benchmark when its
gates are decided. The decisions are computed again whenever the run is judged, from its records and
the order of its items in ``order.json``, and are the same each time.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import RunError
from pytest_llmeval.core.hashing import canonical_json
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates.sequential.decisions import Course
from pytest_llmeval.gates.sequential.decisions import CourseProgress
from pytest_llmeval.gates.sequential.decisions import OrderedItem
from pytest_llmeval.gates.sequential.decisions import Position
from pytest_llmeval.gates.sequential.decisions import replay
from pytest_llmeval.gates.sequential.family import NO_COMPLETE_BASELINE
from pytest_llmeval.gates.sequential.family import BaselineItems
from pytest_llmeval.gates.sequential.family import Family
from pytest_llmeval.gates.sequential.family import model_family
from pytest_llmeval.gates.sequential.rules import CountRule
from pytest_llmeval.gates.thresholds import Sequential
from pytest_llmeval.gates.verdict import answer_count
from pytest_llmeval.gates.verdict import error_count
from pytest_llmeval.gates.verdict import measurement_problem
from pytest_llmeval.metrics.sequential.operating import count_boundary
from pytest_llmeval.metrics.sequential.operating import operating
from pytest_llmeval.metrics.sequential.operating import wave_ends
from pytest_llmeval.runs.comparison import shortened_list
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.run import Run
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import run_name

ORDER = "order.json"
"""Document with the items of every benchmark in their random order."""


def order_document(plan: Plan) -> dict[str, Any]:
    """Return the content of ``order.json``: the items of each model and planned result in order."""
    pairs = sorted({(item.model, item.result) for item in plan.items})
    return {
        "courses": [
            {
                "model": model,
                "result": result,
                "items": [[item.item, item.subject] for item in plan.random_order(model, result)],
            }
            for model, result in pairs
        ]
    }


def manifest_entry(thresholds: Thresholds, baseline: Run | None) -> dict[str, Any]:
    """Return the entry ``sequential`` of ``run.json``, which is written before the first answer."""
    settings = thresholds.sequential
    return {
        "alpha": settings.alpha,
        "wave": settings.wave,
        "gates": gates_hash(thresholds, baseline),
    }


def gates_hash(thresholds: Thresholds, baseline: Run | None) -> str:
    """Return a hash of all gates of a file and of the baseline's outcomes.

    A run that stopped under other gates has chosen its end by them.
    """
    outcomes = [
        [*measurement.result.key, sorted((n, i.correct) for n, i in measurement.items.items())]
        for measurement in (() if baseline is None else baseline.measurements())
    ]
    gates = thresholds.model_dump(mode="json", exclude_defaults=True, exclude={"sequential"})
    return hashlib.sha256(canonical_json([gates, outcomes])).hexdigest()[:16]


@dataclass(frozen=True)
class SequentialProgress:
    """The gates of a sequential run at the end of its answered waves."""

    families: Sequence[Family]
    #: (index of the model, index of the planned result) → its gates.
    courses: Mapping[tuple[int, int], CourseProgress]
    alpha: float

    def needs(self, model: int, result: int, subject: str) -> bool:
        """Return whether a gate that is not decided has the items of a subject."""
        progress = self.courses.get((model, result))
        return progress is None or progress.needs(subject)

    def positions(self) -> Iterator[Position]:
        """Yield all gates that can be decided early."""
        for progress in self.courses.values():
            yield from progress.positions

    def verdict(self, base: Verdict) -> Verdict:
        """Return the early verdict in place of one that is undecided because items are missing."""
        if base.status != "undecided":
            return base
        for position in self.positions():
            if position.gate.id == base.id:
                return _early_verdict(base, position, self.alpha)
        if base.metric == "max_errors" and base.measured is not None and not self._is_open(base):
            reason = (
                f"sequential: {error_count(int(base.measured))} in {answer_count(base.n)};"
                " the others were not needed"
            )
            return replace(base, status="pass", reason=reason)
        return base

    def _is_open(self, base: Verdict) -> bool:
        """Return whether the run needs further items of a verdict's benchmark or subject."""
        return any(
            progress.is_open(base.subject)
            for progress in self.courses.values()
            if any(
                (position.gate.scope.model, position.gate.scope.benchmark)
                == (base.model, base.benchmark)
                for position in progress.positions
            )
        )


def run_progress(
    run: Run, thresholds: Thresholds, baseline: Run | None, ended: int | None = None
) -> SequentialProgress:
    """Return the decisions of a sequential run. Raises RunError without a valid ``order.json``.

    ``ended``: number of complete waves to consider; all by default. An earlier session may have
    answered further ones, whose errors this session repeats first. With other gates than those under
    which the run stopped, only those are decided that hold for every bound.
    """
    settings = run.manifest["sequential"]
    document = RunFolder(run.path).read(ORDER)
    is_same = settings["gates"] == gates_hash(thresholds, baseline)
    by_plan, planned = run.by_plan, run.planned
    families = {
        model: family if is_same else family.for_any_bound()
        for model, family in run_families(by_plan, thresholds, baseline, settings["alpha"]).items()
    }
    courses = {}
    for entry in document["courses"]:
        model, result = entry["model"], entry["result"]
        if model not in families or result >= len(planned):
            raise RunError(f"{run.path / ORDER}: does not belong to its run.json")
        numbers = [
            number
            for number, other in enumerate(planned)
            if other.debias is None and result in (number, other.responses_of)
        ]
        measurements = [by_plan[model, n] for n in numbers if (model, n) in by_plan]
        course = _course(entry["items"], settings["wave"], families[model], measurements)
        course = replace(course, waves=course.waves[:ended])
        courses[model, result] = replay(course, _outcomes(measurements))
    return SequentialProgress(list(families.values()), courses, settings["alpha"])


def run_families(
    measurements: Mapping[tuple[int, int], Measurement],
    thresholds: Thresholds,
    baseline: Run | None,
    alpha: float,
) -> dict[int, Family]:
    """Return the gates by index of the model; ``measurements``: as ``Run.by_plan``."""
    names = {measurement.result.model for measurement in measurements.values()}
    families: dict[int, Family] = {}
    for model in sorted({model for model, _ in measurements}):
        own = [m for (index, _), m in measurements.items() if index == model]
        name = own[0].result.model
        families[model] = model_family(
            f"{name}::" if len(names) > 1 else "",
            name,
            thresholds.for_model(name),
            [measurement.result for measurement in own],
            None if baseline is None else _baseline_items(baseline, own),
            alpha,
        )
    return families


def start_notes(families: Iterable[Family], settings: Sequential) -> list[str]:
    """Return notes for the start of a run: its certainty, and the gates that need all items.

    Raises ConfigError for a regression gate whose baseline is not complete.
    """
    notes = [
        f"sequential: waves of {settings.wave:,} items in random order; another verdict than a full"
        f" run's with probability <= {settings.alpha:.12g}"
    ]
    complete: dict[str, list[str]] = {}
    for gate in (gate for family in families for gate in family.complete):
        name = f"{gate.scope.id}::{gate.metric}"
        if gate.reason == NO_COMPLETE_BASELINE:
            raise ConfigError(
                f"--llm-sequential: {name}: {gate.reason}: complete the baseline, or set sequential"
                " = false in the table regression"
            )
        complete.setdefault(gate.reason, []).append(name)
    for reason, names in complete.items():
        notes.append(f"sequential: all items are needed by {shortened_list(names)} ({reason})")
    return notes


MARGINS = (0.01, 0.02, 0.05, 0.10)
"""Distances of the accuracy from a bound, for which the number of items is estimated."""


def expected_shares(families: Iterable[Family], benchmark: str, wave: int) -> list[float] | None:
    """Return the expected share of the items until an accuracy gate passes, at ``MARGINS`` above it.

    It is exact for the gate on the whole benchmark; other gates may need more. None without a gate on
    accuracy or gain that is decided by the number of right answers.
    """
    for gate in (gate for family in families for gate in family.early):
        rule, scope = gate.rule, gate.scope
        if scope.benchmark != benchmark or scope.subject is not None:
            continue
        if not isinstance(rule, CountRule) or gate.metric not in ("accuracy", "normalized_gain"):
            continue
        if [status for _, status in rule.statuses] != ["fail", "pass"]:
            continue
        size, least = rule.population, rule.statuses[1][0]
        boundary = count_boundary(size, least, gate.alpha, wave_ends(size, wave))
        return [
            operating(boundary, min(size, least + round(margin * size))).items / size
            for margin in MARGINS
        ]
    return None


def earlier_runs_note(root: Path, plan: Plan, entry: Mapping[str, Any]) -> str | None:
    """Return a note on earlier sequential runs of the same gates in another order, if any.

    Benchmarks and models are the same, and the seed is another. Each of them was another chance to get
    a wrong verdict.
    """
    seeds = []
    results = [[r.benchmark, r.data_hash, r.variants[0].fingerprint] for r in plan.results]
    for file in sorted(root.glob("*/run.json")):
        try:
            manifest = RunFolder(file.parent).read("run.json")
        except RunError:
            continue  # reported where it is used
        same = [
            [result["benchmark"], result["data_hash"], result["ways"][0]["fingerprint"]]
            for result in manifest["results"]
        ]
        is_same = manifest["models"] == list(plan.models) and same == results
        is_same &= manifest.get("sequential", {}).get("gates") == entry["gates"]
        if is_same and manifest.get("seed", 0) != plan.seed:
            seeds.append(str(manifest.get("seed", 0)))
    if not seeds:
        return None
    runs = "1 earlier run" if len(seeds) == 1 else f"{len(seeds)} earlier runs"
    return (
        f"sequential: {runs} of these gates in {run_name(root)} (seed {', '.join(dict.fromkeys(seeds))}): the"
        " probability of a wrong verdict holds for each run, not for the best of several"
    )


def _course(
    items: Sequence[Sequence[str]],
    wave: int,
    family: Family,
    measurements: Sequence[Measurement],
) -> Course:
    """Return the course of a planned result, whose answers have these measurements."""
    ordered = [OrderedItem(*item) for item in items]
    benchmark = measurements[0].result.benchmark
    scorers = {measurement.result.scorer for measurement in measurements}
    return Course(
        [ordered[start : start + wave] for start in range(0, len(ordered), wave)],
        [
            gate
            for gate in family.early
            if gate.scope.benchmark == benchmark and gate.scope.scorer in scorers
        ],
        # Gates on debiased and hybrid scores need the items of all results.
        {gate.scope.subject for gate in family.complete if gate.scope.benchmark == benchmark},
    )


def _outcomes(measurements: Sequence[Measurement]) -> dict[str, Mapping[str, Any]]:
    """Return scorer → item → outcomes, of items with all samples; none if nothing was measured."""
    return {
        measurement.result.scorer: {}
        if measurement_problem(measurement.result.counts)
        else {
            name: item
            for name, item in measurement.items.items()
            if len(item.outcomes) == measurement.result.samples
        }
        for measurement in measurements
    }


def _baseline_items(
    baseline: Run, own: Sequence[Measurement]
) -> dict[tuple[str, str], BaselineItems | None]:
    """Return (benchmark, scorer) → outcomes of the baseline, or None if they are not complete."""
    others = baseline.measurements()
    models = {measurement.result.model for measurement in others}
    items: dict[tuple[str, str], BaselineItems | None] = {}
    for measurement in own:
        result = measurement.result
        matching = [
            other
            for other in others
            if (other.result.benchmark, other.result.scorer) == (result.benchmark, result.scorer)
            and (other.result.model == result.model or len(models) == 1)
        ]
        key = (result.benchmark, result.scorer)
        items[key] = None
        if len(matching) == 1 and _is_complete(matching[0], measurement):
            items[key] = {
                name: (item.subject, item.outcomes[0] is Outcome.CORRECT)
                for name, item in matching[0].items.items()
            }
    return items


def _is_complete(baseline: Measurement, measurement: Measurement) -> bool:
    """Return whether a baseline has one answer to every item, under the same protocol and data."""
    return (
        baseline.result.complete
        and baseline.result.samples == 1
        and baseline.result.is_measurement
        and (baseline.fingerprint, baseline.data_hash)
        == (measurement.fingerprint, measurement.data_hash)
    )


def _early_verdict(base: Verdict, position: Position, alpha: float) -> Verdict:
    if position.decision is None and not position.answered:
        return base  # no wave was completed, or nothing was measured
    gate, answered = position.gate, len(position.answered)
    population = gate.rule.population
    estimate = gate.rule.estimate(position.answered, gate.alpha)
    evidence = None if position.decision is None else position.decision.log_evidence
    base = replace(
        base,
        measured=estimate.value if answered else None,
        interval=(estimate.low, estimate.high),
        n=answered,
        detectable=None,
        sequential={
            "asked": answered,
            "population": population,
            "log_e": evidence if evidence is not None and math.isfinite(evidence) else None,
            "alpha": gate.alpha,
        },
    )
    if position.decision is None:
        reason = f"sequential: undecided after {answered:,} of {answer_count(population)}"
        return replace(base, reason=f"{reason}: {estimate.text}" if answered else reason)
    reason = (
        f"sequential: {estimate.text}, {population - answered:,} not needed; another verdict than"
        f" a full run's with probability <= {alpha:.12g}"
    )
    return replace(base, status=position.decision.status, reason=reason)
