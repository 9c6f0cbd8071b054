"""Judging of results by the gates of a thresholds file.

The rules are those of ARCHITECTURE.md, "Rules without exceptions":

- An error is not an answer. A gate over items with errors fails with that reason, unless
  ``max_errors`` allows them; then accuracy, macro accuracy and gain pass only if they would pass for
  any answers in place of the errors.
- Nothing ran is not green. A gate over items that were not run is undecided, unless the items that
  were run are a random sample whose interval decides.
- What a server claims is verified. If all options tie on most items, nothing was measured, and every
  gate over these items is undecided.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace

from pytest_llmeval.core.validation import dotted_key
from pytest_llmeval.gates.clean import NOT_SEARCHED
from pytest_llmeval.gates.clean import Overlaps
from pytest_llmeval.gates.clean import judge_clean
from pytest_llmeval.gates.clean import judge_max_overlap
from pytest_llmeval.gates.estimates import is_random_sample
from pytest_llmeval.gates.evidence import NO_EVIDENCE
from pytest_llmeval.gates.evidence import Evidence
from pytest_llmeval.gates.evidence import PendingTest
from pytest_llmeval.gates.evidence import settle
from pytest_llmeval.gates.hybrids import judge_hybrids
from pytest_llmeval.gates.locations import gate_line
from pytest_llmeval.gates.locations import key_lines
from pytest_llmeval.gates.metric_verdicts import judge_metric
from pytest_llmeval.gates.order_verdicts import judge_orders
from pytest_llmeval.gates.regression import NO_BASELINE
from pytest_llmeval.gates.regression import Comparisons
from pytest_llmeval.gates.regression import NotCompared
from pytest_llmeval.gates.regression import judge_regression
from pytest_llmeval.gates.regression import verdict_without_baseline
from pytest_llmeval.gates.regression import verdicts_without_comparison
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.thresholds import ScorerGates
from pytest_llmeval.gates.thresholds import SubjectGates
from pytest_llmeval.gates.thresholds import Thresholds
from pytest_llmeval.gates.twin_verdicts import judge_twin
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import answer_count
from pytest_llmeval.gates.verdict import coverage_text
from pytest_llmeval.gates.verdict import error_count
from pytest_llmeval.gates.verdict import incomplete_reason
from pytest_llmeval.gates.verdict import measurement_problem
from pytest_llmeval.gates.verdict import shared_incomplete_reason
from pytest_llmeval.gates.verdict import verdict_without_bound
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
    overlaps: Overlaps = NOT_SEARCHED,
    evidence: Evidence = NO_EVIDENCE,
) -> list[Verdict]:
    """Return the verdicts on every gate of the file, for every model that ran.

    ``collected``: names of the benchmarks of this run, answered or not. ``comparisons``: those of
    the results with a baseline, or the reason for their absence. ``outcomes``: outcomes by item, for
    hybrid scores and twins. ``unknown_models``: models that have tables in the file and were never
    run. ``overlaps``: of the benchmarks with a corpus. ``evidence``: order tests of the run, and
    reference runs. The order is that of ``models`` and of the file, independent of the order of
    ``results``. Raises
    ValueError for two results of one model, benchmark and scorer.
    """
    by_benchmark: dict[tuple[str, str], dict[str, Result]] = {}
    for result in results:
        by_scorer = by_benchmark.setdefault((result.model, result.benchmark), {})
        if result.scorer in by_scorer:
            raise ValueError(f"two results for {result.benchmark!r} under {result.scorer!r}")
        by_scorer[result.scorer] = result
    requested = {*collected, *(result.benchmark for result in results)}
    # Results of models that are not in the list are judged, too: no result silently has no gate.
    all_models = dict.fromkeys([*models, *sorted({result.model for result in results})])
    gates = {model: thresholds.for_model(model) for model in all_models}
    verdicts: list[Verdict | PendingTest] = []
    for model, tables in gates.items():
        prefix = f"{model}::" if len(gates) > 1 else ""
        for name, table in tables.items():
            if name in requested:
                by_scorer = by_benchmark.get((model, name), {})
                scope = Scope(f"{prefix}{name}", model, name)
                judged = [
                    *_judge_benchmark(scope, table, by_scorer, comparisons),
                    *judge_hybrids(scope, table, by_scorer, outcomes or {}),
                    *judge_max_overlap(scope, table, overlaps),
                    *judge_clean(scope, table, by_scorer, overlaps),
                    *judge_orders(scope, table.contamination, evidence),
                    *judge_twin(scope, table.twin, by_benchmark, outcomes or {}, evidence),
                ]
                verdicts += [*_required(scope, table, by_scorer, alone=not judged), *judged]
    lines = key_lines(thresholds.text)
    return [
        replace(verdict, line=gate_line(verdict, lines))
        for verdict in [
            *settle(verdicts),
            *_not_run(gates, requested),
            *_models_not_run(thresholds, gates, unknown_models),
        ]
    ]


def _required(
    scope: Scope, table: BenchmarkGates, results: Mapping[str, Result], *, alone: bool
) -> Iterator[Verdict]:
    """Yield the verdict on ``required``; a table without gates (``alone``) always has one."""
    if table.required and not any(result.counts.attempted for result in results.values()):
        reason = "required but no item was run"
        yield verdict_without_bound(scope.id, scope.model, scope.benchmark, "fail", reason)
    elif alone:
        status: Status = "pass" if table.required else "not run"
        reason = "required, and was run" if table.required else "the table has no gate"
        yield verdict_without_bound(scope.id, scope.model, scope.benchmark, status, reason)


def _not_run(
    gates: Mapping[str, Mapping[str, BenchmarkGates]], requested: set[str]
) -> list[Verdict]:
    """Return a verdict for each benchmark that is in the file and was not requested."""
    only_model = next(iter(gates)) if len(gates) == 1 else None
    required: dict[str, bool] = {}
    for tables in gates.values():
        for name, table in tables.items():
            if name not in requested:
                required[name] = required.get(name, False) or bool(table.required)
    return [
        verdict_without_bound(name, only_model, name, "fail", "required but not run")
        if is_required
        else verdict_without_bound(name, only_model, name, "not run", "not part of this run")
        for name, is_required in required.items()
    ]


def _models_not_run(
    thresholds: Thresholds, run: Collection[str], unknown: Collection[str]
) -> Iterator[Verdict]:
    """Yield a verdict for each model that is in the file and did not run."""
    for model, table in thresholds.models.items():
        if model in run:
            continue
        status: Status = "fail" if table.required or model in unknown else "not run"
        reason = "required but not run" if table.required else "no model of this run"
        if model in unknown:
            reason += " or of an earlier one; models of this run: " + ", ".join(sorted(run))
        yield verdict_without_bound(f"models.{model}", model, "", status, reason)


def errors_allowed(thresholds: Thresholds, result: Result, subject: str) -> bool:
    """Return True if the file allows the errors of a result in a subject.

    They are allowed by ``max_errors`` of the whole result or of the subject.
    """
    table = thresholds.for_model(result.model).get(result.benchmark)
    if table is None:
        return False
    gates = table.scorers.get(result.scorer, table)
    if result.counts.error <= (gates.max_errors or 0):
        return True
    errors = result.subjects[subject].error
    tables = (gates.subjects.get(subject), gates.every_subject)
    return any(
        table and table.max_errors is not None and errors <= table.max_errors for table in tables
    )


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
    """Yield an undecided verdict for every gate of a table."""
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
                yield verdict_without_baseline(scope, comparisons)
            else:
                yield from verdicts_without_comparison(scope, gates.regression, reason)


def _judge_result(
    scope: Scope,
    gates: ScorerGates,
    result: Result | None,
    comparisons: Comparisons | NotCompared,
) -> Iterator[Verdict]:
    """Judge the gates of a table over one result."""
    if result is None:
        yield from _undecided(scope, gates, "no item was run", comparisons)
        return
    scope = replace(scope, scorer=result.scorer)
    limit = gates.max_errors or 0
    totals = result.counts  # computed once: a sum over all subjects
    incomplete = incomplete_reason(totals.error, limit)
    if (reason := measurement_problem(totals)) and not incomplete:
        yield from _undecided(scope, gates, reason, comparisons)
        return
    yield from _judge_table(scope, gates, result, incomplete)
    if gates.every_subject is not None:
        for subject in sorted(result.subjects):
            inner = _inside(scope, "every_subject::", subject)
            yield from _judge_subject(inner, subject, gates.every_subject, result, totals, limit)
    for subject, table in gates.subjects.items():
        inner = _inside(scope, "subjects.", subject)
        yield from _judge_subject(inner, subject, table, result, totals, limit)
    if gates.regression is not None:
        if isinstance(comparisons, NotCompared):
            yield verdict_without_baseline(scope, comparisons)
        else:
            comparison = comparisons.get(result.key, "the baseline has no such result")
            yield from judge_regression(scope, gates.regression, result, comparison, limit)


def _inside(scope: Scope, kind: str, subject: str) -> Scope:
    return replace(scope, id=f"{scope.id}::{kind}{subject}", subject=subject)


def _judge_subject(
    scope: Scope, subject: str, gates: SubjectGates, result: Result, totals: Counts, limit: int
) -> Iterator[Verdict]:
    """Judge the gates of one subject by its own items only.

    Errors are allowed by the subject's ``max_errors``, or else by the benchmark's ``limit``, which
    applies to the errors of all subjects (``totals``). The gates are undecided if all options tie on
    most items of the subject or of the benchmark.
    """
    counts = result.subjects.get(subject, Counts(0))
    if gates.max_errors is not None:
        incomplete = incomplete_reason(counts.error, gates.max_errors)
    else:
        incomplete = shared_incomplete_reason(counts.error, totals.error, limit)
    if (reason := measurement_problem(totals) or measurement_problem(counts)) and not incomplete:
        yield from _undecided(scope, gates, reason, NO_BASELINE)
    else:
        subject_result = replace(result, subjects={subject: counts})
        yield from _judge_table(scope, gates, subject_result, incomplete)


def _judge_table(
    scope: Scope,
    gates: ScorerGates | SubjectGates,
    result: Result,
    incomplete: str | None,
) -> Iterator[Verdict]:
    """Judge the metrics and ``max_errors`` of one table over the subjects of ``result``.

    ``incomplete``: the reason if there were more errors than allowed.
    """
    for metric, bound in gates.bounds().items():
        yield judge_metric(scope, metric, bound, result, incomplete)
    if gates.max_errors is not None:
        yield _judge_errors(scope, gates.max_errors, result)


def _judge_errors(scope: Scope, limit: int, result: Result) -> Verdict:
    counts = result.counts
    status: Status
    incomplete = incomplete_reason(counts.error, limit)
    if incomplete:
        status, reason = "fail", incomplete
    elif counts.attempted and not counts.answered:
        status, reason = "undecided", f"no item was answered: {error_count(counts.error)}"
    elif is_random_sample(result):
        # The limit applies to the run, and the run has answered the whole sample.
        basis = answer_count(counts.attempted, result.samples)
        status, reason = "pass", f"sampled: {error_count(counts.error)} in {basis}"
    elif counts.missing or not counts.total:
        status, reason = "undecided", coverage_text(result)
    else:
        basis = answer_count(counts.total, result.samples)
        status, reason = "pass", f"{error_count(counts.error)} in {basis}"
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
