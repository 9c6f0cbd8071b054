"""Accuracy, macro accuracy, normalized gain, standard error, Wilson's interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from pytest_llmeval.metrics import accuracy
from pytest_llmeval.metrics import exact_interval
from pytest_llmeval.metrics import macro_accuracy
from pytest_llmeval.metrics import macro_standard_error
from pytest_llmeval.metrics import normalized_gain
from pytest_llmeval.metrics import standard_error
from pytest_llmeval.metrics import wilson_interval

NAN = float("nan")
CONFIDENCES = (0.5, 0.8, 0.95, 0.99, 0.999)
SIZES = (1, 2, 3, 10, 57, 100, 1000, 14_042)
Interval = Callable[..., tuple[float, float]]


@st.composite
def counted(draw: st.DrawFn, least: int = 1, most: int = 20_000) -> tuple[int, int]:
    total = draw(st.integers(least, most))
    return draw(st.integers(0, total)), total


@pytest.mark.parametrize(
    ("correct", "total", "expected"),
    [(0, 0, None), (0, 7, 0.0), (7, 7, 1.0), (7, 25, 0.28), (1, 3, 1 / 3), (10**17, 10**18, 0.1)],
)
def test_accuracy(correct: int, total: int, expected: float | None) -> None:
    assert accuracy(correct, total) == expected


@pytest.mark.parametrize("function", [accuracy, standard_error, wilson_interval, exact_interval])
@pytest.mark.parametrize(
    "arguments",
    [(-1, 5), (0, -5), (6, 5), (1, 0), (NAN, 5), (1, NAN), (2.0, 5), (1, 5.0), ("1", 5), (None, 5)],
)
def test_counts_that_are_no_counts(
    function: Callable[..., object], arguments: tuple[object, object]
) -> None:
    with pytest.raises(ValueError, match=r"whole number|negative|larger"):
        function(*arguments)


def test_two_averages_with_different_names() -> None:
    subjects = {"algebra": (90, 100), "law": (1, 10)}
    assert accuracy(91, 110) == pytest.approx(0.8272727272727273, rel=1e-15)
    assert macro_accuracy(subjects) == 0.5


@pytest.mark.parametrize(
    ("subjects", "expected"),
    [
        ({}, None),
        ({"a": (0, 0)}, None),
        ({"a": (0, 0), "b": (1, 2)}, 0.5),
        ({"a": (1, 1), "b": (0, 1000)}, 0.5),
    ],
)
def test_macro_accuracy(subjects: dict[str, tuple[int, int]], expected: float | None) -> None:
    assert macro_accuracy(subjects) == expected


def test_macro_accuracy_names_no_nonsense() -> None:
    with pytest.raises(ValueError, match="larger"):
        macro_accuracy({"a": (1, 2), "b": (3, 2)})


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n)))))
def test_macro_equals_micro_for_subjects_of_equal_size(drawn: tuple[int, list[int]]) -> None:
    size, rights = drawn
    subjects = {str(i): (right, size) for i, right in enumerate(rights)}
    micro = accuracy(sum(rights), size * len(rights))
    assert macro_accuracy(subjects) == pytest.approx(micro, abs=1e-14)


@given(st.dictionaries(st.text(max_size=3), counted(least=0), max_size=20), st.randoms())
def test_macro_does_not_depend_on_the_order(
    subjects: dict[str, tuple[int, int]], random: object
) -> None:
    names = list(subjects)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert macro_accuracy({name: subjects[name] for name in names}) == macro_accuracy(subjects)


@pytest.mark.parametrize(
    ("value", "chance", "expected"),
    [
        (0.25, 0.25, 0.0),
        (1.0, 0.25, 1.0),
        (0.0, 0.25, -1 / 3),
        (0.0, 0.5, -1.0),
        (0.625, 0.25, 0.5),
    ],
)
def test_normalized_gain(value: float, chance: float, expected: float) -> None:
    assert normalized_gain(value, chance) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_no_gain_over_certain_chance(value: float) -> None:
    assert normalized_gain(value, 1.0) is None


@pytest.mark.parametrize(
    ("value", "chance"),
    [(-0.1, 0.25), (1.1, 0.25), (0.5, -0.1), (0.5, 1.1), (NAN, 0.25), (0.5, NAN), (math.inf, 0.5)],
)
def test_normalized_gain_refuses_what_is_no_proportion(value: float, chance: float) -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        normalized_gain(value, chance)


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1), st.floats(0, 1))
def test_gain_is_zero_at_chance_one_at_perfect_and_rises(chance: float, a: float, b: float) -> None:
    assert normalized_gain(chance, chance) == 0
    assert normalized_gain(1.0, chance) == 1
    low, high = (normalized_gain(value, chance) for value in sorted((a, b)))
    assert low is not None
    assert high is not None
    assert low <= high <= 1


@pytest.mark.parametrize(
    ("correct", "total", "expected"),
    [(1, 1, None), (0, 0, None), (40, 50, 0.05714285714285714), (0, 25, 0.0), (25, 25, 0.0)],
)
def test_standard_error(correct: int, total: int, expected: float | None) -> None:
    """Cases e06 and e07."""
    assert standard_error(correct, total) == expected


@given(counted(least=2, most=300))
def test_standard_error_is_that_of_the_scores(drawn: tuple[int, int]) -> None:
    correct, total = drawn
    scores = [1.0] * correct + [0.0] * (total - correct)
    brute = statistics.stdev(scores) / math.sqrt(total)
    assert standard_error(correct, total) == pytest.approx(brute, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("subjects", "expected"),
    [
        ({}, None),
        ({"a": {}}, None),
        ({"a": {(1, 1): 1}}, None),
        ({"a": {(1, 1): 1}, "b": {(1, 1): 5, (1, 0): 5}}, None),
        ({"a": {}, "b": {(1, 1): 5, (1, 0): 5}}, (0.25 / 9) ** 0.5),
        ({"a": {(1, 1): 9}, "b": {(1, 1): 5, (1, 0): 5}}, (0.25 / 9) ** 0.5 / 2),
        ({"a": {(2, 1): 9}, "b": {(2, 2): 5, (2, 0): 5}}, (0.25 / 9) ** 0.5 / 2),
    ],
)
def test_macro_standard_error(
    subjects: dict[str, dict[tuple[int, int], int]], expected: float | None
) -> None:
    assert macro_standard_error(subjects) == pytest.approx(expected)


@given(counted(least=2, most=300), st.integers(1, 9))
def test_subjects_add_their_variances(drawn: tuple[int, int], subjects: int) -> None:
    correct, total = drawn
    tally = {(1, 1): correct, (1, 0): total - correct}
    single = standard_error(correct, total)
    assert single is not None
    same = macro_standard_error({str(i): tally for i in range(subjects)})
    assert same == pytest.approx(single / math.sqrt(subjects))


def test_an_interval_at_the_edge_is_no_certainty() -> None:
    assert wilson_interval(0, 25) == pytest.approx((0.0, 0.13319225), abs=1e-8)
    assert wilson_interval(0, 1)[0] == 0.0
    assert exact_interval(0, 25) == pytest.approx((0.0, 1 - 0.025 ** (1 / 25)), abs=1e-12)
    for interval in (wilson_interval, exact_interval):
        assert interval(25, 25)[1] == 1.0
        assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("total", SIZES)
@pytest.mark.parametrize(
    ("interval", "scipy_name", "statsmodels_name"),
    [(wilson_interval, "wilson", "wilson"), (exact_interval, "exact", "beta")],
)
def test_intervals_agree_with_scipy_and_statsmodels(
    interval: Interval, scipy_name: str, statsmodels_name: str, total: int, confidence: float
) -> None:
    for correct in {0, 1, total // 3, total // 2, total - 1, total}:
        ours = interval(correct, total, confidence)
        scipy = binomtest(correct, total).proportion_ci(confidence, method=scipy_name)
        assert ours == pytest.approx((scipy.low, scipy.high), abs=1e-12)
        other = proportion_confint(correct, total, 1 - confidence, method=statsmodels_name)
        assert ours == pytest.approx(other, abs=1e-12)


confidences = st.floats(0, 1, exclude_min=True, exclude_max=True)


@given(counted(most=10**9), confidences)
def test_wilson_contains_the_estimate(drawn: tuple[int, int], confidence: float) -> None:
    correct, total = drawn
    low, high = wilson_interval(correct, total, confidence)
    assert 0 <= low <= correct / total <= high <= 1


@given(counted(most=10**6), st.floats(0.001, 0.999999))
def test_the_exact_interval_contains_the_estimate(
    drawn: tuple[int, int], confidence: float
) -> None:
    correct, total = drawn
    low, high = exact_interval(correct, total, confidence)
    assert 0 <= low <= correct / total <= high <= 1


@given(counted(most=5000), st.integers(2, 50), st.sampled_from([wilson_interval, exact_interval]))
def test_intervals_shrink_with_n_and_grow_with_confidence(
    drawn: tuple[int, int], times: int, interval: Interval
) -> None:
    correct, total = drawn
    low, high = interval(correct, total)
    narrow = interval(correct * times, total * times)
    wide = interval(correct, total, 0.99)
    assert narrow[1] - narrow[0] < high - low < wide[1] - wide[0]


@given(counted(), st.sampled_from([wilson_interval, exact_interval]))
def test_intervals_are_symmetric(drawn: tuple[int, int], interval: Interval) -> None:
    correct, total = drawn
    low, high = interval(correct, total)
    other = interval(total - correct, total)
    assert (1 - high, 1 - low) == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("interval", [wilson_interval, exact_interval])
@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95, NAN])
@pytest.mark.parametrize("counts", [(1, 2), (0, 0)])
def test_a_confidence_outside_is_refused(
    interval: Interval, confidence: float, counts: tuple[int, int]
) -> None:
    with pytest.raises(ValueError, match="confidence"):
        interval(*counts, confidence)


@pytest.mark.parametrize("total", [100, 234])
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_intervals_cover(total: int, rate: float) -> None:
    """Exact coverage, summed over all outcomes, for the sizes of MMLU subjects."""
    covered = dict.fromkeys((wilson_interval, exact_interval), 0.0)
    for c in range(total + 1):
        chance = math.comb(total, c) * rate**c * (1 - rate) ** (total - c)
        for interval in covered:
            low, high = interval(c, total)
            covered[interval] += chance * (low <= rate <= high)
    assert 0.93 <= covered[wilson_interval] <= 0.97
    assert 0.95 <= covered[exact_interval] <= 0.98
