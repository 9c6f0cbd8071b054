"""Choice of the rule of a gate from its metric and bound, by the judging of full runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from functools import lru_cache
from functools import partial

from pytest_llmeval.core import Outcome
from pytest_llmeval.gates.bounds import AUDITED
from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.estimates import Estimate
from pytest_llmeval.gates.estimates import measure
from pytest_llmeval.gates.metric_verdicts import judge_metric
from pytest_llmeval.gates.sequential.rules import CountRule
from pytest_llmeval.gates.sequential.rules import DropRule
from pytest_llmeval.gates.sequential.rules import MeanRule
from pytest_llmeval.gates.sequential.rules import Rule
from pytest_llmeval.gates.sequential.rules import merged_statuses
from pytest_llmeval.gates.thresholds import pass_key
from pytest_llmeval.gates.verdict import TOLERANCE
from pytest_llmeval.gates.verdict import Scope
from pytest_llmeval.gates.verdict import Status
from pytest_llmeval.metrics import Counts
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import pass_at_k
from pytest_llmeval.metrics import pass_hat_k
from pytest_llmeval.metrics.sequential.paired import DropEdge

NOT_A_SUM = "the verdict of a full run does not follow from a sum over its items"


def metric_rule(metric: str, bound: Bound, result: Result) -> Rule | str:
    """Return the rule for a metric over the subjects of ``result``, or why there is none.

    Only the sizes, the chance level and the number of samples of the result are used.
    """
    sizes = {subject: result.items(subject) for subject in result.subjects}
    size = sum(sizes.values())
    if metric in AUDITED:
        return "a permutation audit needs all items"
    if not size:
        return "no items"
    if (metric == "normalized_gain" or bound.chance) and result.chance in (None, 1):
        return "no chance level to compare with"
    key = pass_key(metric)
    if key is None and metric != "macro_accuracy" and result.samples == 1:
        return _count_rule(metric, bound, size, result.chance)
    if bound.by_interval:
        return f"{NOT_A_SUM}: the width of the interval depends on the variance"
    low = -math.inf if bound.min is None else bound.min - TOLERANCE
    high = math.inf if bound.max is None else bound.max + TOLERANCE
    if key is not None:
        return MeanRule(low, high, partial(_pass_scores, *key, result.samples), sizes)
    if metric == "macro_accuracy":
        present = {subject: number for subject, number in sizes.items() if number}
        weights = {s: size / (len(present) * number) for s, number in present.items()}
        return MeanRule(low, high, partial(_sample_scores, result.samples), present, weights)
    if metric == "accuracy":
        return MeanRule(low, high, partial(_sample_scores, result.samples), sizes)
    if metric == "normalized_gain" and result.chance is not None:
        chance = result.chance
        least, most = (chance + x * (1 - chance) for x in (low, high))
        scores = partial(_sample_scores, result.samples)
        return MeanRule(least, most, scores, sizes, value=partial(_gain, chance))
    return f"{NOT_A_SUM}: {metric} of several samples"


def drop_rule(
    limit: float, level: float, baseline: Mapping[str, bool], subjects: int | None
) -> DropRule:
    """Return the rule for a drop; ``subjects``: number of subjects for Holm's adjustment, or None.

    ``baseline``: item id → whether the baseline has it right, of all items of the gate.
    """
    right = sum(baseline.values())
    wrong = len(baseline) - right
    passing = DropEdge(right, wrong, limit, level)
    if subjects is None:
        return DropRule(baseline, passing, passing)
    return DropRule(baseline, passing, DropEdge(right, wrong, limit, level / subjects))


@lru_cache(maxsize=1024)  # the gates are decided again after every wave
def _count_rule(metric: str, bound: Bound, size: int, chance: float | None) -> Rule | str:
    events = _EVENTS.get(metric)
    if events is None:
        return NOT_A_SUM
    full = partial(_full_result, metric, size, chance)

    @lru_cache(maxsize=4096)
    def measured(number: int) -> Estimate:
        value = measure(metric, full(number), bound.level)
        # Every answer is there, and no error: a value is defined.
        assert not isinstance(value, str), value
        return value.errors_wrong

    def status(number: int) -> Status:
        return judge_metric(Scope("", "", ""), metric, bound, full(number)).status

    limits = [x for x in (bound.min, bound.max) if x is not None]
    limits += [chance] if bound.chance and chance is not None else []
    starts = {0}
    for limit in limits:
        for shift in (-TOLERANCE, TOLERANCE):
            for statistic in ("value", "low", "high"):
                starts.update(_crossings(measured, statistic, limit + shift, size))
    ranges = merged_statuses([(start, status(start)) for start in sorted(starts)])
    return CountRule(
        size, ranges, events, lambda k: measured(k).value, _NOUNS.get(metric, "correct")
    )


def _crossings(
    measured: Callable[[int], Estimate], statistic: str, limit: float, size: int
) -> set[int]:
    """Return the smallest numbers at which a statistic reaches, and exceeds, a limit.

    The value and both ends of the interval increase with the number.
    """
    crossings = set()
    for exceeds in (False, True):
        low, high = 0, size + 1
        while low < high:
            middle = (low + high) // 2
            value = getattr(measured(middle), statistic)
            if value > limit or (value == limit and not exceeds):
                high = middle
            else:
                low = middle + 1
        if low <= size:
            crossings.add(low)
    return crossings


def _full_result(metric: str, size: int, chance: float | None, number: int) -> Result:
    """Return the result of a full run with this number of items that have the metric's event."""
    others = size - number
    counts = {
        "unparsed_rate": Counts(size, correct=others, unparsed=number),
        "refused_rate": Counts(size, correct=others, unparsed=number, refused=number),
        "truncated_rate": Counts(size, correct=size, truncated=number),
        "error_rate": Counts(size, correct=others, error=number),
    }.get(metric, Counts(size, correct=number, wrong=others))
    return Result("", "", "", "", chance, {"": counts})


