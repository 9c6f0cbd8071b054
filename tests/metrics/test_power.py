"""What a measurement could have seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pytest_llmeval.metrics import detectable_drop
from pytest_llmeval.metrics import detectable_paired_drop
from pytest_llmeval.metrics import holm
from pytest_llmeval.metrics import mcnemar
from pytest_llmeval.metrics import smallest_significant
from pytest_llmeval.metrics import stratified_change
from pytest_llmeval.metrics import wilson_interval
from pytest_llmeval.metrics.paired_tests import detectable_stratified_change

NAN = float("nan")


def defined(value: float | None) -> float:
    assert value is not None
    return value


def test_detectable_drop_by_hand() -> None:
    """At 1/2 the two added successes and failures only add to n: 2.8016 × sqrt(1/4 / (n + z^2))."""
    expected = (1.959963984540054 + 0.8416212335729143) * math.sqrt(0.25 / (14_042 + 3.8414588))
    assert detectable_drop(0.5, 14_042) == pytest.approx(expected)
    assert expected == pytest.approx(0.0118, abs=1e-4)


def test_all_right_is_no_certainty() -> None:
    assert defined(detectable_drop(1.0, 100)) > 0.03
    assert detectable_drop(0.5, 0) is None
    assert detectable_drop(0.5, 0.5, 0.5, 0.999) == 1
    assert detectable_drop(0.5, math.inf) == 0


@given(st.floats(0, 1), st.floats(0.1, 1e6), st.floats(0.5, 0.999), st.floats(0.5, 0.99))
def test_more_items_see_smaller_drops(
    mean: float, size: float, confidence: float, power: float
) -> None:
    drop = defined(detectable_drop(mean, size, confidence, power))
    assert 0 <= drop <= 1
    assert defined(detectable_drop(mean, size * 2, confidence, power)) <= drop
    assert drop <= defined(detectable_drop(mean, size, confidence, (power + 1) / 2))
    assert drop == pytest.approx(detectable_drop(1 - mean, size, confidence, power))


@pytest.mark.parametrize(("rate", "size"), [(0.5, 200), (0.7, 1000), (0.3, 100)])
def test_a_drop_of_that_size_is_found_four_times_in_five(rate: float, size: int) -> None:
    """Exactly: Wilson's upper bound lies below the rate from which the model has dropped."""
    drop = defined(detectable_drop(rate, size))
    counts = np.arange(size + 1)
    detected = [wilson_interval(int(c), size)[1] < rate for c in counts]
    power = binom.pmf(counts, size, rate - drop)[detected].sum()
    assert 0.74 <= power <= 0.88


@pytest.mark.parametrize(
    "arguments", [(1.1, 9), (NAN, 9), (0.5, -1), (0.5, NAN), (0.5, 9, 1.0), (0.5, 9, 0.95, 0.0)]
)
def test_detectable_drop_refuses_nonsense(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="must"):
        detectable_drop(*arguments)


def test_detectable_paired_drop_by_hand() -> None:
    expected = (1.959963984540054 + 0.8416212335729143) * math.sqrt(12 / 102 / 100)
    assert detectable_paired_drop(100, 7, 3) == pytest.approx(expected)
    assert detectable_paired_drop(0, 0, 0) is None
    assert detectable_paired_drop(3, 0, 0) is None  # three items cannot show anything


@pytest.mark.parametrize("items", [6, 20, 100, 14_042])
def test_where_nothing_changed_the_exact_test_has_the_power(items: int) -> None:
    """Six newly wrong items and none newly right is p = 1/32; five are 1/16."""
    drop = defined(detectable_paired_drop(items, 0, 0))
    assert binom.sf(5, items, drop) == pytest.approx(0.8)


paired = st.integers(1, 5000).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n)).flatmap(
        lambda two: st.tuples(st.just(two[0]), st.just(two[1]), st.integers(0, two[0] - two[1]))
    )
)


@given(paired, st.floats(1e-6, 0.5), st.floats(0.5, 0.99))
def test_paired_drops_are_seen_sooner_by_looser_tests(
    drawn: tuple[int, int, int], alpha: float, power: float
) -> None:
    items, worse, better = drawn
    assume(detectable_paired_drop(items, worse, better, alpha / 57, power) is not None)
    drop = defined(detectable_paired_drop(items, worse, better, alpha, power))
    assert 0 < drop <= 1
    assert drop == detectable_paired_drop(items, better, worse, alpha, power)
    assert drop <= defined(detectable_paired_drop(items, worse, better, alpha / 57, power))
    assert drop <= defined(detectable_paired_drop(items, worse, better, alpha, (1 + power) / 2))


