"""Measured values of results, with intervals, and their comparison with bounds.

With errors the value is unknown, so it is computed twice: with all errors as wrong and with all
errors as right answers. For a random sample of items (``--llm-limit``) it is the estimate for the
whole benchmark, in which subjects are weighted by their number of items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.bias.arms import position_of
from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.bounds import percent
from pytest_llmeval.gates.thresholds import pass_key
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.gates.verdict import coverage_text
from pytest_llmeval.gates.verdict import error_count
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import Tally
from pytest_llmeval.metrics import detectable_drop
from pytest_llmeval.metrics import effective_size
from pytest_llmeval.metrics import macro_accuracy
from pytest_llmeval.metrics import macro_effective_size
from pytest_llmeval.metrics import macro_interval
from pytest_llmeval.metrics import mean_pass_at_k
from pytest_llmeval.metrics import mean_pass_hat_k
from pytest_llmeval.metrics import pass_at_k_interval
from pytest_llmeval.metrics import pass_hat_k_interval
from pytest_llmeval.metrics import score_interval
from pytest_llmeval.metrics import stratified_accuracy
from pytest_llmeval.metrics import stratified_effective_size
from pytest_llmeval.metrics import stratified_interval
from pytest_llmeval.metrics import tally_interval
from pytest_llmeval.metrics.bias.audit import FamilyResult

NO_AUDIT = "no permutation audit: run it with --llm-permutations"


def measure_audit(
    metric: str, audit: Audit | None
) -> tuple[float, tuple[float, float] | None] | str:
    """Return the metric over the audit's main family of arms and its 95 % interval, or a reason.

    The result is a text if the metric is undefined; the interval is None for metrics without one.
    """
    if audit is None:
        return NO_AUDIT
    family = audit.main
    if family is None:
        return f"{metric} is not defined: no item has an answer in every order"
    value = _values(family)[metric]
    if value is None:
        return f"{metric} is not defined: no answer could be read"
    return value, family.consistency_interval if metric == "consistency" else None


def audit_basis(audit: Audit) -> str:
    """Return what an audit's value was computed from, as text."""
    family = audit.main
    assert family is not None
    # The original order is one of the rotations, but not an arm that moves the answer.
    orders = len(family.arms) + (position_of(family.arms[0]) is None)
    return f"{family.items:,} items in the {orders} orders of {family.name!r}"


def _values(family: FamilyResult) -> dict[str, float | None]:
    return {
        "position_range": family.position_range,
        "consistency": family.consistency,
        "recall_std": family.recall_std,
    }


