"""Results as measured values with their intervals.

Errors leave open what a value would have been, so that every value is taken twice: with the
errors as wrong and as right answers. Of a random draw (``--llm-limit``) it is the estimate for the
whole benchmark, each subject weighing as much as it has items there.
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
from pytest_llmeval.gates.verdict import errors
from pytest_llmeval.gates.verdict import not_all
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


def audited(metric: str, audit: Audit | None) -> tuple[float, tuple[float, float] | None] | str:
    """The metric over the audit's main family of arms with its 95 % interval; or why not."""
    if audit is None:
        return NO_AUDIT
    family = audit.main
    if family is None:
        return f"{metric} is not defined: no item has an answer in every order"
    value = _values(family)[metric]
    if value is None:
        return f"{metric} is not defined: no answer could be read"
    return value, family.consistency_interval if metric == "consistency" else None


def audited_of(audit: Audit) -> str:
    """What the value was computed from, in words."""
    family = audit.main
    assert family is not None
    # The original is one of the rotations, but no arm that moves the answer.
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
    """A metric with all errors as wrong (``least``) and as right (``most``); one without errors.

    ``n`` as in ``Verdict``; ``detectable`` is the smallest drop seen with power 80 %.
    """

    least: Estimate
    most: Estimate
    n: int
    detectable: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval, whatever the errors could have been."""
        return self.least.low, self.most.high


def is_draw(result: Result) -> bool:
    """Whether the result is a random draw from more items, and all of that draw."""
    return result.counts.missing > 0 and result.sampled


def measure(
    metric: str, result: Result, confidence: float = 0.95, *, finite: bool = False
) -> Measured | str:
    """The metric over the items that were run, or why there is none.

    ``finite``: the interval of a draw is about the value that the whole benchmark would give
    (finite-population correction; not for ``pass@k``, whose interval is wider than it need be),
    else about the model on items of this kind.
    """
    counts = result.counts
    if not (counts.attempted if metric == "error_rate" else counts.answered):
        return f"no item was answered: {errors(counts.error)}" if counts.error else not_all(result)
    if is_draw(result):
        for subject, part in sorted(result.subjects.items()):
            if part.missing == part.total > 0:
                return f"no item of {subject} was drawn"
    key = pass_key(metric)
    if key is not None:
        return _measure_pass(metric, *key, result, confidence)
    return _MEASURES[metric](result, confidence, finite)


def _measure_accuracy(result: Result, confidence: float, finite: bool) -> Measured:
    estimates: list[Estimate] = []
    sizes: list[float] = []
    for tallies in _worlds(result):
        if is_draw(result):
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
    seen = detectable_drop(estimates[0].value, sizes[0])
    return Measured(estimates[0], estimates[-1], result.counts.attempted, seen)


def _measure_macro(result: Result, confidence: float, finite: bool) -> Measured:
    estimates: list[Estimate] = []
    sizes: list[float] = []
    for tallies in _worlds(result):
        value = macro_accuracy({name: _correct(tally) for name, tally in tallies.items()}) or 0.0
        populations = {subject: result.items(subject) for subject in tallies} if finite else None
        estimates.append(Estimate(value, *macro_interval(tallies, confidence, populations)))
        sizes.append(macro_effective_size(tallies))
    seen = detectable_drop(estimates[0].value, sizes[0])
    return Measured(estimates[0], estimates[-1], result.counts.attempted, seen)


def _measure_gain(result: Result, confidence: float, finite: bool) -> Measured | str:
    """The gain of the accuracies: a linear function of them, so of their intervals too."""
    chance = result.chance
    if chance is None or chance == 1:
        return NO_CHANCE
    base = _measure_accuracy(result, confidence, finite)
    way = 1 - chance
    least, most = (
        Estimate(*((x - chance) / way for x in (one.value, one.low, one.high)))
        for one in (base.least, base.most)
    )
    seen = None if base.detectable is None else base.detectable / way
    return Measured(least, most, base.n, seen)


def _rate(events: Callable[[Counts], tuple[int, int]]) -> _Measure:
    """Measures a share of the answers, from how many of how many ``events`` says.

    Which of an item's answers it concerns is not counted: they are taken to be alike, so that
    they tell as much as there are items. Of a draw the variance is that of equal rates, 1 / size =
    sum w^2/n, which is rather too large where they differ.
    """

    def one(result: Result, confidence: float, finite: bool) -> Measured | str:
        counts = result.counts
        some, every = events(counts)
        value, variance = some / every, result.samples / every
        if is_draw(result):
            values, variances = [], []
            for subject, part in sorted(result.subjects.items()):
                if not part.total:
                    continue
                found, of = events(part)
                if not of:
                    return f"no item of {subject} was answered"
                weight = part.total / counts.total
                values.append(weight * found / of)
                rest = 1 - of / part.total if finite else 1
                variances.append(weight**2 * rest * result.samples / of)
            value, variance = min(1.0, math.fsum(values)), math.fsum(variances)
        size = 1 / variance if variance else math.inf
        estimate = Estimate(value, *score_interval(value, size, confidence))
        return Measured(estimate, estimate, every)

    return one


def _measure_pass(
    metric: str, kind: str, k: int, result: Result, confidence: float
) -> Measured | str:
    counts = result.counts
    if counts.error:
        return f"{metric} needs every answer: {errors(counts.error)}"
    mean = mean_pass_at_k if kind == "@" else mean_pass_hat_k
    interval = pass_at_k_interval if kind == "@" else pass_hat_k_interval
    strata = [(1.0, counts.tally)]
    if is_draw(result):
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
    """The weighted mean of independent parts, whose distances to the limits add in squares.

    MOVER of Zou & Donner 2008, Stat. Med. 27, 1693-1702.
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
    # An error is no answer: it is neither an unparsed nor a truncated one.
    "unparsed_rate": _rate(lambda counts: (counts.unparsed, counts.answered)),
    "truncated_rate": _rate(lambda counts: (counts.truncated, counts.answered)),
    "error_rate": _rate(lambda counts: (counts.error, counts.attempted)),
}


