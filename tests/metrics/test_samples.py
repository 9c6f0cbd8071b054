"""pass@k and pass^k against enumeration; means, errors and variances over items."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmeval.metrics import clustered_standard_error
from pytest_llmeval.metrics import mean_pass_at_k
from pytest_llmeval.metrics import mean_pass_hat_k
from pytest_llmeval.metrics import pass_at_k
from pytest_llmeval.metrics import pass_hat_k
from pytest_llmeval.metrics import sample_spread
from pytest_llmeval.metrics import standard_error
from pytest_llmeval.metrics import variance_components


@st.composite
def samples(draw: st.DrawFn, most: int = 9) -> tuple[int, int, int]:
    n = draw(st.integers(1, most))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


@st.composite
def item_lists(
    draw: st.DrawFn, least: int = 1, most: int = 12, samples: int | None = None
) -> list[tuple[int, int]]:
    """(answered, correct) of each item, of one number of samples or of any."""
    sizes = st.integers(1, 6) if samples is None else st.just(samples)
    tally = sizes.flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
    return draw(st.lists(tally, min_size=least, max_size=most))


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
    """Never 1.0."""
    assert function(n, c, k) is None


def test_a_probability_not_a_flag() -> None:
    assert [pass_at_k(5, 2, 1), pass_at_k(200, 1, 1)] == [0.4, 0.005]
    assert [pass_at_k(5, 2, 3), pass_at_k(200, 1, 3)] == [0.9, 0.015]
    assert mean_pass_at_k({(5, 2): 1, (200, 1): 1}, 1) == pytest.approx(0.2025, rel=1e-15)


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


def test_published_values_of_codet(data: Path) -> None:
    """HumanEval by codegen-16B with 100 samples, as CodeT (Chen et al. 2022) publishes it."""
    published = data / "outputs" / "humaneval" / "expected_results.json"
    counts = json.loads(published.read_text())["codet_codegen16B_counts"].values()
    tally = Counter((task["n"], task["c"]) for task in counts)
    assert tally.total() == 164
    values = {k: round(100 * defined(mean_pass_at_k(tally, k)), 2) for k in (1, 2, 5, 10, 50, 100)}
    assert values == {1: 22.11, 2: 30.79, 5: 42.02, 10: 50.37, 50: 68.69, 100: 73.78}


@given(item_lists(), st.integers(1, 7))
def test_means_over_items(items: list[tuple[int, int]], k: int) -> None:
    tally = Counter(items)
    for mean, value in ((mean_pass_at_k, pass_at_k), (mean_pass_hat_k, pass_hat_k)):
        if min(n for n, _ in items) < k:
            assert mean(tally, k) is None
        else:
            values = [defined(value(n, c, k)) for n, c in items]
            assert mean(tally, k) == pytest.approx(statistics.fmean(values), rel=1e-14, abs=0)
            assert 0 <= defined(mean(tally, k)) <= 1


def test_one_item_with_too_few_answers_leaves_the_mean_undefined() -> None:
    assert mean_pass_at_k({(5, 5): 99, (1, 0): 1}, 5) is None
    assert mean_pass_at_k({(5, 5): 99, (1, 0): 0}, 5) == 1
    assert mean_pass_at_k({}, 5) is mean_pass_hat_k({}, 5) is None


TALLY_FUNCTIONS = [
    lambda tally: mean_pass_at_k(tally, 1),
    lambda tally: mean_pass_hat_k(tally, 1),
    clustered_standard_error,
    variance_components,
]


@pytest.mark.parametrize("function", TALLY_FUNCTIONS)
@pytest.mark.parametrize("tally", [{(2, 3): 1}, {(-1, 0): 1}, {(2, 1): -1}, {(2.0, 1): 1}])
def test_invalid_tallies(function: Callable[..., object], tally: object) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|larger"):
        function(tally)


@pytest.mark.parametrize("k", [0, -1, 1.0])
@pytest.mark.parametrize("tally", [{}, {(2, 1): 1}])
def test_means_of_no_k(tally: dict[tuple[int, int], int], k: int) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|at least 1"):
        mean_pass_at_k(tally, k)


@given(st.integers(2, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_with_one_answer_per_item_the_clustered_error_is_the_plain_one(
    drawn: tuple[int, int],
) -> None:
    correct, total = drawn
    tally = {(1, 1): correct, (1, 0): total - correct}
    assert clustered_standard_error(tally) == standard_error(correct, total)


@given(item_lists(least=2, samples=4))
def test_with_equal_samples_the_clustered_error_is_that_of_the_means(
    items: list[tuple[int, int]],
) -> None:
    means = [c / n for n, c in items]
    brute = statistics.stdev(means) / math.sqrt(len(items))
    assert clustered_standard_error(Counter(items)) == pytest.approx(brute, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    "items",
    [
        [(3, 1), (2, 2), (5, 0), (1, 1)],
        [(4, 1), (4, 2), (4, 4), (4, 0), (4, 4)],
        [(1, 0), (7, 7), (2, 1)],
    ],
)
def test_the_clustered_error_agrees_with_statsmodels(items: list[tuple[int, int]]) -> None:
    """Least squares on a constant, its sandwich variance by cluster: I/(I-1) (N-1)/(N-1)."""
    scores = [float(i < c) for n, c in items for i in range(n)]
    groups = [item for item, (n, _) in enumerate(items) for _ in range(n)]
    fit = sm.OLS(scores, np.ones(len(scores))).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}
    )
    assert clustered_standard_error(Counter(items)) == pytest.approx(fit.bse[0], rel=1e-12)


@pytest.mark.parametrize(
    ("tally", "expected"), [({}, None), ({(5, 2): 1}, None), ({(5, 5): 9}, 0.0), ({(5, 0): 9}, 0.0)]
)
def test_clustered_error_without_spread(
    tally: dict[tuple[int, int], int], expected: float | None
) -> None:
    assert clustered_standard_error(tally) == expected


@given(st.integers(2, 6).flatmap(lambda n: item_lists(least=2, samples=n)))
def test_variance_components_are_the_analysis_of_variance(items: list[tuple[int, int]]) -> None:
    n = items[0][0]
    scores = [[1.0] * c + [0.0] * (n - c) for _, c in items]
    within = statistics.fmean(statistics.variance(item) for item in scores)
    between = statistics.variance([statistics.fmean(item) for item in scores]) - within / n
    parts = variance_components(Counter(items))
    assert parts is not None
    assert (parts.items, parts.samples) == (len(items), n)
    assert parts.within_items == pytest.approx(within, rel=1e-12, abs=1e-15)
    assert parts.between_items == pytest.approx(max(0.0, between), rel=1e-12, abs=1e-14)
    assert parts.standard_error >= defined(clustered_standard_error(Counter(items))) - 1e-12
    if between > 0:
        assert parts.standard_error == pytest.approx(clustered_standard_error(Counter(items)))
    share = parts.items_share
    assert share is None if within == between == 0 else 0 <= defined(share) <= 1


@pytest.mark.parametrize("tally", [{}, {(5, 2): 1}, {(1, 1): 3, (1, 0): 3}, {(5, 2): 3, (4, 2): 3}])
def test_variance_components_need_two_items_of_equal_samples(
    tally: dict[tuple[int, int], int],
) -> None:
    assert variance_components(tally) is None


@pytest.mark.parametrize(
    ("tally", "share"), [({(8, 8): 5, (8, 0): 5}, 1), ({(8, 4): 10}, 0), ({(8, 8): 9}, None)]
)
def test_more_items_or_more_samples(tally: dict[tuple[int, int], int], share: float | None) -> None:
    """Items that always or never succeed: more samples are in vain. Coins: items are."""
    parts = variance_components(tally)
    assert parts is not None
    assert parts.items_share == share


def test_variance_components_are_unbiased() -> None:
    """Beta(2, 2) rates: variance 1/20 between, mean p (1 - p) of 1/5 within."""
    rng = np.random.default_rng(3)
    components = []
    for _ in range(400):
        rights = rng.binomial(4, rng.beta(2, 2, size=50))
        parts = variance_components(Counter((4, int(c)) for c in rights))
        assert parts is not None
        components.append((parts.between_items, parts.within_items))
    between, within = np.mean(components, axis=0)
    assert between == pytest.approx(1 / 20, abs=0.002)
    assert within == pytest.approx(1 / 5, abs=0.002)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9), st.floats(0.01, 0.99))
def test_sample_spread_is_that_of_students_t(accuracies: list[float], confidence: float) -> None:
    spread = sample_spread(accuracies, confidence)
    assert spread is not None
    mean, error = statistics.fmean(accuracies), statistics.stdev(accuracies)
    assert spread.mean == pytest.approx(mean)
    assert spread.variance == pytest.approx(error**2, abs=1e-15)
    low, high = stats.t.interval(
        confidence, len(accuracies) - 1, mean, max(error, 1e-300) / math.sqrt(len(accuracies))
    )
    expected = (max(0.0, low), min(1.0, high))
    assert spread.interval == pytest.approx(expected, rel=1e-9, abs=1e-7)
    assert 0 <= spread.interval[0] <= spread.mean <= spread.interval[1] <= 1


def test_sample_spread_of_too_few_or_no_accuracies() -> None:
    assert sample_spread([]) is sample_spread([0.5]) is None
    for accuracies in ([float("nan"), 0.5], [1.5, 0.5]):
        with pytest.raises(ValueError, match=r"accuracies\[0\]"):
            sample_spread(accuracies)
    with pytest.raises(ValueError, match="confidence"):
        sample_spread([0.5, 0.6], 1.0)
