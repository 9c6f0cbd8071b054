"""Gates and results to verdicts: what passed, what failed, and what could not be decided.

Rule 1: an error is not an answer. A gate over items that ended in errors fails, saying so,
unless ``max_errors`` allows them; then accuracy, macro accuracy and gain pass only if they
would pass whatever those items had been answered. Rule 2: a gate over items that were not run is
undecided, unless those that were run are a random draw whose interval decides. Rule 11: where all
options tie on most of the items, nothing was measured and every gate over them is undecided.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace

from pytest_llmeval.core.validation import dotted_key
from pytest_llmeval.gates.bounds import AUDITED
from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.estimates import NO_CHANCE
from pytest_llmeval.gates.estimates import Estimate
from pytest_llmeval.gates.estimates import Measured
from pytest_llmeval.gates.estimates import audited
from pytest_llmeval.gates.estimates import audited_of
from pytest_llmeval.gates.estimates import decide
from pytest_llmeval.gates.estimates import decide_by_interval
from pytest_llmeval.gates.estimates import decide_chance
from pytest_llmeval.gates.estimates import decide_finite
from pytest_llmeval.gates.estimates import is_draw
from pytest_llmeval.gates.estimates import measure
from pytest_llmeval.gates.hybrids import judge_hybrids
from pytest_llmeval.gates.locations import line_of
from pytest_llmeval.gates.locations import places
from pytest_llmeval.gates.regression import NO_BASELINE
from pytest_llmeval.gates.regression import Comparisons
from pytest_llmeval.gates.regression import NotCompared
from pytest_llmeval.gates.regression import judge_regression
from pytest_llmeval.gates.regression import without_baseline
from pytest_llmeval.gates.regression import without_comparison
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.thresholds import ScorerGates
from pytest_llmeval.gates.thresholds import SubjectGates
from pytest_llmeval.gates.thresholds import Thresholds
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import absent
from pytest_llmeval.gates.verdict import answers
from pytest_llmeval.gates.verdict import counted
from pytest_llmeval.gates.verdict import drawn
from pytest_llmeval.gates.verdict import errors
from pytest_llmeval.gates.verdict import no_measurement
from pytest_llmeval.gates.verdict import not_all
from pytest_llmeval.gates.verdict import too_many
from pytest_llmeval.gates.verdict import too_many_together
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import Result


def judge(
    thresholds: Thresholds,
    results: Sequence[Result],
    models: Sequence[str],
    collected: Iterable[str],
    comparisons: Comparisons | NotCompared = NO_BASELINE,
    outcomes: FirstOutcomes | None = None,
    unknown_models: Collection[str] = (),
) -> list[Verdict]:
    """Verdicts on every gate of the file, for every model that ran.

    ``collected`` names the benchmarks of this run, answered or not. ``comparisons`` are those of
    the results with a baseline, or why there is none. ``outcomes`` are what hybrid scores are
    made of. ``unknown_models`` have tables in the file and were never run. The order is that of
    models and of the file, whatever the order of ``results``.
    """
    found: dict[tuple[str, str], dict[str, Result]] = {}
    for result in results:
        by_scorer = found.setdefault((result.model, result.benchmark), {})
        if result.scorer in by_scorer:
            raise ValueError(f"two results for {result.benchmark!r} under {result.scorer!r}")
        by_scorer[result.scorer] = result
    asked = {*collected, *(result.benchmark for result in results)}
    # A result of a model that is not in the list is judged too: nothing stays ungated unseen.
    every = dict.fromkeys([*models, *sorted({result.model for result in results})])
    gates = {model: thresholds.for_model(model) for model in every}
    verdicts = []
    for model, tables in gates.items():
        prefix = f"{model}::" if len(gates) > 1 else ""
        for name, table in tables.items():
            if name in asked:
                own = found.get((model, name), {})
                scope = Scope(f"{prefix}{name}", model, name)
                decided = [
                    *_judge_benchmark(scope, table, own, comparisons),
                    *judge_hybrids(scope, table, own, outcomes or {}),
                ]
                verdicts += [*_required(scope, table, own, alone=not decided), *decided]
    lines = places(thresholds.text)
    return [
        replace(verdict, line=line_of(verdict, lines))
        for verdict in [
            *verdicts,
            *_not_run(gates, asked),
            *_models_not_run(thresholds, gates, unknown_models),
        ]
    ]


def _required(
    scope: Scope, table: BenchmarkGates, results: Mapping[str, Result], *, alone: bool
) -> Iterator[Verdict]:
    """The verdict on ``required``; of a table that gives nothing else one in any case."""
    if table.required and not any(result.counts.attempted for result in results.values()):
        reason = "required but no item was run"
        yield absent(scope.id, scope.model, scope.benchmark, "fail", reason)
    elif alone:
        status: Status = "pass" if table.required else "not run"
        reason = "required, and was run" if table.required else "the table has no gate"
        yield absent(scope.id, scope.model, scope.benchmark, status, reason)


def _not_run(gates: Mapping[str, Mapping[str, BenchmarkGates]], asked: set[str]) -> list[Verdict]:
    """One verdict for each benchmark that the file names and the run did not ask for."""
    only = next(iter(gates)) if len(gates) == 1 else None
    required: dict[str, bool] = {}
    for tables in gates.values():
        for name, table in tables.items():
            if name not in asked:
                required[name] = required.get(name, False) or bool(table.required)
    return [
        absent(name, only, name, "fail", "required but not run")
        if needed
        else absent(name, only, name, "not run", "not part of this run")
        for name, needed in required.items()
    ]


def _models_not_run(
    thresholds: Thresholds, run: Collection[str], unknown: Collection[str]
) -> Iterator[Verdict]:
    """One verdict for each model that the file names and that did not run."""
    for model, table in thresholds.models.items():
        if model in run:
            continue
        status: Status = "fail" if table.required or model in unknown else "not run"
        reason = "required but not run" if table.required else "no model of this run"
        if model in unknown:
            reason += " or of an earlier one; its results are of " + ", ".join(sorted(run))
        yield absent(f"models.{model}", model, "", status, reason)


def errors_allowed(thresholds: Thresholds, result: Result, subject: str) -> bool:
    """Whether the file allows for the errors that a result has in a subject.

    By ``max_errors`` of the whole result, or of the subject alone.
    """
    table = thresholds.for_model(result.model).get(result.benchmark)
    if table is None:
        return False
    gates = table.scorers.get(result.scorer, table)
    if result.counts.error <= (gates.max_errors or 0):
        return True
    here = result.subjects[subject].error
    own = (gates.subjects.get(subject), gates.every_subject)
    return any(one and one.max_errors is not None and here <= one.max_errors for one in own)


def _judge_benchmark(
    scope: Scope,
    table: BenchmarkGates,
    results: Mapping[str, Result],
    comparisons: Comparisons | NotCompared,
) -> Iterator[Verdict]:
    if table.direct:
        if len(results) > 1:
            reason = (
                f"runs under {len(results)} scorers ({', '.join(sorted(results))}):"
                f" put its gates under [{dotted_key(('benchmarks', scope.benchmark, 'scorers'))}.NAME]"
            )
            yield from _undecided(scope, table, reason, comparisons)
        else:
            yield from _judge_result(scope, table, next(iter(results.values()), None), comparisons)
    for scorer, gates in table.scorers.items():
        inner = replace(scope, id=f"{scope.id}::scorers.{scorer}", scorer=scorer)
        if results and scorer not in results:
            yield from _undecided(inner, gates, f"scorer {scorer!r} did not run", comparisons)
        else:
            yield from _judge_result(inner, gates, results.get(scorer), comparisons)


def _undecided(
    scope: Scope,
    gates: ScorerGates | SubjectGates,
    reason: str,
    comparisons: Comparisons | NotCompared,
) -> Iterator[Verdict]:
    """Every gate of a table, none of which can be decided."""
    for metric, bound in gates.bounds().items():
        yield scope.verdict(metric, bound, "undecided", reason)
    if gates.max_errors is not None:
        limit = gates.max_errors
        yield scope.verdict(
            "max_errors", None, "undecided", reason, text=f"<= {limit}", maximum=limit
        )
    if isinstance(gates, ScorerGates):
        if gates.every_subject is not None:
            inner = replace(scope, id=f"{scope.id}::every_subject")
            yield from _undecided(inner, gates.every_subject, reason, comparisons)
        for subject, table in gates.subjects.items():
            yield from _undecided(_inside(scope, "subjects.", subject), table, reason, comparisons)
        if gates.regression is not None:
            if isinstance(comparisons, NotCompared):
                yield without_baseline(scope, comparisons)
            else:
                yield from without_comparison(scope, gates.regression, reason)


def _judge_result(
    scope: Scope,
    gates: ScorerGates,
    result: Result | None,
    comparisons: Comparisons | NotCompared,
) -> Iterator[Verdict]:
    """The gates of a table over one result."""
    if result is None:
        yield from _undecided(scope, gates, "no item was run", comparisons)
        return
    scope = replace(scope, scorer=result.scorer)
    limit = gates.max_errors or 0
    every = result.counts  # once: a sum over all subjects
    incomplete = too_many(every.error, limit)
    if (reason := no_measurement(every)) and not incomplete:
        yield from _undecided(scope, gates, reason, comparisons)
        return
    yield from _judge_table(scope, gates, result, incomplete)
    if gates.every_subject is not None:
        for subject in sorted(result.subjects):
            inner = _inside(scope, "every_subject::", subject)
            yield from _judge_subject(inner, subject, gates.every_subject, result, every, limit)
    for subject, table in gates.subjects.items():
        inner = _inside(scope, "subjects.", subject)
        yield from _judge_subject(inner, subject, table, result, every, limit)
    if gates.regression is not None:
        if isinstance(comparisons, NotCompared):
            yield without_baseline(scope, comparisons)
        else:
            comparison = comparisons.get(result.key, "the baseline has no such result")
            yield from judge_regression(scope, gates.regression, result, comparison, limit)


def _inside(scope: Scope, kind: str, subject: str) -> Scope:
    return replace(scope, id=f"{scope.id}::{kind}{subject}", subject=subject)


def _judge_subject(
    scope: Scope, subject: str, gates: SubjectGates, result: Result, every: Counts, limit: int
) -> Iterator[Verdict]:
    """The gates of one subject, decided by its own items, whatever else was run.

    Its errors are allowed by its own ``max_errors``, or else by the benchmark's: then they
    share that allowance with those of all subjects, ``every``. Its items measure nothing where
    all options tie on most of them, or on most of all.
    """
    counts = result.subjects.get(subject, Counts(0))
    if gates.max_errors is not None:
        incomplete = too_many(counts.error, gates.max_errors)
    else:
        incomplete = too_many_together(counts.error, every.error, limit)
    if (reason := no_measurement(every) or no_measurement(counts)) and not incomplete:
        yield from _undecided(scope, gates, reason, NO_BASELINE)
    else:
        own = replace(result, subjects={subject: counts})
        yield from _judge_table(scope, gates, own, incomplete)


def _judge_table(
    scope: Scope, gates: ScorerGates | SubjectGates, result: Result, incomplete: str | None
) -> Iterator[Verdict]:
    """The metrics and ``max_errors`` of one table over the subjects that ``result`` has.

    ``incomplete`` says that there were more errors than allowed.
    """
    for metric, bound in gates.bounds().items():
        yield _judge_metric(scope, metric, bound, result, incomplete)
    if gates.max_errors is not None:
        yield _judge_errors(scope, gates.max_errors, result)


def _judge_errors(scope: Scope, limit: int, result: Result) -> Verdict:
    counts = result.counts
    status: Status
    incomplete = too_many(counts.error, limit)
    if incomplete:
        status, reason = "fail", incomplete
    elif counts.attempted and not counts.answered:
        status, reason = "undecided", f"no item was answered: {errors(counts.error)}"
    elif is_draw(result):
        # A limit on what may fail of the run, which has run all that was drawn.
        told = answers(counts.attempted, result.samples)
        status, reason = "pass", f"sampled: {errors(counts.error)} in {told}"
    elif counts.missing or not counts.total:
        status, reason = "undecided", not_all(result)
    else:
        told = answers(counts.total, result.samples)
        status, reason = "pass", f"{errors(counts.error)} in {told}"
    return scope.verdict(
        "max_errors",
        None,
        status,
        reason,
        text=f"<= {limit}",
        measured=float(counts.error),
        n=counts.attempted,
        maximum=limit,
    )


def _judge_metric(
    scope: Scope, metric: str, bound: Bound, result: Result, incomplete: str | None
) -> Verdict:
    if metric in AUDITED:
        return _judge_audited(scope, metric, bound, result, incomplete)
    counts = result.counts
    if incomplete and metric != "error_rate":
        # No number: the one over the answered items flatters, the other blames the model.
        return scope.verdict(metric, bound, "fail", incomplete, n=counts.answered)
    draw = is_draw(result)
    part = counts.missing > 0 and not draw
    measured = measure(metric, result, bound.level, finite=draw and not bound.by_interval)
    if isinstance(measured, str):
        reason = not_all(result) if part and counts.answered else measured
        return scope.verdict(metric, bound, "undecided", reason)
    if bound.chance and result.chance is None:
        return scope.verdict(metric, bound, "undecided", NO_CHANCE)
    if part:
        status: Status = "undecided"
        reason = not_all(result)
    elif bound.chance and result.chance is not None:
        status, reason = decide_chance(bound, measured, result.chance, scope.subject is not None)
    elif bound.by_interval:
        status, reason = decide_by_interval(bound, measured)
    elif draw:
        status, reason = decide_finite(bound, measured, scope.subject)
    else:
        status, reason = decide(bound, measured), ""
    if not part:
        reason = _tell(metric, result, reason, draw, counting=bound.by_interval or not draw)
    verdict = scope.verdict(
        metric,
        bound,
        status,
        reason,
        # Of the two values that errors leave, the one that the bound is harder on.
        measured=(measured.least if bound.min is not None else measured.most).value,
        interval=measured.interval,
        n=measured.n,
        detectable=None if part else measured.detectable,
    )
    return replace(verdict, min=result.chance, max=result.chance) if bound.chance else verdict


def _judge_audited(
    scope: Scope, metric: str, bound: Bound, result: Result, incomplete: str | None
) -> Verdict:
    """A metric of the permutation audit, which is about the items that were asked for."""
    if incomplete:
        return scope.verdict(metric, bound, "fail", incomplete, n=result.counts.answered)
    found = audited(metric, result.audit)
    if isinstance(found, str) or result.audit is None:
        return scope.verdict(metric, bound, "undecided", str(found))
    value, interval = found
    status: Status = "undecided"
    reason = not_all(result)
    if not result.counts.missing:
        estimate = Estimate(value, value, value)
        status = decide(bound, Measured(estimate, estimate, result.audit.items))
        reason = audited_of(result.audit)
    return scope.verdict(
        metric, bound, status, reason, measured=value, interval=interval, n=result.audit.items
    )


def _tell(metric: str, result: Result, reason: str, draw: bool, counting: bool) -> str:
    """The reason, behind what was drawn and counted."""
    text = "; ".join(filter(None, [counted(metric, result) if counting else "", reason]))
    return f"{drawn(result)}: {text}" if draw else text