@pytest.mark.parametrize(("items", "share"), [(1000, 0.1), (400, 0.2), (14_042, 0.05)])
def test_a_paired_drop_of_that_size_is_found_four_times_in_five(items: int, share: float) -> None:
    drop = defined(
        detectable_paired_drop(items, round(items * share / 2), round(items * share / 2))
    )
    chances = [(share + drop) / 2, (share - drop) / 2, 1 - share]
    draws = np.random.default_rng(1).multinomial(items, chances, size=1000)
    detected = sum(mcnemar(worse, better) <= 0.05 for worse, better, _ in draws.tolist())
    assert 0.75 <= detected / 1000 <= 0.87


@pytest.mark.parametrize(
    "arguments",
    [(5, 4, 2), (5, -1, 0), (5, 0, -1), (5.0, 1, 1), (5, 1, 1, 0.0), (5, 1, 1, 1.0), (0, 0, 0, 2)],
)
def test_detectable_paired_drop_refuses_nonsense(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|larger|alpha"):
        detectable_paired_drop(*arguments)


@given(st.integers(1, 200), st.floats(1e-9, 0.999))
def test_smallest_significant_is_where_the_exact_test_begins(subjects: int, alpha: float) -> None:
    least = smallest_significant(subjects, alpha)
    # A hair of room: scipy's p value may differ from 2 / 2^k in the last digit.
    assert subjects * mcnemar(least, 0) <= alpha * (1 + 1e-12)
    assert least == 1 or subjects * mcnemar(least - 1, 0) > alpha * (1 - 1e-12)


@pytest.mark.parametrize(
    ("subjects", "alpha", "least"), [(1, 0.05, 6), (57, 0.05, 12), (1, 0.0625, 5), (2, 0.5, 3)]
)
def test_smallest_significant_by_hand(subjects: int, alpha: float, least: int) -> None:
    assert smallest_significant(subjects, alpha) == least
    changed = [mcnemar(least, 0), *[1.0] * (subjects - 1)]
    assert holm(changed)[0] <= alpha


@pytest.mark.parametrize(
    ("subjects", "alpha"), [(0, 0.05), (-1, 0.05), (1.0, 0.05), (1, 0.0), (1, 1.0), (1, NAN)]
)
def test_smallest_significant_refuses_nonsense(subjects: int, alpha: float) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|at least 1|alpha"):
        smallest_significant(subjects, alpha)


def test_a_weighed_drop_of_that_size_is_found_four_times_in_five() -> None:
    """One heavy subject and nine light ones, 40 items drawn of each."""
    weights = [0.5, *[0.5 / 9] * 9]
    unchanged = [(weight, {1: 6, -1: 6, 0: 28}) for weight in weights]
    drop = defined(detectable_stratified_change(unchanged))
    # Without the weights: 400 items of which 120 changed.
    assert drop > 1.5 * defined(detectable_paired_drop(400, 60, 60))
    rng = np.random.default_rng(7)
    rates = [0.15 + drop / 2, 0.15 - drop / 2, 0.7]
    draws = [[rng.multinomial(40, rates).tolist() for _ in weights] for _ in range(500)]
    detected = sum(
        stratified_change(
            [(w, {1: b, -1: c, 0: s}) for w, (b, c, s) in zip(weights, draw, strict=True)]
        )[1]
        <= 0.05
        for draw in draws
    )
    assert 0.7 < detected / 500 < 0.9


@given(st.integers(1, 50), st.integers(0, 5), st.integers(0, 5), st.integers(1, 9))
def test_equal_subjects_are_as_one(same: int, worse: int, better: int, subjects: int) -> None:
    part = {1: worse, -1: better, 0: same}
    pooled = {change: items * subjects for change, items in part.items()}
    assert detectable_stratified_change([(1 / subjects, part)] * subjects) == pytest.approx(
        detectable_stratified_change([(1.0, pooled)])
    )
    assert detectable_stratified_change([(1.0, {})]) is None
