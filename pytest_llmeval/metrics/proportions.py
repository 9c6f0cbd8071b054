"""Accuracy with averages, gain over chance, standard errors and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.samples import Tally
from pytest_llmeval.metrics.samples import clustered_standard_error


def two_sided(confidence: float) -> float:
    """Return the z with P(-z < X < z) = confidence; raise ValueError unless it is in (0, 1)."""
    # Computed from the small tail, which is accurate for a confidence near 1.
    return -float(NormalDist().inv_cdf((1 - _validation.confidence(confidence)) / 2))


def critical(alpha: float) -> float:
    """Return the z with P(|X| > z) = alpha; raise ValueError unless alpha is in (0, 1)."""
    return -float(NormalDist().inv_cdf(_validation.confidence(alpha, "alpha") / 2))


def both_errors(z: float, power: float) -> float:
    """Return the size, in standard errors, of a drop that a test at ``z`` detects with ``power``.

    z + z(power), without rejections in the wrong direction; at least 0. Raises ValueError unless
    0 < power < 1.
    """
    return max(0.0, z + NormalDist().inv_cdf(_validation.confidence(power, "power")))


def accuracy(correct: int, total: int) -> float | None:
    """Return the micro accuracy: right answers over items, with equal weights of all items.

    None without items. The published figure of MMLU is a micro accuracy (Hendrycks et al. 2021,
    "Measuring Massive Multitask Language Understanding", evaluate.py of hendrycks/test).
    """
    correct, total = _validation.part("correct", correct, "total", total)
    return correct / total if total else None


def macro_accuracy(subjects: Mapping[str, tuple[int, int]]) -> float | None:
    """Return the unweighted mean of the subjects' accuracies.

    ``subjects``: subject → (correct, total). Subjects without items are left out; None without
    any. Macro averaging as in Manning, Raghavan & Schuetze (2008), "Introduction to Information
    Retrieval", section 13.6. The sum is exactly rounded, so it does not depend on the order.
    """
    values = [accuracy(correct, total) for correct, total in subjects.values()]
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def normalized_gain(accuracy: float, chance: float) -> float | None:
    """Return the gain over chance as a share of the largest possible gain: (a - b) / (1 - b).

    1 for a perfect score, 0 at chance, negative below chance (down to -b / (1 - b)); None at
    b = 1. It has the form of the correction for guessing of a K-option test with b = 1/K (Lord &
    Novick 1968, "Statistical Theories of Mental Test Scores", ch. 14) and of Hake's normalized gain
    (1998, Am. J. Phys. 66, 64-74) with chance as the starting point.
    """
    accuracy = _validation.proportion("accuracy", accuracy)
    chance = _validation.proportion("chance", chance)
    return (accuracy - chance) / (1 - chance) if chance < 1 else None


def standard_error(correct: int, total: int) -> float | None:
    """Return the standard error of an accuracy over independent items: sqrt(p (1 - p) / (n - 1)).

    The sample standard deviation of the 0/1 scores over sqrt(n) (Cochran 1977, "Sampling
    Techniques", ch. 3, without the finite-population factor; Miller 2024, arXiv:2411.00640).
    None for fewer than two items. It is 0 at p = 0 and p = 1 for any n, although the accuracy is
    not certain: report ``wilson_interval`` with it.
    """
    correct, total = _validation.part("correct", correct, "total", total)
    if total < 2:
        return None
    # In integers up to one rounded division: no cancellation in 1 - p.
    return math.sqrt(correct * (total - correct) / (total * total * (total - 1)))


def macro_standard_error(subjects: Mapping[str, Tally]) -> float | None:
    """Return the standard error of the macro accuracy: sqrt(sum of SE^2) / number of subjects.

    The subjects are fixed and their items independent samples, so the variances add: a
    stratified mean with equal weights (Cochran 1977, "Sampling Techniques", ch. 5, without
    the finite-population factor). The SE of a subject is ``clustered_standard_error``. Subjects
    without items are left out; None without any, or if one has a single item.
    """
    errors = [
        clustered_standard_error(tally) for tally in subjects.values() if _validation.cells(tally)
    ]
    defined = [error for error in errors if error is not None]
    if not defined or len(defined) < len(errors):
        return None
    return math.sqrt(math.fsum(error * error for error in defined)) / len(defined)


def wilson_interval(correct: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's two-sided score interval of a proportion, without continuity correction.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference",
    J. Am. Stat. Assoc. 22, 209-212: the roots of (n + z^2) x^2 - (2c + z^2) x + c^2/n = 0.
    It always contains the estimate; without items it is (0, 1), the limit of the equation for
    n -> 0. Raises ValueError unless 0 < confidence < 1.
    """
    correct, total = _validation.part("correct", correct, "total", total)
    z = two_sided(confidence)
    if total == 0:
        return 0.0, 1.0
    low, high = score_limits(correct, total - correct, z)
    estimate = correct / total  # the clamps only undo rounding, for z near 0
    return min(low, estimate), max(high, estimate)


def score_limits(right: float, wrong: float, z: float) -> tuple[float, float]:
    """Return the roots of Wilson's equation for ``right`` and ``wrong`` answers (real numbers).

    Both are arguments, because 1 - p loses the digits of a small ``wrong``.
    """
    return _lower_root(right, wrong, z), 1 - _lower_root(wrong, right, z)


def _lower_root(right: float, wrong: float, z: float) -> float:
    # The larger root has no cancellation; the product of the roots gives the smaller one.
    total, square = right + wrong, z * z
    spread = math.sqrt(square + 4 * (right * wrong / total))
    upper = (2 * right + square + z * spread) / (2 * (total + square))
    return right * right / total / (total + square) / upper if right else 0.0


def exact_interval(correct: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval, whose coverage is at least ``confidence`` at every rate.

    Clopper & Pearson (1934), Biometrika 26, 404-413, from the quantiles of beta(c, n - c + 1) and
    beta(c + 1, n - c). It is wider than Wilson's. (0, 1) without items. Raises ValueError unless
    0 < confidence < 1.
    """
    correct, total = _validation.part("correct", correct, "total", total)
    tail = (1 - _validation.confidence(confidence)) / 2
    from scipy.special import betainccinv
    from scipy.special import betaincinv

    wrong = total - correct
    low = float(betaincinv(correct, wrong + 1, tail)) if correct else 0.0
    high = float(betainccinv(correct + 1, wrong, tail)) if wrong else 1.0
    return low, high
