"""Verdicts on one metric of a result."""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.gates.bounds import AUDITED
from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.estimates import NO_CHANCE
from pytest_llmeval.gates.estimates import Estimate
from pytest_llmeval.gates.estimates import Measured
from pytest_llmeval.gates.estimates import audit_basis
from pytest_llmeval.gates.estimates import decide
from pytest_llmeval.gates.estimates import decide_by_interval
from pytest_llmeval.gates.estimates import decide_chance
from pytest_llmeval.gates.estimates import decide_sampled
from pytest_llmeval.gates.estimates import is_random_sample
from pytest_llmeval.gates.estimates import measure
from pytest_llmeval.gates.estimates import measure_audit
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import count_text
from pytest_llmeval.gates.verdict import coverage_text
from pytest_llmeval.gates.verdict import sample_text
from pytest_llmeval.metrics import Result


def judge_metric(
    scope: Scope, metric: str, bound: Bound, result: Result, incomplete: str | None = None
) -> Verdict:
    """Judge one metric of a result; ``incomplete``: the reason if there were too many errors."""
    if metric in AUDITED:
        return _judge_audited(scope, metric, bound, result, incomplete)
    counts = result.counts
    if incomplete and metric != "error_rate":
        # No value: over the answered items it is too high, over all items it blames the model.
        return scope.verdict(metric, bound, "fail", incomplete, n=counts.answered)
    sampled = is_random_sample(result)
    part = counts.missing > 0 and not sampled
    measured = measure(metric, result, bound.level, finite=sampled and not bound.by_interval)
    if isinstance(measured, str):
        reason = coverage_text(result) if part and counts.answered else measured
        return scope.verdict(metric, bound, "undecided", reason)
    if bound.chance and result.chance is None:
        return scope.verdict(metric, bound, "undecided", NO_CHANCE)
    if part:
        status: Status = "undecided"
        reason = coverage_text(result)
    elif bound.chance and result.chance is not None:
        status, reason = decide_chance(bound, measured, result.chance, scope.subject is not None)
    elif bound.by_interval:
        status, reason = decide_by_interval(bound, measured)
    elif sampled:
        status, reason = decide_sampled(bound, measured, scope.subject)
    else:
        status, reason = decide(bound, measured), ""
    if not part:
        counting = bound.by_interval or not sampled
        reason = _full_reason(metric, result, reason, sampled, counting)
    verdict = scope.verdict(
        metric,
        bound,
        status,
        reason,
        # With errors there are two values: show the one that is worse for the bound.
        measured=(measured.errors_wrong if bound.min is not None else measured.errors_right).value,
        interval=measured.interval,
        n=measured.n,
        detectable=None if part else measured.detectable,
    )
    return replace(verdict, min=result.chance, max=result.chance) if bound.chance else verdict


def _judge_audited(
    scope: Scope, metric: str, bound: Bound, result: Result, incomplete: str | None
) -> Verdict:
    """Judge a metric of the permutation audit, which concerns the requested items."""
    if incomplete:
        return scope.verdict(metric, bound, "fail", incomplete, n=result.counts.answered)
    measured = measure_audit(metric, result.audit)
    if isinstance(measured, str) or result.audit is None:
        return scope.verdict(metric, bound, "undecided", str(measured))
    value, interval = measured
    status: Status = "undecided"
    reason = coverage_text(result)
    if not result.counts.missing:
        estimate = Estimate(value, value, value)
        status = decide(bound, Measured(estimate, estimate, result.audit.items))
        reason = audit_basis(result.audit)
    return scope.verdict(
        metric, bound, status, reason, measured=value, interval=interval, n=result.audit.items
    )


def _full_reason(metric: str, result: Result, reason: str, sampled: bool, counting: bool) -> str:
    """Return the reason, preceded by the sample size and the counts."""
    text = "; ".join(filter(None, [count_text(metric, result) if counting else "", reason]))
    return f"{sample_text(result)}: {text}" if sampled else text
