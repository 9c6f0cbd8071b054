"""Calibration: agreement of the confidence in a choice with the frequency of right answers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.metrics import _validation
from pytest_llmeval.metrics.proportions import wilson_interval


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Answers with a confidence in (low, high]: their mean confidence and their accuracy."""

    low: float
    high: float
    items: int
    correct: int
    confidence: float
    accuracy: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A reliability diagram without its empty bins.

    ``ece``: expected calibration error, the mean over answers of |accuracy - confidence| of their
    bin. ``confidence`` and ``accuracy`` are over all answers; their difference is the
    overconfidence.
    """

    items: int
    confidence: float
    accuracy: float
    ece: float
    bins: tuple[CalibrationBin, ...]


def choice_confidence(logprobs: Sequence[float], chosen: int) -> float | None:
    """Return the softmax probability of the chosen option among all options.

    ``logprobs`` are natural logarithms, one per option. None if one is NaN, or if the largest is
    infinite. Raises ValueError if ``chosen`` is not an index of ``logprobs``.
    """
    if not 0 <= chosen < len(logprobs):
        raise ValueError(f"choice {chosen} of {len(logprobs)}")
    highest = max(logprobs)
    if not math.isfinite(highest) or any(math.isnan(value) for value in logprobs):
        return None
    return math.exp(logprobs[chosen] - highest) / math.fsum(
        math.exp(value - highest) for value in logprobs
    )


def calibration(answers: Iterable[tuple[float, bool]], bins: int = 10) -> Calibration | None:
    """Return the reliability diagram of (confidence, correct) pairs in bins of equal width.

    Guo et al. 2017 (arXiv:1706.04599), section 2 and eq. 3: bins are half-open, (low, high]. The
    interval of a bin is Wilson's at 95 %. None without answers. Raises ValueError for a confidence
    outside [0, 1].
    """
    if bins < 1:
        raise ValueError(f"bins = {bins} is below 1")
    groups: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, correct in answers:
        value = _validation.proportion("confidence", confidence)
        groups[min(bins, max(1, math.ceil(value * bins))) - 1].append((value, correct))
    items = sum(map(len, groups))
    if not items:
        return None
    filled = [_bin(n / bins, (n + 1) / bins, group) for n, group in enumerate(groups) if group]
    return Calibration(
        items,
        confidence=math.fsum(value for group in groups for value, _ in group) / items,
        accuracy=sum(bin_.correct for bin_ in filled) / items,
        ece=math.fsum(b.items * abs(b.accuracy - b.confidence) for b in filled) / items,
        bins=tuple(filled),
    )


def _bin(low: float, high: float, group: Sequence[tuple[float, bool]]) -> CalibrationBin:
    correct = sum(right for _, right in group)
    return CalibrationBin(
        low,
        high,
        len(group),
        correct,
        confidence=math.fsum(value for value, _ in group) / len(group),
        accuracy=correct / len(group),
        interval=wilson_interval(correct, len(group)),
    )
