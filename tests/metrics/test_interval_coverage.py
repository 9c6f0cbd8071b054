"""Coverage of the intervals, by simulation: near their confidence, never far below it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from pytest_llmeval.metrics import bootstrap_interval
from pytest_llmeval.metrics import macro_interval
from pytest_llmeval.metrics import stratified_interval
from pytest_llmeval.metrics import tally_interval
from support.metric_results import single_answers


def covered(seed: int, repetitions: int, sample: Any) -> float:
    rng = np.random.default_rng(seed)
    return sum(
        low <= truth <= high for low, high, truth in (sample(rng) for _ in range(repetitions))
    )


@pytest.mark.parametrize(
    ("subjects", "items", "least", "most"),
    [(12, 25, 0.3, 0.95), (57, 5, 0.3, 0.95), (57, 1, 0.3, 0.95), (12, 25, 0.9, 0.99)],
)
def test_the_macro_interval_covers(subjects: int, items: int, least: float, most: float) -> None:
    rates = np.linspace(least, most, subjects)

    def sample(rng: np.random.Generator) -> tuple[float, float, float]:
        rights = rng.binomial(items, rates)
        return *macro_interval(
            {str(i): single_answers(int(c), items) for i, c in enumerate(rights)}
        ), (float(rates.mean()))

    assert 0.93 <= covered(1, 600, sample) / 600 <= 0.98


@pytest.mark.parametrize(
    ("sizes", "drawn", "rates"),
    [
        ([1534] + [100] * 10, 10, [0.9] + [0.5] * 10),
        ([1534] + [100] * 10, 5, [0.9] * 11),
        ([1000, 100], 20, [0.95, 0.7]),
        ([10_000, 60], 20, [0.9, 0.5]),
    ],
)
def test_the_stratified_interval_covers_where_a_subject_is_heavy(
    sizes: list[int], drawn: int, rates: list[float]
) -> None:
    populations = {str(i): size for i, size in enumerate(sizes)}
    truth = sum(s * p for s, p in zip(sizes, rates, strict=True)) / sum(sizes)

    def sample(rng: np.random.Generator) -> tuple[float, float, float]:
        rights = rng.binomial(drawn, rates)
        subjects = {str(i): single_answers(int(c), drawn) for i, c in enumerate(rights)}
        return *stratified_interval(subjects, populations, finite=False), truth

    assert 0.93 <= covered(4, 600, sample) / 600 <= 0.98


@pytest.mark.parametrize("sizes", [[5, 5, 100], [6, 100], [3, 3, 3, 200]])
def test_the_macro_interval_covers_where_sizes_differ(sizes: list[int]) -> None:
    rates = [0.85] * (len(sizes) - 1) + [0.9]

    def sample(rng: np.random.Generator) -> tuple[float, float, float]:
        rights = rng.binomial(sizes, rates)
        subjects = {
            str(i): single_answers(int(c), n)
            for i, (c, n) in enumerate(zip(rights, sizes, strict=True))
        }
        return *macro_interval(subjects), sum(rates) / len(rates)

    assert 0.93 <= covered(5, 600, sample) / 600 <= 0.98


@pytest.mark.parametrize(("items", "n"), [(20, 5), (50, 10), (164, 20)])
def test_the_tally_interval_covers(items: int, n: int) -> None:
    """Items whose rates are spread as beta(2, 2) and beta(0.3, 0.7)."""
    for a, b in ((2, 2), (0.3, 0.7)):

        def sample(
            rng: np.random.Generator, a: float = a, b: float = b
        ) -> tuple[float, float, float]:
            rights = rng.binomial(n, rng.beta(a, b, items))
            return *tally_interval(Counter((n, int(c)) for c in rights)), a / (a + b)

        assert 0.93 <= covered(2, 600, sample) / 600 <= 0.98


@pytest.mark.parametrize(("size", "drawn"), [(200, 20), (200, 150), (150, 2)])
def test_the_stratified_interval_covers_the_benchmark_and_the_model(size: int, drawn: int) -> None:
    rates = np.linspace(0.3, 0.9, 20)
    sizes = {str(i): size for i in range(20)}

    def sample(rng: np.random.Generator, finite: bool) -> tuple[float, float, float]:
        whole = rng.binomial(size, rates)
        rights = rng.hypergeometric(whole, size - whole, drawn)
        subjects = {str(i): single_answers(int(c), drawn) for i, c in enumerate(rights)}
        truth = whole.sum() / (20 * size) if finite else rates.mean()
        return *stratified_interval(subjects, sizes, finite=finite), truth

    for finite in (True, False):
        hits = covered(3, 600, lambda rng, finite=finite: sample(rng, finite))
        assert 0.93 <= hits / 600 <= 0.98


def test_the_pass_at_k_interval_covers() -> None:
    """Beta(1, 1) rates: pass@2 is 1 - E (1 - p)^2 = 2/3."""

    def sample(rng: np.random.Generator) -> tuple[float, float, float]:
        tally = Counter((5, int(c)) for c in rng.binomial(5, rng.beta(1, 1, 100)))
        low, high = bootstrap_interval(
            [tally], lambda n, c: 1 - math.comb(n - c, 2) / math.comb(n, 2), resamples=500
        )
        return low, high, 2 / 3

    assert 0.92 <= covered(4, 600, sample) / 600 <= 0.98
