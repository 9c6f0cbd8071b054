"""Gates on hybrid scores, ``[benchmarks.NAME.hybrids]``; each key contains the weights."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping

from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.estimates import Estimate
from pytest_llmeval.gates.estimates import Measured
from pytest_llmeval.gates.estimates import decide
from pytest_llmeval.gates.estimates import decide_by_interval
from pytest_llmeval.gates.locations import HYBRID_PREFIX
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import answer_count
from pytest_llmeval.gates.verdict import coverage_text
from pytest_llmeval.gates.verdict import incomplete_reason
from pytest_llmeval.gates.verdict import measurement_problem
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import Hybrid
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import hybrid_or_reason
from pytest_llmeval.metrics import hybrid_weights


def judge_hybrids(
    scope: Scope, table: BenchmarkGates, results: Mapping[str, Result], outcomes: FirstOutcomes
) -> Iterator[Verdict]:
    """Judge every hybrid of a benchmark's table over the items that all of its scorers answered.

    A gate fails if a scorer has more errors than its ``max_errors``. It is undecided if a scorer
    did not run, has (allowed) errors or different items, or is not a measurement, and if only part
    of the items ran, random samples of items included.
    """
    by_scorer = {
        scorer: outcomes.get((scope.model, scope.benchmark, scorer), {}) for scorer in results
    }
    for name, bound in table.hybrids.items():
        weights = hybrid_weights(name)
        parts = [results[scorer] for scorer in weights if scorer in results]
        hybrid = hybrid_or_reason(weights, by_scorer, bound.level)
        yield _judge(scope, f"{HYBRID_PREFIX}{name}", bound, table, parts, hybrid)


def _judge(
    scope: Scope,
    metric: str,
    bound: Bound,
    table: BenchmarkGates,
    parts: list[Result],
    hybrid: Hybrid | str,
) -> Verdict:
    status: Status = "undecided"
    for part in parts:
        limit = table.scorers.get(part.scorer, table).max_errors or 0
        incomplete = incomplete_reason(part.counts.error, limit)
        if incomplete:
            return scope.verdict(metric, bound, "fail", f"{part.scorer} is {incomplete}")
    for part in parts:
        if reason := measurement_problem(part.counts):
            return scope.verdict(metric, bound, status, f"{part.scorer} is {reason}")
    if isinstance(hybrid, str):
        return scope.verdict(metric, bound, status, hybrid)
    low, high = hybrid.interval
    missing = [part for part in parts if part.counts.missing]
    if missing:
        reason = coverage_text(missing[0])
    elif bound.by_interval:
        status, reason = decide_by_interval(bound, _measured(hybrid))
    else:
        status, reason = decide(bound, _measured(hybrid)), ""
    basis = f"{answer_count(hybrid.items)} under {len(parts)} scorers"
    return scope.verdict(
        metric,
        bound,
        status,
        "; ".join(filter(None, (basis if not missing else "", reason))),
        measured=hybrid.value,
        interval=(low, high),
        n=hybrid.items,
        detectable=None if missing else hybrid.detectable,
    )


def _measured(hybrid: Hybrid) -> Measured:
    estimate = Estimate(hybrid.value, *hybrid.interval)
    return Measured(estimate, estimate, hybrid.items, hybrid.detectable)
