"""McNemar's exact test, the sign-flip test, Holm's adjustment, the interval of a difference."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from pytest_llmeval.metrics import holm
from pytest_llmeval.metrics import mcnemar
from pytest_llmeval.metrics import paired_interval
from pytest_llmeval.metrics import sign_flip
from pytest_llmeval.metrics import stratified_change


@pytest.mark.parametrize("total", [1, 2, 3, 5, 10, 31, 100, 501, 1000])
def test_mcnemar_agrees_with_exact_sums_and_scipy(total: int) -> None:
    tail = 0
    for smaller in range(total // 2 + 1):
        tail += comb(total, smaller)
        exact = float(min(Fraction(1), Fraction(2 * tail, 2**total)))
        ours = mcnemar(smaller, total - smaller)
        assert ours == pytest.approx(exact, rel=1e-11, abs=1e-12)
        if total <= 100:
            theirs = binomtest(smaller, total, 0.5).pvalue
            assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("b", [0, 1, 2, 5, 17, 100, 800])
@pytest.mark.parametrize("c", [0, 1, 2, 5, 17, 100, 800])
def test_mcnemar_agrees_with_statsmodels(b: int, c: int) -> None:
    theirs = statsmodels_mcnemar([[9, b], [c, 9]], exact=True).pvalue
    expected = 1.0 if b == c == 0 else theirs  # theirs has no p value without a difference
    assert mcnemar(b, c) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("b", "c", "expected"),
    [(0, 0, 1.0), (4, 4, 1.0), (0, 1, 1.0), (0, 5, 0.0625), (1, 9, 22 / 1024)],
)
def test_mcnemar_by_hand(b: int, c: int, expected: float) -> None:
    assert mcnemar(b, c) == pytest.approx(expected, rel=1e-14)


@given(st.integers(0, 20_000), st.integers(0, 20_000))
def test_mcnemar_is_a_symmetric_p_value(b: int, c: int) -> None:
    assert 0 <= mcnemar(b, c) == mcnemar(c, b) <= 1
    assert mcnemar(min(b, c), max(b, c) + 1) <= mcnemar(b, c) + 1e-12


@pytest.mark.parametrize("arguments", [(-1, 2), (2, -1), (1.0, 2), (float("nan"), 2)])
def test_mcnemar_refuses_nonsense(arguments: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative"):
        mcnemar(*arguments)


def test_holm_by_hand() -> None:
    assert holm([]) == []
    assert holm([0.03]) == [0.03]
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


probabilities = st.lists(st.floats(0, 1), max_size=7)


@given(probabilities)
def test_holm_is_the_closed_test_of_bonferroni(p_values: list[float]) -> None:
    """Holm 1979 is the closure of Bonferroni: the largest |S| min(S) over the subsets with i."""
    everything = range(len(p_values))
    brute = [
        max(
            min(1.0, len(subset) * min(p_values[j] for j in subset))
            for size in range(1, len(p_values) + 1)
            for subset in combinations(everything, size)
            if i in subset
        )
        for i in everything
    ]
    assert holm(p_values) == pytest.approx(brute, rel=1e-14, abs=0)


@pytest.mark.parametrize("size", [1, 2, 5, 57, 200])
@pytest.mark.parametrize("power", [1, 4])
def test_holm_agrees_with_statsmodels(size: int, power: int) -> None:
    """On a grid and not by Hypothesis: theirs takes a tenth of a second."""
    p_values = np.random.default_rng(size).random(size) ** power
    p_values[: size // 4] = np.round(p_values[: size // 4], 2)  # ties, zeros and ones too
    theirs = multipletests(p_values, method="holm")[1]
    assert holm(p_values.tolist()) == pytest.approx(list(theirs), abs=1e-12)


@given(st.lists(st.floats(0, 1)))
def test_holm_is_monotone_and_never_below_raw(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(raw <= new <= 1 for raw, new in zip(p_values, adjusted, strict=True))
    ordered = [new for _, new in sorted(zip(p_values, adjusted, strict=True))]
    assert ordered == sorted(ordered)


@given(st.lists(st.floats(0, 1)), st.randoms())
def test_holm_keeps_the_order_of_its_input(p_values: list[float], random: object) -> None:
    order = list(range(len(p_values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    adjusted = holm(p_values)
    assert holm([p_values[i] for i in order]) == [adjusted[i] for i in order]


@pytest.mark.parametrize("p_values", [[-0.1], [1.1], [float("nan"), 0.5]])
def test_holm_refuses_what_is_no_probability(p_values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"p_values\[0\] must be in \[0, 1\]"):
        holm(p_values)


differences = st.lists(st.integers(-5, 5), max_size=10)


@given(differences)
def test_sign_flip_is_the_share_of_all_signs(values: list[int]) -> None:
    """Of all 2^n assignments of signs to the differences, those with a sum as far from 0."""
    sums = [
        sum(s * v for s, v in zip(signs, values, strict=True))
        for signs in product((1, -1), repeat=len(values))
    ]
    brute = sum(abs(total) >= abs(sum(values)) for total in sums) / len(sums)
    assert sign_flip(Counter(values)) == pytest.approx(brute, rel=1e-12, abs=0)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 99), st.integers(1, 9))
def test_sign_flip_of_equal_sizes_is_mcnemar(worse: int, better: int, same: int, size: int) -> None:
    p_value = sign_flip({size: worse, -size: better, 0: same})
    assert p_value == mcnemar(worse, better)


@given(st.dictionaries(st.integers(-5, 5), st.integers(0, 30)), st.integers(2, 7))
def test_sign_flip_has_no_direction_and_no_unit(tally: dict[int, int], unit: int) -> None:
    p_value = sign_flip(tally)
    assert 0 <= p_value <= 1
    assert sign_flip({-d: m for d, m in tally.items()}) == p_value
    assert sign_flip({unit * d: m for d, m in tally.items()}) == p_value


def test_sign_flip_keeps_small_p_values() -> None:
    """All of 200 items worse, by 1 or by 2: only the two outermost of 2^200 sums are as far."""
    assert sign_flip({1: 100, 2: 100}) == pytest.approx(2.0**-199, rel=1e-12)


def test_sign_flip_of_a_whole_benchmark_is_close_to_normal() -> None:
    tally = Counter({size: 702 for size in range(-10, 11) if size})
    tally[10] += 100
    deviation = math.sqrt(sum(d * d * m for d, m in tally.items()))
    # Sums are two apart.
    normal = math.erfc((1000 - 1) / deviation / math.sqrt(2))
    assert sign_flip(tally) == pytest.approx(normal, rel=1e-4)


@pytest.mark.parametrize("tally", [{1: -1}, {1.0: 1}, {1: 1.0}, {float("nan"): 1}])
def test_sign_flip_refuses_nonsense(tally: dict[int, int]) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative"):
        sign_flip(tally)


def test_paired_interval_by_hand() -> None:
    """Bonett & Price: 10 of 100 worse and 4 better are taken as 11 and 5 of 102."""
    worse, better, items = 11 / 102, 5 / 102, 102
    half = 1.959963984540054 * math.sqrt((worse + better - (worse - better) ** 2) / items)
    low, high = paired_interval({1: 10, -1: 4, 0: 86})
    assert (low, high) == pytest.approx((worse - better - half, worse - better + half))


scales = st.integers(1, 5)
scaled = scales.flatmap(
    lambda scale: st.tuples(
        st.dictionaries(st.integers(-scale, scale), st.integers(1, 500), min_size=1),
        st.just(scale),
    )
)


@given(scaled, st.floats(0.001, 0.999))
def test_paired_interval_contains_the_difference(
    drawn: tuple[dict[int, int], int], confidence: float
) -> None:
    tally, scale = drawn
    estimate = sum(d * m for d, m in tally.items()) / (scale * sum(tally.values()))
    low, high = paired_interval(tally, scale, confidence)
    assert -1 <= low <= estimate <= high <= 1
    assert low < high


@given(scaled, st.integers(2, 9))
def test_paired_interval_shrinks_and_has_no_unit(
    drawn: tuple[dict[int, int], int], times: int
) -> None:
    tally, scale = drawn
    low, high = paired_interval(tally, scale)
    narrow = paired_interval({d: m * times for d, m in tally.items()}, scale)
    assert narrow[1] - narrow[0] < high - low
    same = paired_interval({d * times: m for d, m in tally.items()}, scale * times)
    assert same == pytest.approx((low, high), abs=1e-12)
    other = paired_interval({-d: m for d, m in tally.items()}, scale)
    assert (-other[1], -other[0]) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("items", "worse", "better"),
    [(100, 0.05, 0.05), (100, 0.15, 0.03), (1000, 0.02, 0.01), (30, 0.1, 0.1)],
)
def test_paired_interval_covers(items: int, worse: float, better: float) -> None:
    draws = np.random.default_rng(5).multinomial(
        items, [worse, better, 1 - worse - better], size=2000
    )
    hits = 0
    for lost, won, same in draws.tolist():
        low, high = paired_interval({1: lost, -1: won, 0: same})
        hits += low <= worse - better <= high
    assert 0.94 <= hits / 2000 <= 0.98


def test_the_paired_interval_without_items_is_everything() -> None:
    assert paired_interval({}) == paired_interval({0: 0}, 5) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("tally", "scale", "confidence"),
    [
        ({2: 1}, 1, 0.95),
        ({1: -1}, 1, 0.95),
        ({1.0: 1}, 1, 0.95),
        ({1: 1}, 0, 0.95),
        ({1: 1}, 1.0, 0.95),
        ({1: 1}, 1, 1.0),
        ({}, 1, float("nan")),
    ],
)
def test_paired_interval_refuses_nonsense(
    tally: dict[int, int], scale: int, confidence: float
) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|larger|at least 1|confidence"):
        paired_interval(tally, scale, confidence)


def test_a_change_in_one_part_is_its_paired_interval() -> None:
    changes = {1: 7, -1: 2, 0: 31}
    interval, p_value = stratified_change([(1.0, changes)])
    assert interval == pytest.approx(paired_interval(changes))
    assert p_value == pytest.approx(mcnemar(7, 2), abs=0.1)
    assert stratified_change([(1.0, {})]) == ((-1.0, 1.0), 1.0)
    assert stratified_change([(0.5, {0: 9}), (0.5, {0: 9})])[1] == 1.0


def test_the_stratified_change_covers_and_raises_few_false_alarms() -> None:
    """One heavy subject and nine light ones, ten items drawn of each, a fifth of them flipping."""
    rng = np.random.default_rng(6)
    weights = [0.9, *[0.1 / 9] * 9]
    covered = alarms = 0
    for _ in range(1500):
        parts = []
        for weight in weights:
            worse, better, same = rng.multinomial(10, [0.1, 0.1, 0.8])
            parts.append((weight, {1: int(worse), -1: int(better), 0: int(same)}))
        (low, high), p_value = stratified_change(parts)
        covered += low <= 0 <= high
        alarms += p_value <= 0.05
    assert covered / 1500 >= 0.94
    assert alarms / 1500 <= 0.06


def test_a_drop_in_a_heavy_subject_is_weighed() -> None:
    parts = [(0.9, {1: 6, 0: 4}), *[(0.1 / 9, {0: 10})] * 9]
    (low, high), p_value = stratified_change(parts)
    assert low <= 0.54 <= high
    assert p_value < 0.01