NO_CHANCE = "no chance level to compare with"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Estimates of a metric; the two are equal if there are no errors."""

    errors_wrong: Estimate
    """Estimate with all errors counted as wrong answers."""
    errors_right: Estimate
    """Estimate with all errors counted as right answers."""
    n: int
    """As ``Verdict.n``."""
    detectable: float | None = None
    """Smallest drop detected with 80 % power."""

    @property
    def interval(self) -> tuple[float, float]:
        """Union of both intervals: it holds for any answers in place of the errors."""
        return self.errors_wrong.low, self.errors_right.high


def is_random_sample(result: Result) -> bool:
    """Return True if the items were sampled at random and the whole sample was run."""
    return result.counts.missing > 0 and result.sampled


def measure(
    metric: str, result: Result, confidence: float = 0.95, *, finite: bool = False
) -> Measured | str:
    """Return the metric over the items that were run, or the reason why it is undefined.

    ``finite``: the interval of a random sample is for the value over the whole benchmark (with
    finite-population correction, except for ``pass@k``, whose interval is conservative); otherwise
    it is for the model on any items of this kind.
    """
    counts = result.counts
    if not (counts.attempted if metric == "error_rate" else counts.answered):
        return (
            f"no item was answered: {error_count(counts.error)}"
            if counts.error
            else coverage_text(result)
        )
    if is_random_sample(result):
        for subject, part in sorted(result.subjects.items()):
            if part.missing == part.total > 0:
                return f"no item of {subject} was sampled"
    key = pass_key(metric)
    if key is not None:
        return _measure_pass(metric, *key, result, confidence)
    return _MEASURES[metric](result, confidence, finite)


def _measure_accuracy(result: Result, confidence: float, finite: bool) -> Measured:
    estimates: list[Estimate] = []
    sizes: list[float] = []
    for tallies in _error_scenarios(result):
        if is_random_sample(result):
            populations = {subject: result.items(subject) for subject in result.subjects}
            value = stratified_accuracy(tallies, populations) or 0.0
            limits = stratified_interval(tallies, populations, confidence, finite=finite)
            sizes.append(stratified_effective_size(tallies, populations))
        else:
            tally = sum((Counter(part) for part in tallies.values()), Counter[tuple[int, int]]())
            correct, answers = _correct(tally)
            value = correct / answers
            limits = tally_interval(tally, confidence)
            sizes.append(effective_size(tally))
        estimates.append(Estimate(value, *limits))
    detectable = detectable_drop(estimates[0].value, sizes[0])
    return Measured(estimates[0], estimates[-1], result.counts.attempted, detectable)


def _measure_macro(result: Result, confidence: float, finite: bool) -> Measured:
    estimates: list[Estimate] = []
    sizes: list[float] = []
    for tallies in _error_scenarios(result):
        value = macro_accuracy({name: _correct(tally) for name, tally in tallies.items()}) or 0.0
        populations = {subject: result.items(subject) for subject in tallies} if finite else None
        estimates.append(Estimate(value, *macro_interval(tallies, confidence, populations)))
        sizes.append(macro_effective_size(tallies))
    detectable = detectable_drop(estimates[0].value, sizes[0])
    return Measured(estimates[0], estimates[-1], result.counts.attempted, detectable)


def _measure_gain(result: Result, confidence: float, finite: bool) -> Measured | str:
    """Measure the gain, a linear function of the accuracy and of its interval."""
    chance = result.chance
    if chance is None or chance == 1:
        return NO_CHANCE
    base = _measure_accuracy(result, confidence, finite)
    scale = 1 - chance
    errors_wrong, errors_right = (
        Estimate(*((x - chance) / scale for x in (estimate.value, estimate.low, estimate.high)))
        for estimate in (base.errors_wrong, base.errors_right)
    )
    detectable = None if base.detectable is None else base.detectable / scale
    return Measured(errors_wrong, errors_right, base.n, detectable)


def _rate(events: Callable[[Counts], tuple[int, int]]) -> _Measure:
    """Return a function that measures a share of the answers.

    ``events``: counts → (answers with the event, all answers). The answers of one item are taken as
    fully correlated, so that the effective size is the number of items. For a random sample the
    variance is that of equal rates, 1 / size = sum w^2/n, which is conservative if they differ.
    """

    def measure_rate(result: Result, confidence: float, finite: bool) -> Measured | str:
        counts = result.counts
        occurred, total = events(counts)
        value, variance = occurred / total, result.samples / total
        if is_random_sample(result):
            values, variances = [], []
            for subject, part in sorted(result.subjects.items()):
                if not part.total:
                    continue
                part_occurred, part_total = events(part)
                if not part_total:
                    return f"no item of {subject} was answered"
                weight = part.total / counts.total
                values.append(weight * part_occurred / part_total)
                correction = 1 - part_total / part.total if finite else 1
                variances.append(weight**2 * correction * result.samples / part_total)
            value, variance = min(1.0, math.fsum(values)), math.fsum(variances)
        size = 1 / variance if variance else math.inf
        estimate = Estimate(value, *score_interval(value, size, confidence))
        return Measured(estimate, estimate, total)

    return measure_rate


def _measure_pass(
    metric: str, kind: str, k: int, result: Result, confidence: float
) -> Measured | str:
    counts = result.counts
    if counts.error:
        return f"{metric} needs every answer: {error_count(counts.error)}"
    mean = mean_pass_at_k if kind == "@" else mean_pass_hat_k
    interval = pass_at_k_interval if kind == "@" else pass_hat_k_interval
    strata = [(1.0, counts.tally)]
    if is_random_sample(result):
        subjects = [part for _, part in sorted(result.subjects.items()) if part.total]
        strata = [(part.total / counts.total, part.tally) for part in subjects]
    parts = []
    for weight, tally in strata:
        value, limits = mean(tally, k), interval(tally, k, confidence)
        if value is None or limits is None:
            return f"{metric} needs {k} answers to every item, this run has {result.samples}"
        parts.append((weight, Estimate(value, *limits)))
    estimate = _weighted(parts)
    return Measured(estimate, estimate, sum(counts.tally.values()))


def _weighted(parts: Sequence[tuple[float, Estimate]]) -> Estimate:
    """Return the weighted mean of independent estimates with its interval.

    The squared distances to the limits add up: MOVER of Zou & Donner 2008, Stat. Med. 27, 1693-1702.
    """
    if len(parts) == 1:
        return parts[0][1]
    value = min(1.0, math.fsum(weight * part.value for weight, part in parts))
    below = math.hypot(*(weight * (part.value - part.low) for weight, part in parts))
    above = math.hypot(*(weight * (part.high - part.value) for weight, part in parts))
    return Estimate(value, max(0.0, value - below), min(1.0, value + above))


_Measure = Callable[[Result, float, bool], Measured | str]

_MEASURES: Mapping[str, _Measure] = {
    "accuracy": _measure_accuracy,
    "macro_accuracy": _measure_macro,
    "normalized_gain": _measure_gain,
    # An error is not an answer, so it is neither unparsed nor refused nor truncated.
    "unparsed_rate": _rate(lambda counts: (counts.unparsed, counts.answered)),
    "refused_rate": _rate(lambda counts: (counts.refused, counts.answered)),
    "truncated_rate": _rate(lambda counts: (counts.truncated, counts.answered)),
    "error_rate": _rate(lambda counts: (counts.error, counts.attempted)),
    # As leaderboards give it: what is missing or an error is not resolved.
    "resolved_rate": _rate(lambda counts: (counts.correct, counts.total)),
}


def _error_scenarios(result: Result) -> list[dict[str, Tally]]:
    """Return the subjects' tallies with all errors as wrong and, if there are any, as right."""
    return [
        {
            subject: filled_tally(counts, result.samples, right)
            for subject, counts in sorted(result.subjects.items())
        }
        for right in ((False, True) if result.counts.error else (False,))
    ]


