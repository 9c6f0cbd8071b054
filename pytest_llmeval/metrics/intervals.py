"""Intervals of accuracies over items with one or several answers, subjects and draws.

An interval never claims certainty for want of spread: all right is not 1 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.proportions import score_limits
from pytest_llmeval.metrics.proportions import two_sided
from pytest_llmeval.metrics.proportions import wilson_interval
from pytest_llmeval.metrics.samples import Tally
from pytest_llmeval.metrics.samples import clustered_standard_error
from pytest_llmeval.metrics.samples import mean_pass_at_k
from pytest_llmeval.metrics.samples import mean_pass_hat_k
from pytest_llmeval.metrics.samples import pass_at_k
from pytest_llmeval.metrics.samples import pass_hat_k
from pytest_llmeval.metrics.samples import totals

Interval = tuple[float, float]


def effective_size(tally: Tally, population: int | None = None) -> float:
    """How many independent 0/1 items would tell as much about the accuracy as these answers.

    One answer per item: the items. Several: answers / deff with the design effect deff =
    (clustered SE / SE of independent answers)^2 (Kish 1965, "Survey Sampling", sec. 8.2; as the
    n of a binomial interval in Korn & Graubard 1998, Survey Methodology 24, 193-201), kept
    between the items and the answers; the items where there is no spread to estimate it from.

    ``population``: the benchmark's items, of which these were drawn. The size then grows by
    (N - 1) / (N - n) (Cochran 1977, "Sampling Techniques", sec. 3.2), infinite at n = N:
    it is about the benchmark's own value, which a full run would give. 0 without answers.
    """
    cells = _validation.cells(tally)
    items, answers, correct = totals(cells)
    if population is not None:
        items, population = _validation.part("items", items, "population", population)
    if items == 0:
        return 0.0
    size = float(items)
    wrong = answers - correct
    clustered = clustered_standard_error(tally)
    if answers > items and clustered and correct and wrong:
        independent = correct * wrong / (answers * answers * (answers - 1))
        size = min(float(answers), max(size, answers * independent / clustered**2))
    if population is None:
        return size
    return size * (population - 1) / (population - items) if items < population else math.inf


def score_interval(mean: float, size: float, confidence: float = 0.95) -> Interval:
    """Wilson's score interval (1927, see ``wilson_interval``) for an effective size.

    (0, 1) at size 0, the point at infinity. ValueError for a mean outside [0, 1], a negative
    size, or a confidence outside (0, 1).
    """
    mean = _validation.proportion("mean", mean)
    z = two_sided(confidence)
    if not size >= 0:
        raise ValueError(f"size must not be negative, but is {size!r}")
    if size == 0:
        return 0.0, 1.0
    if math.isinf(size):
        return mean, mean
    low, high = score_limits(mean * size, (1 - mean) * size, z)
    return min(low, mean), max(high, mean)


def tally_interval(
    tally: Tally, confidence: float = 0.95, population: int | None = None
) -> Interval:
    """Interval of the accuracy over all answers: ``score_interval`` at ``effective_size``.

    With one answer per item and no population exactly ``wilson_interval``.
    """
    items, answers, correct = totals(_validation.cells(tally))
    if population is None and answers == items:
        return wilson_interval(correct, answers, confidence)
    mean = correct / answers if answers else 0.0
    return score_interval(mean, effective_size(tally, population), confidence)


def macro_interval(
    subjects: Mapping[str, Tally],
    confidence: float = 0.95,
    populations: Mapping[str, int] | None = None,
) -> Interval:
    """Interval of the macro accuracy: ``stratified_interval`` with equal weights.

    Subjects without items are left out, as in ``macro_accuracy``; (0, 1) without any.
    ``populations`` (subject -> items of the benchmark): with the finite-population correction.
    """
    present = _present(subjects)
    return _stratified_limits(present, dict.fromkeys(present, 1), populations, confidence)


def macro_effective_size(subjects: Mapping[str, Tally]) -> float:
    """How many independent 0/1 items would tell as much as these do about the macro accuracy.

    1 / sum w^2 / n with the subjects' weights and effective sizes (Kish 1965, "Survey Sampling",
    sec. 11.7), as if subjects were equally hard. 0 without items.
    """
    present = _present(subjects)
    return _weights_size(present, dict.fromkeys(present, 1))


def stratified_accuracy(
    subjects: Mapping[str, Tally], populations: Mapping[str, int]
) -> float | None:
    """What the whole benchmark would give, from a draw of items per subject: sum N_s/N p_s.

    ``populations``: subject -> items of the benchmark. The stratified mean of Cochran 1977,
    "Sampling Techniques", eq. 5.1: without bias whatever part of each subject was drawn, unlike
    the mean over the drawn items. None where a subject with items in the benchmark has none
    here. ValueError for more items than the benchmark has.
    """
    weights = _weights(subjects, populations)
    return None if weights is None else _weighted_mean(subjects, weights)


def stratified_interval(
    subjects: Mapping[str, Tally],
    populations: Mapping[str, int],
    confidence: float = 0.95,
    *,
    finite: bool,
) -> Interval:
    """Interval of ``stratified_accuracy``, as Wilson's is one of a single proportion.

    Wilson's interval is that of a proportion with z^2 items more, half of them right: its centre
    is their mean, its width that of (n p (1 - p) + z^2 / 4) / (n + z^2)^2. Here the z^2 items are
    dealt out to the subjects by their shares of w^2 / n, so that a heavy subject that is all
    right by luck has a width of its own, and many small ones are not all drawn to one half.
    Variances are those of Cochran 1977, "Sampling Techniques", ch. 5, a subject with a single
    item taking p (1 - p) from all; equal to ``tally_interval`` for one subject. Coverage is
    measured in tests/metrics. (0, 1) where the accuracy is None.

    ``finite``: about the benchmark's own value, with the finite-population correction, a point
    where every item was drawn; else about the model on items of this kind.
    """
    _validation.confidence(confidence)
    weights = _weights(subjects, populations)
    if weights is None:
        return 0.0, 1.0
    return _stratified_limits(subjects, weights, populations if finite else None, confidence)


def stratified_effective_size(
    subjects: Mapping[str, Tally], populations: Mapping[str, int]
) -> float:
    """``macro_effective_size`` with the weights of ``stratified_accuracy``.

    0 where the accuracy is None.
    """
    weights = _weights(subjects, populations)
    return 0.0 if weights is None else _weights_size(subjects, weights)


def bootstrap_interval(
    strata: Sequence[Tally],
    value: Callable[[int, int], float],
    confidence: float = 0.95,
    *,
    seed: int = 0,
    resamples: int = 10_000,
) -> Interval:
    """Percentile bootstrap of the mean over strata of the mean over items of value(n, c).

    The items of each stratum are drawn with replacement (Efron & Tibshirani 1993, "An
    Introduction to the Bootstrap", ch. 13), as multinomial counts of the tally's cells: the time
    goes with the different (n, c), not with the items. Same seed, same interval, whatever the
    order of the cells. Widened to contain the estimate. Where no stratum has any spread every
    resample is alike, which is not certainty: then it is ``score_interval`` at the effective
    size of the strata's numbers of items.

    ``value`` must give proportions. Strata without items are left out; (0, 1) without any.
    """
    _validation.confidence(confidence)
    if _validation.count("resamples", resamples) == 0:
        raise ValueError("resamples must be at least 1")
    cells = [_values(tally, value) for tally in strata]
    cells = [present for present in cells if present]
    if not cells:
        return 0.0, 1.0
    estimate = _estimate(cells)
    if all(len(values) == 1 for values in cells):
        size = len(cells) ** 2 / math.fsum(1 / sum(values.values()) for values in cells)
        return score_interval(estimate, size, confidence)
    import numpy as np

    generator = np.random.default_rng(_validation.count("seed", seed))
    means = np.zeros(resamples)
    for values in cells:
        rates, items = np.array(list(values)), np.array(list(values.values()))
        drawn = generator.multinomial(items.sum(), items / items.sum(), size=resamples)
        means += drawn @ rates / (items.sum() * len(cells))
    tail = (1 - confidence) / 2
    low, high = (float(q) for q in np.quantile(means, [tail, 1 - tail]))
    return max(0.0, min(low, estimate)), min(1.0, max(high, estimate))


def pass_at_k_interval(
    tally: Tally, k: int, confidence: float = 0.95, *, seed: int = 0
) -> Interval | None:
    """``bootstrap_interval`` of ``mean_pass_at_k`` over the items; None where that is None.

    pass@1 of as many samples of every item is the accuracy, and has its interval.
    """
    if mean_pass_at_k(tally, k) is None:
        return None
    if k == 1 and _one_size(tally):
        return tally_interval(tally, confidence)
    return bootstrap_interval(
        [tally], lambda n, c: pass_at_k(n, c, k) or 0.0, confidence, seed=seed
    )


def pass_hat_k_interval(
    tally: Tally, k: int, confidence: float = 0.95, *, seed: int = 0
) -> Interval | None:
    """``bootstrap_interval`` of ``mean_pass_hat_k`` over the items; None where that is None.

    pass^1 as pass@1.
    """
    if mean_pass_hat_k(tally, k) is None:
        return None
    if k == 1 and _one_size(tally):
        return tally_interval(tally, confidence)
    return bootstrap_interval(
        [tally], lambda n, c: pass_hat_k(n, c, k) or 0.0, confidence, seed=seed
    )


def _one_size(tally: Tally) -> bool:
    return len({n for n, _ in tally}) == 1


def _present(subjects: Mapping[str, Tally]) -> dict[str, Tally]:
    return {name: tally for name, tally in sorted(subjects.items()) if _validation.cells(tally)}


def _weights(
    subjects: Mapping[str, Tally], populations: Mapping[str, int]
) -> Mapping[str, int] | None:
    """The populations that are not empty; None where one of them has no items here."""
    for name, tally in subjects.items():
        if name not in populations:
            raise ValueError(f"no population of {name!r}")
        items, _, _ = totals(_validation.cells(tally))
        _validation.part(f"items of {name!r}", items, "population", populations[name])
    weights = {name: size for name, size in sorted(populations.items()) if size}
    present = _present(subjects)
    return weights if weights and present.keys() == weights.keys() else None


def _weighted_mean(subjects: Mapping[str, Tally], weights: Mapping[str, int]) -> float:
    means = []
    for name, weight in weights.items():
        _, answers, correct = totals(_validation.cells(subjects[name]))
        means.append(weight * (correct / answers))
    # Divided last: the mean of ones is 1, and equal weights give macro_accuracy to the digit.
    return min(1.0, math.fsum(means) / sum(weights.values()))


def _stratified_limits(
    subjects: Mapping[str, Tally],
    weights: Mapping[str, int],
    populations: Mapping[str, int] | None,
    confidence: float,
) -> Interval:
    z = two_sided(confidence)
    if not weights:
        return 0.0, 1.0
    if len(weights) == 1:
        (name,) = weights
        return tally_interval(subjects[name], confidence, (populations or {}).get(name))
    mean, whole = _weighted_mean(subjects, weights), sum(weights.values())
    parts = []
    for name, weight in weights.items():
        size = effective_size(subjects[name], (populations or {}).get(name))
        if math.isinf(size):  # all of its items were drawn: nothing about it is uncertain
            continue
        items, answers, correct = totals(_validation.cells(subjects[name]))
        error = clustered_standard_error(subjects[name])
        variance = mean * (1 - mean) / items if error is None else error * error
        if populations is not None:
            variance *= (populations[name] - items) / populations[name]
        parts.append((weight / whole, size, correct / answers, variance))
    total = math.fsum(share * share / size for share, size, _, _ in parts)
    shift, variances = [], []
    for share, size, rate, variance in parts:
        dealt = z * z * (share * share / size) / total
        shift.append(share * dealt * (0.5 - rate) / (size + dealt))
        variances.append(share * share * (size * size * variance + dealt / 4) / (size + dealt) ** 2)
    centre, half = mean + math.fsum(shift), z * math.sqrt(math.fsum(variances))
    return max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))


def _weights_size(subjects: Mapping[str, Tally], weights: Mapping[str, int]) -> float:
    whole = sum(weights.values())
    shares = [
        (weight / whole) ** 2 / effective_size(subjects[name]) for name, weight in weights.items()
    ]
    return 1 / math.fsum(shares) if shares else 0.0


def _values(tally: Tally, value: Callable[[int, int], float]) -> dict[float, int]:
    """Value -> items that have it, ascending: the same whatever the order of the tally."""
    found: dict[float, int] = {}
    for n, c, items in _validation.cells(tally):
        one = _validation.proportion(f"value({n}, {c})", value(n, c))
        found[one] = found.get(one, 0) + items
    return dict(sorted(found.items()))


def _estimate(strata: Sequence[Mapping[float, int]]) -> float:
    means = [math.fsum(v * m for v, m in s.items()) / sum(s.values()) for s in strata]
    return min(1.0, math.fsum(means) / len(means))
