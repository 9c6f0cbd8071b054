"""Quantiles of the normal distribution, without scipy."""

from __future__ import annotations

from statistics import NormalDist

from pytest_llmeval.metrics import _validation


def two_sided(confidence: float) -> float:
    """The z with P(-z < X < z) = confidence; ValueError unless 0 < confidence < 1."""
    # From the small tail: precise for a confidence near 1.
    return -float(NormalDist().inv_cdf((1 - _validation.confidence(confidence)) / 2))


def critical(alpha: float) -> float:
    """The z with P(|X| > z) = alpha; ValueError unless 0 < alpha < 1."""
    return -float(NormalDist().inv_cdf(_validation.confidence(alpha, "alpha") / 2))


def both_errors(z: float, power: float) -> float:
    """How many standard errors a drop must have for a test at ``z`` to find it with this power.

    z + z(power), the rejections in the wrong direction left out; at least 0. ValueError unless
    0 < power < 1.
    """
    return max(0.0, z + NormalDist().inv_cdf(_validation.confidence(power, "power")))