def _worlds(result: Result) -> list[dict[str, Tally]]:
    """The subjects' tallies with all errors as wrong, and, if there are any, as right."""
    return [
        {
            subject: _filled(counts, result.samples, right)
            for subject, counts in sorted(result.subjects.items())
        }
        for right in ((False, True) if result.counts.error else (False,))
    ]


def _filled(counts: Counts, samples: int, right: bool) -> Tally:
    """The tally with the errors as answers, put where an item has fewer than ``samples``.

    Where every item was run in full this is where they were, and none is left over; else which
    items they belong to is not known, nor of any consequence: such a result decides nothing.
    """
    if not counts.error:
        return counts.tally
    filled: Counter[tuple[int, int]] = Counter()
    left = counts.error
    for (answered, correct), items in sorted(counts.tally.items()):
        room = samples - answered
        full = min(items, left // room) if room else 0
        left -= full * room
        filled[samples, correct + room * right] += full
        filled[answered, correct] += items - full
    filled[samples, samples * right] += left // samples
    return {cell: items for cell, items in filled.items() if items}


def _correct(tally: Tally) -> tuple[int, int]:
    """Right answers and all answers."""
    correct = sum(c * items for (_, c), items in tally.items())
    return correct, sum(n * items for (n, _), items in tally.items())


def _limits(bound: Bound) -> tuple[float, float]:
    least = -math.inf if bound.min is None else bound.min - TOLERANCE
    return least, math.inf if bound.max is None else bound.max + TOLERANCE


def decide(bound: Bound, measured: Measured) -> Status:
    """By the values, whatever the errors could have been."""
    least, most = _limits(bound)
    return "pass" if measured.least.value >= least and measured.most.value <= most else "fail"


def decide_by_interval(bound: Bound, measured: Measured) -> tuple[Status, str]:
    least, most = _limits(bound)
    low, high = measured.interval
    status: Status
    if low >= least and high <= most:
        status, how = "pass", "is inside"
    elif high < least or low > most:
        status, how = "fail", "is outside"
    else:
        status, how = "undecided", "straddles"
    return status, f"the {percent(bound.level)} interval {how} the bound"


def decide_finite(bound: Bound, measured: Measured, subject: str | None) -> tuple[Status, str]:
    """A draw, asked for the value of the whole: it can only be shown to be out of bounds."""
    least, most = _limits(bound)
    low, high = measured.interval
    whole = "benchmark" if subject is None else "subject"
    reason = f"the whole {whole}'s value is between {low:.4f} and {high:.4f} (95 %)"
    return "fail" if high < least or low > most else "undecided", reason


def decide_chance(
    bound: Bound, measured: Measured, chance: float, subject: bool
) -> tuple[Status, str]:
    """Two-sided: knowing too much is a finding too, such as a leak of the answers."""
    level = f"chance {chance:.4g}{' of the whole benchmark' if subject else ''}"
    interval = f"the {percent(bound.level)} interval"
    if measured.least.low > chance + TOLERANCE:
        return "fail", f"{interval} is above {level}: more than chance is a finding too"
    if measured.most.high < chance - TOLERANCE:
        return "fail", f"{interval} is below {level}: less than chance is a finding too"
    # The intervals move up with every error that is taken as right.
    if measured.most.low <= chance + TOLERANCE and measured.least.high >= chance - TOLERANCE:
        return "pass", f"{interval} contains {level}"
    return "undecided", f"whether {interval} contains {level} depends on the errors"