def filled_tally(counts: Counts, samples: int, right: bool) -> Tally:
    """Return the tally with errors as answers of items that have fewer than ``samples``.

    If every item was run in full, these are the items with errors, and no error is left over.
    Otherwise the items are unknown, which does not matter: such a result decides no gate.
    """
    if not counts.error:
        return counts.tally
    filled: Counter[tuple[int, int]] = Counter()
    remaining = counts.error
    for (answered, correct), items in sorted(counts.tally.items()):
        missing = samples - answered
        full = min(items, remaining // missing) if missing else 0
        remaining -= full * missing
        filled[samples, correct + missing * right] += full
        filled[answered, correct] += items - full
    filled[samples, samples * right] += remaining // samples
    return {cell: items for cell, items in filled.items() if items}


def _correct(tally: Tally) -> tuple[int, int]:
    """Return the number of right answers and of all answers."""
    correct = sum(c * items for (_, c), items in tally.items())
    return correct, sum(n * items for (n, _), items in tally.items())


def _limits(bound: Bound) -> tuple[float, float]:
    minimum = -math.inf if bound.min is None else bound.min - TOLERANCE
    return minimum, math.inf if bound.max is None else bound.max + TOLERANCE


def decide(bound: Bound, measured: Measured) -> Status:
    """Decide by the values: pass only if both estimates are inside the bound."""
    minimum, maximum = _limits(bound)
    return (
        "pass"
        if measured.errors_wrong.value >= minimum and measured.errors_right.value <= maximum
        else "fail"
    )


def decide_by_interval(bound: Bound, measured: Measured) -> tuple[Status, str]:
    """Decide by the interval, and return the status with its reason."""
    minimum, maximum = _limits(bound)
    low, high = measured.interval
    status: Status
    if low >= minimum and high <= maximum:
        status, how = "pass", "is inside"
    elif high < minimum or low > maximum:
        status, how = "fail", "is outside"
    else:
        status, how = "undecided", "straddles"
    return status, f"the {percent(bound.level)} interval {how} the bound"


def decide_sampled(bound: Bound, measured: Measured, subject: str | None) -> tuple[Status, str]:
    """Decide by a random sample of items, and return the status with its reason.

    A sample can prove that the whole benchmark misses the bound, but not that it meets it.
    """
    minimum, maximum = _limits(bound)
    low, high = measured.interval
    whole = "benchmark" if subject is None else "subject"
    reason = f"the value over the whole {whole} is between {low:.4f} and {high:.4f} (95 %)"
    if high < minimum or low > maximum:
        return "fail", reason
    return "undecided", f"{reason}; to pass, run all items or set confidence"


def decide_chance(
    bound: Bound, measured: Measured, chance: float, subject: bool
) -> tuple[Status, str]:
    """Compare with the chance level on both sides: more than chance may be a leak of the answers."""
    level = f"chance {chance:.4g}{' of the whole benchmark' if subject else ''}"
    interval = f"the {percent(bound.level)} interval"
    if measured.errors_wrong.low > chance + TOLERANCE:
        return "fail", f"{interval} is above {level}, but the gate requires chance level"
    if measured.errors_right.high < chance - TOLERANCE:
        return "fail", f"{interval} is below {level}, but the gate requires chance level"
    # The interval moves up with every error that is counted as right.
    if (
        measured.errors_right.low <= chance + TOLERANCE
        and measured.errors_wrong.high >= chance - TOLERANCE
    ):
        return "pass", f"{interval} contains {level}"
    return "undecided", f"{interval} may or may not contain {level}, depending on the errors"
