"""Confidence intervals of accuracies, for several answers per item, subjects and random samples.

An interval has a positive width even without variance in the data: if all answers are right, it is
not (1, 1).
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
    """Return the number of independent 0/1 items that would be as informative as the answers.

    With one answer per item, the number of items. With several, answers / deff with the design
    effect deff = (clustered SE / SE of independent answers)^2 (Kish 1965, "Survey Sampling", sec.
    8.2; as the n of a binomial interval in Korn & Graubard 1998, Survey Methodology 24, 193-201),
    limited to the range from items to answers; the number of items if there is no variance from
    which to estimate it.

    ``population``: number of items in the benchmark, of which these are a random sample. The size
    is then multiplied by (N - 1) / (N - n) (Cochran 1977, "Sampling Techniques", sec. 3.2),
    infinite at n = N, because the quantity of interest is the result of a full run. 0 without
    answers.
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
    """Return Wilson's score interval (1927, see ``wilson_interval``) for an effective size.

    (0, 1) at size 0, (mean, mean) at infinite size. Raises ValueError for a mean outside [0, 1], a
    negative size, or a confidence outside (0, 1).
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
    """Return the interval of the accuracy over all answers.

    It is ``score_interval`` at ``effective_size``; with one answer per item and without
    ``population``, exactly ``wilson_interval``.
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
    """Return the interval of the macro accuracy: ``stratified_interval`` with equal weights.

    Subjects without items are left out, as in ``macro_accuracy``; (0, 1) without any. With
    ``populations`` (subject → items in the benchmark), the finite-population correction is applied.
    """
    present = _present(subjects)
    return _stratified_limits(present, dict.fromkeys(present, 1), populations, confidence)


def macro_effective_size(subjects: Mapping[str, Tally]) -> float:
    """Return the number of independent 0/1 items that would be as informative on macro accuracy.

    1 / sum (w^2 / n) with the subjects' weights and effective sizes (Kish 1965, "Survey Sampling",
    sec. 11.7), as if subjects were equally hard. 0 without items.
    """
    present = _present(subjects)
    return _weights_size(present, dict.fromkeys(present, 1))


def stratified_accuracy(
    subjects: Mapping[str, Tally], populations: Mapping[str, int]
) -> float | None:
    """Return the estimated accuracy on the whole benchmark, from a random sample per subject.

    sum N_s/N p_s, with ``populations`` (subject → items in the benchmark) as N_s. The stratified
    mean of Cochran 1977, "Sampling Techniques", eq. 5.1: unbiased for any sizes of the samples,
    unlike the mean over the sampled items. None if a subject of the benchmark has no items here.
    Raises ValueError for more items than the benchmark has.
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
    """Return the interval of ``stratified_accuracy``, a generalisation of Wilson's interval.

    Wilson's interval adds z^2 pseudo-items, half of them right: its centre is the mean with them,
    its width that of the variance (n p (1 - p) + z^2 / 4) / (n + z^2)^2. Here the z^2 pseudo-items
    are distributed over the subjects by their shares of w^2 / n, so that a subject with a large
    weight that is all right by chance contributes a width, and many small subjects are not all
    shifted towards one half. Variances are those of Cochran 1977, "Sampling Techniques", ch. 5; a
    subject with a single item uses p (1 - p) of all items. Equal to ``tally_interval`` for one
    subject. Coverage is measured in tests/metrics. (0, 1) if the accuracy is None.

    ``finite``: the interval is for the value of a full run, with the finite-population correction,
    and a point if every item was sampled; otherwise it is for the model on items of this kind.
    """
    _validation.confidence(confidence)
    weights = _weights(subjects, populations)
    if weights is None:
        return 0.0, 1.0
    return _stratified_limits(subjects, weights, populations if finite else None, confidence)


def stratified_effective_size(
    subjects: Mapping[str, Tally], populations: Mapping[str, int]
) -> float:
    """Return ``macro_effective_size`` with the weights of ``stratified_accuracy``.

    0 if the accuracy is None.
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
    """Return the percentile bootstrap interval of the mean over strata of value(n, c).

    ``value`` is averaged over the items of a stratum, then over strata; it must return proportions.
    The items of each stratum are resampled with replacement (Efron & Tibshirani 1993, "An
    Introduction to the Bootstrap", ch. 13), as multinomial counts of the tally's cells, so that the
    run time depends on the number of different (n, c) rather than of items. Equal seeds give equal
    intervals, independent of the order of the cells. The interval is widened to contain the
    estimate. If no stratum has any variance, all resamples are equal; then the interval is
    ``score_interval`` at the effective size of the strata's numbers of items. Strata without items
    are left out; (0, 1) without any.
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
        counts = generator.multinomial(items.sum(), items / items.sum(), size=resamples)
        means += counts @ rates / (items.sum() * len(cells))
    tail = (1 - confidence) / 2
    low, high = (float(q) for q in np.quantile(means, [tail, 1 - tail]))
    return max(0.0, min(low, estimate)), min(1.0, max(high, estimate))


def pass_at_k_interval(
    tally: Tally, k: int, confidence: float = 0.95, *, seed: int = 0
) -> Interval | None:
    """Return the ``bootstrap_interval`` of ``mean_pass_at_k``, or None if that is None.

    With equally many samples of every item, pass@1 is the accuracy and has ``tally_interval``.
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
    """Return the ``bootstrap_interval`` of ``mean_pass_hat_k``, or None if that is None.

    pass^1 is treated as pass@1.
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
    """Return the populations that are not empty; None if one of them has no items here."""
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
    # The division comes last, so that the mean of ones is 1 and equal weights give exactly
    # macro_accuracy.
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
        if math.isinf(size):  # all of its items were sampled, so it has no uncertainty
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
        extra = z * z * (share * share / size) / total
        shift.append(share * extra * (0.5 - rate) / (size + extra))
        variances.append(share * share * (size * size * variance + extra / 4) / (size + extra) ** 2)
    centre, half = mean + math.fsum(shift), z * math.sqrt(math.fsum(variances))
    return max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))


def _weights_size(subjects: Mapping[str, Tally], weights: Mapping[str, int]) -> float:
    whole = sum(weights.values())
    shares = [
        (weight / whole) ** 2 / effective_size(subjects[name]) for name, weight in weights.items()
    ]
    return 1 / math.fsum(shares) if shares else 0.0


def _values(tally: Tally, value: Callable[[int, int], float]) -> dict[float, int]:
    """Return value → number of items, ascending and so independent of the tally's order."""
    counts: dict[float, int] = {}
    for n, c, items in _validation.cells(tally):
        rate = _validation.proportion(f"value({n}, {c})", value(n, c))
        counts[rate] = counts.get(rate, 0) + items
    return dict(sorted(counts.items()))


def _estimate(strata: Sequence[Mapping[float, int]]) -> float:
    means = [math.fsum(v * m for v, m in s.items()) / sum(s.values()) for s in strata]
    return min(1.0, math.fsum(means) / len(means))
