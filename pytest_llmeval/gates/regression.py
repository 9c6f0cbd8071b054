"""Regression gates: drops of a result against a baseline.

A drop fails if it is larger than the file allows and the exact paired test is significant; the p
values of subjects are Holm-adjusted. A drop that is larger but not significant passes with a
warning; an improvement never fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace

from pytest_llmeval.gates.estimates import is_random_sample
from pytest_llmeval.gates.thresholds import RegressionGates
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import answer_count
from pytest_llmeval.gates.verdict import incomplete_reason
from pytest_llmeval.gates.verdict import measurement_problem
from pytest_llmeval.gates.verdict import sample_text
from pytest_llmeval.gates.verdict import shared_incomplete_reason
from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import Difference
from pytest_llmeval.metrics import Result

Comparisons = Mapping[tuple[str, str, str], Comparison | str]
"""(model, benchmark, scorer) → the comparison with the baseline, or the reason for its absence."""


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Reason why a run was not compared with a baseline, and the status of its regression gates."""

    status: Status
    reason: str


NO_BASELINE = NotCompared(
    "undecided",
    "no baseline to compare with: --llm-baseline RUN, baseline = NAME in this table, or"
    " --llm-baseline none for the first run",
)
FIRST_RUN = NotCompared("not run", "--llm-baseline none: there is no earlier run to compare with")


def verdict_without_baseline(scope: Scope, why: NotCompared) -> Verdict:
    """Return the verdict on all regression gates of a table for a run without a baseline."""
    return scope.verdict("regression", None, why.status, why.reason)


def verdicts_without_comparison(
    scope: Scope, gates: RegressionGates, reason: str, status: Status = "undecided"
) -> Iterator[Verdict]:
    """Yield a verdict on every regression gate of a table that cannot be measured."""
    inner = replace(scope, id=f"{scope.id}::regression")
    each = replace(inner, id=f"{inner.id}::every_subject")
    for where, metric, limit in (
        (inner, "max_drop", gates.max_drop),
        (each, "max_subject_drop", gates.max_subject_drop),
    ):
        if limit is not None:
            text = _text(limit, gates.alpha)
            yield where.verdict(metric, None, status, reason, text=text, maximum=limit)


def judge_regression(
    scope: Scope, gates: RegressionGates, result: Result, comparison: Comparison | str, limit: int
) -> Iterator[Verdict]:
    """Judge the regression gates of a table over one result; ``limit`` is its ``max_errors``."""
    errors = result.counts.error
    incomplete = incomplete_reason(errors, limit)
    if isinstance(comparison, str):
        status: Status = "fail" if incomplete else "undecided"
        yield from verdicts_without_comparison(scope, gates, incomplete or comparison, status)
        return
    baseline_reason = incomplete_reason(comparison.error_answers_baseline, limit)
    if baseline_reason and not incomplete:
        yield from verdicts_without_comparison(scope, gates, f"the baseline is {baseline_reason}")
        return
    inner = replace(scope, id=f"{scope.id}::regression")
    if gates.max_drop is not None:
        yield _judge_drop(
            inner, "max_drop", gates.max_drop, gates.alpha, result, comparison, incomplete
        )
    if gates.max_subject_drop is not None:
        for subject in sorted(result.subjects):
            counts = result.subjects[subject]
            where = replace(inner, id=f"{inner.id}::every_subject::{subject}", subject=subject)
            if reason := measurement_problem(counts):
                text, most = _text(gates.max_subject_drop, gates.alpha), gates.max_subject_drop
                yield where.verdict(
                    "max_subject_drop", None, "undecided", reason, text=text, maximum=most
                )
                continue
            yield _judge_drop(
                where,
                "max_subject_drop",
                gates.max_subject_drop,
                gates.alpha,
                replace(result, subjects={subject: counts}),
                comparison,
                shared_incomplete_reason(counts.error, errors, limit),
            )


def _judge_drop(
    scope: Scope,
    metric: str,
    limit: float,
    alpha: float,
    result: Result,
    comparison: Comparison,
    incomplete: str | None,
) -> Verdict:
    """Judge one drop: of the subject that the scope names, or over all items."""
    # Allowed errors count against the candidate.
    judged = comparison.conservative or comparison
    difference = judged.overall
    if scope.subject is not None:
        difference = judged.subjects.get(scope.subject, _NOTHING)
    text = _text(limit, alpha)
    if incomplete or difference.drop is None:
        items = answer_count(result.counts.total // result.samples)
        reason = f"none of {items} is in both runs" if result.counts.total else "no items"
        status: Status = "fail" if incomplete else "undecided"
        return scope.verdict(
            metric, None, status, incomplete or reason, text=text, maximum=limit, n=difference.items
        )
    warning = None
    if not _all_paired(result, difference):
        items = answer_count(result.counts.total // result.samples)
        status, reason = "undecided", f"only {difference.items:,} of {items} are in both runs"
    else:
        beyond = difference.drop > limit + TOLERANCE
        status = "fail" if beyond and difference.adjusted <= alpha else "pass"
        plain = comparison.overall
        if scope.subject is not None:
            plain = comparison.subjects.get(scope.subject, _NOTHING)
        against = difference.items - plain.items
        reason = _reason(result, difference, scope.subject is not None, against)
        if beyond and status == "pass":
            warning = f"more than {limit:.12g} but not significant at alpha {alpha:.12g}"
    return scope.verdict(
        metric,
        None,
        status,
        reason,
        text=text,
        measured=difference.drop,
        interval=difference.interval,
        n=difference.items,
        maximum=limit,
        detectable=difference.detectable if status != "undecided" else None,
        warning=warning,
    )


_NOTHING = Difference(0, None, None, None, None, 0, 0, 1.0, 1.0, None)


def _all_paired(result: Result, difference: Difference) -> bool:
    """Return True if every item of the benchmark, or of the random sample, is in both runs."""
    counts = result.counts
    if counts.missing and not is_random_sample(result):
        return False
    return difference.items >= counts.attempted // result.samples


def _reason(result: Result, difference: Difference, subject: bool, against: int) -> str:
    text = (
        f"{difference.baseline:.4f} -> {difference.candidate:.4f} over {answer_count(difference.items)},"
        f" {difference.newly_wrong:,} newly wrong, {difference.newly_right:,} newly right,"
        f" p = {difference.p_value:.3g}"
    )
    if subject:
        text += f" (Holm {difference.adjusted:.3g})"
    if against > 0:
        text += f", {answer_count(against)} with errors counted against the candidate"
    return f"{sample_text(result)}: {text}" if is_random_sample(result) else text


def _text(limit: float, alpha: float) -> str:
    return f"<= {limit:.12g}, alpha {alpha:.12g}"
