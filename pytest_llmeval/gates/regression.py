"""A result against a baseline: drops that are beyond tolerance and no play of chance.

A drop fails where it is larger than the file tolerates and the exact paired test calls it
significant, each subject for itself with Holm-adjusted p. One that is larger but not
significant passes with a warning; an improvement never fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace

from pytest_llmeval.gates.estimates import is_draw
from pytest_llmeval.gates.thresholds import RegressionGates
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import answers
from pytest_llmeval.gates.verdict import drawn
from pytest_llmeval.gates.verdict import no_measurement
from pytest_llmeval.gates.verdict import too_many
from pytest_llmeval.gates.verdict import too_many_together
from pytest_llmeval.metrics import Comparison
from pytest_llmeval.metrics import Difference
from pytest_llmeval.metrics import Result

Comparisons = Mapping[tuple[str, str, str], Comparison | str]
"""(model, benchmark, scorer) → the comparison with the baseline, or why there is none."""


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Why a run was compared with no baseline, and the status of its regression gates then."""

    status: Status
    reason: str


NO_BASELINE = NotCompared(
    "undecided",
    "no baseline to compare with: --llm-baseline RUN, baseline = NAME in this table, or"
    " --llm-baseline none for the first run",
)
FIRST_RUN = NotCompared("not run", "--llm-baseline none: there is no earlier run to compare with")


def without_baseline(scope: Scope, why: NotCompared) -> Verdict:
    """The verdict on all regression gates of a table where the run has no baseline."""
    return scope.verdict("regression", None, why.status, why.reason)


def without_comparison(
    scope: Scope, gates: RegressionGates, reason: str, status: Status = "undecided"
) -> Iterator[Verdict]:
    """Every regression gate of a table, none of which can be measured."""
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
    """The regression gates of a table over one result; ``limit`` is its ``max_errors``."""
    errors = result.counts.error
    incomplete = too_many(errors, limit)
    if isinstance(comparison, str):
        status: Status = "fail" if incomplete else "undecided"
        yield from without_comparison(scope, gates, incomplete or comparison, status)
        return
    lacking = too_many(comparison.error_answers_baseline, limit)
    if lacking and not incomplete:
        yield from without_comparison(scope, gates, f"the baseline is {lacking}")
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
            if reason := no_measurement(counts):
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
                too_many_together(counts.error, errors, limit),
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
    """One drop: of the subject that the scope names, or over all items."""
    # Errors that are allowed for are taken against the candidate.
    judged = comparison.conservative or comparison
    found = judged.overall
    if scope.subject is not None:
        found = judged.subjects.get(scope.subject, _NOTHING)
    text = _text(limit, alpha)
    if incomplete or found.drop is None:
        items = answers(result.counts.total // result.samples)
        reason = f"none of {items} is in both runs" if result.counts.total else "no items"
        status: Status = "fail" if incomplete else "undecided"
        return scope.verdict(
            metric, None, status, incomplete or reason, text=text, maximum=limit, n=found.items
        )
    warning = None
    if not _all_paired(result, found):
        items = answers(result.counts.total // result.samples)
        status, reason = "undecided", f"only {found.items:,} of {items} are in both runs"
    else:
        beyond = found.drop > limit + TOLERANCE
        status = "fail" if beyond and found.adjusted <= alpha else "pass"
        plain = comparison.overall
        if scope.subject is not None:
            plain = comparison.subjects.get(scope.subject, _NOTHING)
        against = found.items - plain.items
        reason = _reason(result, found, scope.subject is not None, against)
        if beyond and status == "pass":
            warning = f"more than {limit:.12g} but not significant at alpha {alpha:.12g}"
    return scope.verdict(
        metric,
        None,
        status,
        reason,
        text=text,
        measured=found.drop,
        interval=found.interval,
        n=found.items,
        maximum=limit,
        detectable=found.detectable if status != "undecided" else None,
        warning=warning,
    )


_NOTHING = Difference(0, None, None, None, None, 0, 0, 1.0, 1.0, None)


def _all_paired(result: Result, found: Difference) -> bool:
    """Whether every item of the benchmark, or of the draw, is in both runs."""
    counts = result.counts
    if counts.missing and not is_draw(result):
        return False
    return found.items >= counts.attempted // result.samples


def _reason(result: Result, found: Difference, subject: bool, against: int) -> str:
    text = (
        f"{found.baseline:.4f} -> {found.candidate:.4f} over {answers(found.items)},"
        f" {found.newly_wrong:,} newly wrong, {found.newly_right:,} newly right,"
        f" p = {found.p_value:.3g}"
    )
    if subject:
        text += f" (Holm {found.adjusted:.3g})"
    if against > 0:
        text += f", {answers(against)} with errors taken against the candidate"
    return f"{drawn(result)}: {text}" if is_draw(result) else text


def _text(limit: float, alpha: float) -> str:
    return f"<= {limit:.12g}, alpha {alpha:.12g}"
