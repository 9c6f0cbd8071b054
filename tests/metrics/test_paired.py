"""McNemar's exact test and Holm's adjustment."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from pytest_llmeval.metrics import holm
from pytest_llmeval.metrics import mcnemar


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
