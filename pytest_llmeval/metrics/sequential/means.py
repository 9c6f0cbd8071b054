"""Evidence on the mean of scores in [0, 1], or of weighted scores, over all items.

The scores of the items are taken in their random order: unlike counts of right and wrong answers,
they are not summarized by a few numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pytest_llmeval.metrics.sequential.counts import Floats

Side = Literal[1, -1]

_MARGINS: Floats = 2.0 ** (-np.arange(2, 19) / 2)
"""Distances from the edge for which the stakes are best: 0.5 … 0.002, uniform in the logarithm."""

_LARGEST_STAKE = 0.9
"""Share of the largest stake that cannot lose everything."""

_GUESSED_SCORES = 4
"""Weight of the first guess of the variance, 1/4, in scores."""


@dataclass(frozen=True)
class Scores:
    """Scores of the answered items in their random order, and the kinds of all items.

    The arrays have the shape (n,), for n answered items.
    """

    values: Floats
    weights: Floats
    """The largest possible score of each item."""
    covariates: Floats
    """Predictor of each score that is available for all items of the benchmark."""
    slopes: Floats
    """Factor of each covariate; it must depend on earlier items only."""
    kinds: Sequence[tuple[float, float, int]]
    """(covariate, weight, number of items) of every kind of item, over the whole benchmark."""

    def __post_init__(self) -> None:
        if len(self.values) > self.population:
            raise ValueError(f"{len(self.values)} scores of {self.population} items")

    @property
    def population(self) -> int:
        """Number of items in the benchmark."""
        return sum(items for _, _, items in self.kinds)


def plain_scores(values: Sequence[float], population: int) -> Scores:
    """Return scores in [0, 1] without weights, such as the share of right samples of an item."""
    scores = np.asarray(values, float)
    zeros = np.zeros(len(scores))
    return Scores(scores, np.ones(len(scores)), zeros, zeros, [(0.0, 1.0, population)])


def weighted_scores(
    values: Sequence[float], weights: Sequence[float], weight_counts: Mapping[float, int]
) -> Scores:
    """Return the scores of a weighted mean: each is the product of a value in [0, 1] and a weight.

    ``weight_counts``: weight → number of items in the benchmark. A macro accuracy of S subjects is
    the mean of c x over the N items, with x in {0, 1} and c = N / (S N_s) for an item of a subject
    with N_s items. The weights are the covariates, with the accuracy so far as the slope: (sum of
    scores + 1/2) / (sum of weights + 1). This subtracts from a score the part that its weight
    explains.
    """
    weight = np.asarray(weights, float)
    scores = np.asarray(values, float) * weight
    slopes = (_before(scores) + 0.5) / (_before(weight) + 1)
    kinds = [(value, value, items) for value, items in weight_counts.items()]
    return Scores(scores, weight, weight, slopes, kinds)


def log_evidence_of_total(scores: Scores, total: float, side: Side) -> Floats:
    """Return the log evidence, after every answered item, that the sum of all scores is not ``total``.

    ``side`` 1: evidence that it is larger than ``total``, the largest sum of a failed gate; -1: that
    it is smaller than ``total``, the smallest sum of a passed gate. With the scores y_1 … y_n of the
    answered items, N = ``population`` and what an edge at ``total`` leaves for the others,

        m_t = (total - y_1 - … - y_(t-1)) / (N - t + 1),
        e_t = (y_t - m_t) - eta_t (g_t - mean of g over the items left),

    has mean 0 over the random order (g: covariate, eta: slope). The evidence is the mean over 17
    margins d of prod_t (1 + side lambda_t e_t), with the stakes lambda_t = min(d N / (N - t + 1) /
    v_t, 0.9 / the largest possible loss) and v_t the mean of e^2 so far: betting without replacement
    (Waudby-Smith & Ramdas 2024, J. R. Stat. Soc. B 86, 1-27, section 5). Valid for every order and
    stopping rule, since slopes and stakes depend on earlier items only. ``inf`` from the item that
    excludes the edge, ``-inf`` from the one that excludes the other side, and at n = N if the sum is
    on the edge. Shape (n,). O(n).
    """
    answered, population = len(scores.values), scores.population
    if not answered:
        return np.zeros(0)
    left = np.arange(float(population), population - answered, -1)
    mean = (total - _before(scores.values)) / left
    all_covariates = math.fsum(g * items for g, _, items in scores.kinds)
    centre = (all_covariates - _before(scores.covariates)) / left
    slopes = scores.slopes
    excess = side * (scores.values - mean - slopes * (scores.covariates - centre))
    losses = [
        mean + slopes * (g - centre) if side > 0 else weight - mean - slopes * (g - centre)
        for g, weight, _ in scores.kinds
    ]
    worst = np.max(losses, axis=0)
    squares = _before(excess * excess)
    variance = (squares + _GUESSED_SCORES / 4) / (np.arange(answered) + _GUESSED_SCORES)
    with np.errstate(divide="ignore", over="ignore"):
        most = np.where(worst > 0, _LARGEST_STAKE / worst, 0.0)
    stakes = np.minimum(_MARGINS * (population / left / variance)[:, None], most[:, None])
    # An edge that the scores have excluded is reported below; its further stakes mean nothing.
    gains = np.maximum(stakes * excess[:, None], -1 + 1e-12)
    logs = np.cumsum(np.log1p(gains), axis=0)
    largest = logs.max(axis=1)
    evidence = largest + np.log(np.exp(logs - largest[:, None]).mean(axis=1))
    rest = total - np.cumsum(scores.values)
    whole = math.fsum(weight * items for _, weight, items in scores.kinds)
    room = whole - np.cumsum(scores.weights)
    return _with_certainty(evidence, rest, room, left - 1, side, 1e-9 * max(1.0, abs(total)))


def _with_certainty(
    evidence: Floats, rest: Floats, room: Floats, left: Floats, side: Side, slack: float
) -> Floats:
    """Return the evidence with ``inf`` and ``-inf`` where the remaining items cannot change it.

    ``rest``: sum that the edge leaves for them; ``room``: their largest possible sum.
    """
    too_small, too_large = rest < -slack, rest > room + slack
    certain, impossible = (too_small, too_large) if side > 0 else (too_large, too_small)
    evidence = np.where((left == 0) | impossible, -math.inf, evidence)
    return np.where(certain, math.inf, evidence)


def _before(values: Floats) -> Floats:
    """Return the sum of the values before each."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]]) if len(values) else values