def _correct(item: ItemOutcomes) -> tuple[int, int]:
    return item.correct, item.correct + item.outcomes.count(Outcome.ERROR)


def _resolved(item: ItemOutcomes) -> tuple[int, int]:
    return item.correct, item.correct  # an error is not resolved


def _unparsed(item: ItemOutcomes) -> tuple[int, int] | None:
    events = item.outcomes.count(Outcome.UNPARSED)
    return None if Outcome.ERROR in item.outcomes else (events, events)


def _refused(item: ItemOutcomes) -> tuple[int, int] | None:
    return None if Outcome.ERROR in item.outcomes else (item.refused, item.refused)


def _truncated(item: ItemOutcomes) -> tuple[int, int] | None:
    return None if Outcome.ERROR in item.outcomes else (item.truncated, item.truncated)


def _error(item: ItemOutcomes) -> tuple[int, int]:
    errors = item.outcomes.count(Outcome.ERROR)
    return errors, errors


_EVENTS: Mapping[str, Callable[[ItemOutcomes], tuple[int, int] | None]] = {
    "accuracy": _correct,
    "normalized_gain": _correct,
    "unparsed_rate": _unparsed,
    "refused_rate": _refused,
    "truncated_rate": _truncated,
    "error_rate": _error,
    "resolved_rate": _resolved,
}

_NOUNS = {
    "unparsed_rate": "unparsed",
    "refused_rate": "refused",
    "truncated_rate": "truncated",
    "error_rate": "errors",
    "resolved_rate": "resolved",
}


def _gain(chance: float, accuracy: float) -> float:
    return (accuracy - chance) / (1 - chance)


def _sample_scores(samples: int, item: ItemOutcomes) -> tuple[float, float]:
    """Return the share of right samples, with errors as wrong and as right answers."""
    errors = item.outcomes.count(Outcome.ERROR)
    return item.correct / samples, (item.correct + errors) / samples


def _pass_scores(kind: str, k: int, samples: int, item: ItemOutcomes) -> tuple[float, float] | None:
    if item.answered < samples:
        return None
    score = (pass_at_k if kind == "@" else pass_hat_k)(item.answered, item.correct, k)
    return None if score is None else (score, score)
