"""pass@k and pass^k against enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics import pass_at_k
from pytest_llmeval.metrics import pass_hat_k


@st.composite
def samples(draw: st.DrawFn, most: int = 9) -> tuple[int, int, int]:
    n = draw(st.integers(1, most))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


def defined(value: float | None) -> float:
    assert value is not None
    return value


@given(samples())
def test_against_all_subsets(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    outcomes = [True] * c + [False] * (n - c)
    subsets = list(combinations(outcomes, k))
    assert pass_at_k(n, c, k) == sum(map(any, subsets)) / len(subsets)
    assert pass_hat_k(n, c, k) == sum(map(all, subsets)) / len(subsets)


@given(samples(most=400))
def test_monotone_in_k_and_c(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    at, hat = defined(pass_at_k(n, c, k)), defined(pass_hat_k(n, c, k))
    assert 0 <= hat <= c / n <= at <= 1
    if k < n:
        assert at <= defined(pass_at_k(n, c, k + 1))
        assert hat >= defined(pass_hat_k(n, c, k + 1))
    if c < n:
        assert at <= defined(pass_at_k(n, c + 1, k))
        assert hat <= defined(pass_hat_k(n, c + 1, k))


@given(samples(most=400))
def test_all_right_is_the_complement_of_any_wrong(drawn: tuple[int, int, int]) -> None:
    n, c, k = drawn
    assert pass_hat_k(n, c, k) == pytest.approx(1 - defined(pass_at_k(n, n - c, k)), abs=1e-15)


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(("n", "c", "k"), [(2, 0, 5), (0, 0, 1), (4, 4, 5)])
def test_too_few_samples_are_undefined(
    function: Callable[..., float | None], n: int, c: int, k: int
) -> None:
    """Case e01: never 1.0."""
    assert function(n, c, k) is None


def test_a_probability_not_a_flag() -> None:
    """Case e02."""
    assert [pass_at_k(5, 2, 1), pass_at_k(200, 1, 1)] == [0.4, 0.005]
    assert [pass_at_k(5, 2, 3), pass_at_k(200, 1, 3)] == [0.9, 0.015]


@pytest.mark.parametrize("c", [0, 1, 2, 137, 5000, 9999, 10_000])
@pytest.mark.parametrize("k", [1, 2, 100, 5000, 9999, 10_000])
def test_ten_thousand_samples(c: int, k: int) -> None:
    """Against the product form of Chen et al. in exact fractions, and in logarithms."""
    n = 10_000
    at, hat = defined(pass_at_k(n, c, k)), defined(pass_hat_k(n, c, k))
    if n - c < k:
        assert at == 1
    elif min(c, k) <= 200:
        few, many = sorted((c, k))
        none = math.prod((Fraction(n - many - i, n - i) for i in range(few)), start=Fraction(1))
        assert at == float(1 - none)
    else:
        none_log = math.fsum(math.log1p(-k / i) for i in range(n - c + 1, n + 1))
        assert at == pytest.approx(-math.expm1(none_log), rel=1e-12)
    assert 0 <= hat <= at


@pytest.mark.parametrize("function", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(
    ("n", "c", "k"),
    [(5, 6, 1), (-1, 0, 1), (5, -1, 1), (5, 1, 0), (5, 1, -1), (5, float("nan"), 1), (5, 1, 1.0)],
)
def test_nonsense(function: Callable[..., float | None], n: int, c: float, k: float) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|larger|at least 1"):
        function(n, c, k)
