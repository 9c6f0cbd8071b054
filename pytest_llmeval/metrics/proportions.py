"""Accuracy and what surrounds it: averages, gain over chance, standard error, interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

from . import _checks


def accuracy(correct: int, total: int) -> float | None:
    """Micro accuracy: right answers over items, each item weighing the same.

    None without items. The published MMLU figure is this one (Hendrycks et al. 2021,
    "Measuring Massive Multitask Language Understanding", evaluate.py of hendrycks/test).
    """
    correct, total = _checks.part("correct", correct, "total", total)
    return correct / total if total else None


def macro_accuracy(subjects: Mapping[str, tuple[int, int]]) -> float | None:
    """Unweighted mean of the subjects' accuracies: subject -> (correct, total).

    Subjects without items are left out; None when none is left. Macro averaging as in Manning,
    Raghavan & Schuetze (2008), "Introduction to Information Retrieval", section 13.6.
    The sum is exactly rounded, so the order of subjects cannot move the last digit.
    """
    values = [accuracy(correct, total) for correct, total in subjects.values()]
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def normalized_gain(accuracy: float, chance: float) -> float | None:
    """Share of the way from chance to perfect: (a - b) / (1 - b).

    1 at perfect, 0 at chance, negative below chance (down to -b / (1 - b)); None at b = 1, where
    there is no way to go. The form of the correction for guessing of a K-option test, b = 1/K
    (Lord & Novick 1968, "Statistical Theories of Mental Test Scores", ch. 14) and of
    Hake's normalized gain (1998, Am. J. Phys. 66, 64-74) with chance as the starting point.
    """
    accuracy = _checks.proportion("accuracy", accuracy)
    chance = _checks.proportion("chance", chance)
    return (accuracy - chance) / (1 - chance) if chance < 1 else None


def standard_error(correct: int, total: int) -> float | None:
    """Standard error of an accuracy over independent items: sqrt(p (1 - p) / (n - 1)).

    The sample standard deviation of the 0/1 scores over sqrt(n) (Cochran 1977, "Sampling
    Techniques", ch. 3, without the finite-population factor; Miller 2024, arXiv:2411.00640).
    None for fewer than two items. It is 0 at p = 0 and p = 1 whatever n, which is not
    certainty: show ``wilson_interval`` next to it.
    """
    correct, total = _checks.part("correct", correct, "total", total)
    if total < 2:
        return None
    # In integers up to one rounded division: no cancellation in 1 - p.
    return math.sqrt(correct * (total - correct) / (total * total * (total - 1)))


def wilson_interval(correct: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's two-sided score interval of a proportion, without continuity correction.

    Wilson (1927), "Probable inference, the law of succession, and statistical inference",
    J. Am. Stat. Assoc. 22, 209-212: the roots of (n + z^2) x^2 - (2c + z^2) x + c^2/n = 0.
    Always contains the estimate; without items it says nothing, (0, 1), as the equation does
    for n -> 0. ValueError unless 0 < confidence < 1.
    """
    correct, total = _checks.part("correct", correct, "total", total)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, but is {confidence!r}")
    if total == 0:
        return 0.0, 1.0
    z = -float(
        NormalDist().inv_cdf((1 - confidence) / 2)
    )  # the small tail: precise for confidence near 1
    low = _lower_root(correct, total, z)
    high = 1 - _lower_root(total - correct, total, z)
    estimate = correct / total  # the clamps only undo rounding, for z near 0
    return min(low, estimate), max(high, estimate)


def _lower_root(correct: int, total: int, z: float) -> float:
    # The larger root has no cancellation; the product of the roots gives the smaller one.
    square = z * z
    spread = math.sqrt(square + 4 * (correct * (total - correct) / total))
    upper = (2 * correct + square + z * spread) / (2 * (total + square))
    return correct * correct / total / (total + square) / upper if correct else 0.0
