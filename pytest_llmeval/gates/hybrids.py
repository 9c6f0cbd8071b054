"""Gates on hybrid scores: ``[benchmarks.NAME.hybrids]``, the weights in each one's name."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping

from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.estimates import Estimate
from pytest_llmeval.gates.estimates import Measured
from pytest_llmeval.gates.estimates import decide
from pytest_llmeval.gates.estimates import decide_by_interval
from pytest_llmeval.gates.locations import HYBRIDS
from pytest_llmeval.gates.thresholds import BenchmarkGates
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import answers
from pytest_llmeval.gates.verdict import no_measurement
from pytest_llmeval.gates.verdict import not_all
from pytest_llmeval.gates.verdict import too_many
from pytest_llmeval.metrics import FirstOutcomes
from pytest_llmeval.metrics import Hybrid
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import hybrid_or_reason
from pytest_llmeval.metrics import hybrid_weights


def judge_hybrids(
    scope: Scope, table: BenchmarkGates, results: Mapping[str, Result], outcomes: FirstOutcomes
) -> Iterator[Verdict]:
    """Every hybrid of a benchmark's table, over the items that all of its scorers answered.

    More errors than a scorer's ``max_errors`` fail it (rule 1 of ARCHITECTURE.md). It stays undecided where a scorer
    did not run, has errors that are allowed, or other items, or is not a measurement, and of a part
    of the items, a draw, too.
    """
    own = {scorer: outcomes.get((scope.model, scope.benchmark, scorer), {}) for scorer in results}
    for name, bound in table.hybrids.items():
        weights = hybrid_weights(name)
        parts = [results[scorer] for scorer in weights if scorer in results]
        found = hybrid_or_reason(weights, own, bound.level)
        yield _judge(scope, f"{HYBRIDS}{name}", bound, table, parts, found)


def _judge(
    scope: Scope,
    metric: str,
    bound: Bound,
    table: BenchmarkGates,
    parts: list[Result],
    found: Hybrid | str,
) -> Verdict:
    status: Status = "undecided"
    for part in parts:
        limit = table.scorers.get(part.scorer, table).max_errors or 0
        incomplete = too_many(part.counts.error, limit)
        if incomplete:
            return scope.verdict(metric, bound, "fail", f"{part.scorer} is {incomplete}")
    for part in parts:
        if reason := no_measurement(part.counts):
            return scope.verdict(metric, bound, status, f"{part.scorer} is {reason}")
    if isinstance(found, str):
        return scope.verdict(metric, bound, status, found)
    low, high = found.interval
    missing = [part for part in parts if part.counts.missing]
    if missing:
        reason = not_all(missing[0])
    elif bound.by_interval:
        status, reason = decide_by_interval(bound, _measured(found))
    else:
        status, reason = decide(bound, _measured(found)), ""
    told = f"{answers(found.items)} under {len(parts)} scorers"
    return scope.verdict(
        metric,
        bound,
        status,
        "; ".join(filter(None, (told if not missing else "", reason))),
        measured=found.value,
        interval=(low, high),
        n=found.items,
        detectable=None if missing else found.detectable,
    )


def _measured(found: Hybrid) -> Measured:
    estimate = Estimate(found.value, *found.interval)
    return Measured(estimate, estimate, found.items, found.detectable)
