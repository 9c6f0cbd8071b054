"""Effective sizes and intervals over samples, subjects, draws, and the bootstrap."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics import Tally
from pytest_llmeval.metrics import accuracy
from pytest_llmeval.metrics import bootstrap_interval
from pytest_llmeval.metrics import effective_size
from pytest_llmeval.metrics import macro_accuracy
from pytest_llmeval.metrics import macro_effective_size
from pytest_llmeval.metrics import macro_interval
from pytest_llmeval.metrics import macro_standard_error
from pytest_llmeval.metrics import mean_pass_at_k
from pytest_llmeval.metrics import mean_pass_hat_k
from pytest_llmeval.metrics import pass_at_k_interval
from pytest_llmeval.metrics import pass_hat_k_interval
from pytest_llmeval.metrics import score_interval
from pytest_llmeval.metrics import stratified_accuracy
from pytest_llmeval.metrics import stratified_effective_size
from pytest_llmeval.metrics import stratified_interval
from pytest_llmeval.metrics import tally_interval
from pytest_llmeval.metrics import wilson_interval
from support.metric_results import mean
from support.metric_results import single_answers
from support.metric_results import totals

NAN = float("nan")


def defined(value: float | None) -> float:
    assert value is not None
    return value


cell = st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


tallies = st.dictionaries(cell, st.integers(1, 40), min_size=1, max_size=6)


singles = st.integers(1, 300).flatmap(
    lambda n: st.integers(0, n).map(lambda c: single_answers(c, n))
)


subject_sets = st.dictionaries(
    st.text("abcdef", max_size=3), st.one_of(tallies, singles), min_size=1, max_size=6
)


confidences = st.floats(0.001, 0.999)


@given(singles)
def test_single_answers_are_worth_their_number(tally: Tally) -> None:
    _, answers, correct = totals(tally)
    assert effective_size(tally) == answers
    assert tally_interval(tally) == wilson_interval(correct, answers)


@given(st.integers(1, 300), st.integers(0, 300), st.integers(2, 9))
def test_samples_that_always_agree_are_worth_one(right: int, wrong: int, n: int) -> None:
    assert effective_size({(n, n): right, (n, 0): wrong}) == right + wrong


@given(st.integers(2, 300), st.integers(1, 5))
def test_samples_that_differ_less_than_chance_are_worth_no_more_than_answers(
    items: int, c: int
) -> None:
    """Every item has the same c of 6: no spread between items at all."""
    assert effective_size({(6, c): items}) in (6 * items, items)


@given(tallies)
def test_the_effective_size_lies_between_items_and_answers(tally: Tally) -> None:
    items, answers, _ = totals(tally)
    assert items <= effective_size(tally) <= answers


@given(tallies, st.integers(0, 1000))
def test_the_correction_for_a_finite_population(tally: Tally, more: int) -> None:
    items, _, _ = totals(tally)
    size = effective_size(tally, items + more)
    if more == 0:
        assert size == math.inf
        assert tally_interval(tally, population=items) == (mean(tally), mean(tally))
    else:
        assert size == pytest.approx(effective_size(tally) * (items + more - 1) / more)
        assert size >= effective_size(tally)


def test_no_answers_have_no_size() -> None:
    assert effective_size({}) == effective_size({}, 9) == effective_size({(0, 0): 3}) == 0
    assert tally_interval({}) == tally_interval({}, population=9) == (0.0, 1.0)
    assert macro_effective_size({}) == macro_effective_size({"a": {}}) == 0
    assert macro_interval({}) == macro_interval({"a": {}}) == (0.0, 1.0)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_score_interval_is_wilsons_at_whole_sizes(drawn: tuple[int, int]) -> None:
    correct, total = drawn
    interval = score_interval(correct / total, total, 0.9)
    assert interval == pytest.approx(wilson_interval(correct, total, 0.9), rel=1e-9, abs=1e-15)


@given(st.floats(0, 1), st.floats(1e-3, 1e9), confidences, st.floats(1.5, 100))
def test_the_score_interval_contains_the_mean_and_shrinks(
    value: float, size: float, confidence: float, times: float
) -> None:
    low, high = score_interval(value, size, confidence)
    assert 0 <= low <= value <= high <= 1
    narrow = score_interval(value, size * times, confidence)
    assert narrow[1] - narrow[0] < high - low


def test_the_score_interval_at_its_ends() -> None:
    assert score_interval(0.3, 0) == (0.0, 1.0)
    assert score_interval(0.3, math.inf) == (0.3, 0.3)


@pytest.mark.parametrize("arguments", [(1.5, 9), (NAN, 9), (0.5, -1), (0.5, NAN), (0.5, 9, 1.0)])
def test_the_score_interval_refuses_nonsense(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"must"):
        score_interval(*arguments)


@given(tallies, confidences, st.integers(2, 9))
def test_a_tally_interval_contains_the_accuracy_and_shrinks(
    tally: Tally, confidence: float, times: int
) -> None:
    low, high = tally_interval(tally, confidence)
    assert 0 <= low <= mean(tally) <= high <= 1
    # Whether there is any spread does not change with the number of items, but 1 item shows none.
    assume(totals(tally)[0] > 1)
    narrow = tally_interval({pair: times * m for pair, m in tally.items()}, confidence)
    assert narrow[1] - narrow[0] < high - low


@given(subject_sets, confidences)
def test_the_macro_interval_contains_the_macro_accuracy(
    subjects: dict[str, Tally], confidence: float
) -> None:
    value = macro_accuracy({name: totals(tally)[:0:-1] for name, tally in subjects.items()})
    low, high = macro_interval(subjects, confidence)
    assert 0 <= low <= defined(value) <= high <= 1
    assert macro_interval({**subjects, "-": {}}, confidence) == (low, high)
    assert high > low


@given(subject_sets, st.integers(2, 9))
def test_the_macro_interval_shrinks(subjects: dict[str, Tally], times: int) -> None:
    assume(all(totals(tally)[0] > 1 for tally in subjects.values()))
    low, high = macro_interval(subjects)
    more = {name: {p: m * times for p, m in tally.items()} for name, tally in subjects.items()}
    narrow = macro_interval(more)
    assert narrow[1] - narrow[0] < high - low


@given(st.one_of(tallies, singles))
def test_the_macro_interval_of_one_subject_is_that_of_its_answers(tally: Tally) -> None:
    assert macro_interval({"a": tally}) == pytest.approx(tally_interval(tally), abs=1e-12)


@given(subject_sets, st.randoms())
def test_the_order_of_subjects_does_not_matter(subjects: dict[str, Tally], random: Any) -> None:
    names = list(subjects)
    random.shuffle(names)
    shuffled = {name: subjects[name] for name in names}
    sizes = {name: totals(tally)[0] + 5 for name, tally in subjects.items()}
    assert macro_interval(shuffled) == macro_interval(subjects)
    for finite in (True, False):
        interval = stratified_interval(shuffled, sizes, finite=finite)
        assert interval == stratified_interval(subjects, sizes, finite=finite)


def test_the_macro_size_is_that_of_the_weights() -> None:
    assert macro_effective_size(
        {"a": single_answers(9, 9), "b": single_answers(3, 9)}
    ) == pytest.approx(18)
    assert macro_effective_size(
        {"a": single_answers(1, 1), "b": single_answers(0, 1)}
    ) == pytest.approx(2)
    assert macro_effective_size(
        {"a": single_answers(5, 5), "b": single_answers(9, 20)}
    ) == pytest.approx(16)
    assert macro_interval({"a": single_answers(9, 9), "b": single_answers(9, 9)})[
        0
    ] == pytest.approx(wilson_interval(18, 18)[0])


def test_a_heavy_subject_that_is_all_right_is_not_certain() -> None:
    """Twenty of 10,000 items all right: about as wide as Wilson's interval of those twenty."""
    low, _ = stratified_interval(
        {"a": single_answers(20, 20), "b": single_answers(10, 20)},
        {"a": 10_000, "b": 60},
        finite=False,
    )
    assert low == pytest.approx(wilson_interval(20, 20)[0], abs=0.01)
    worse, best = ({"a": single_answers(6, 6), "b": single_answers(c, 100)} for c in (99, 100))
    assert macro_interval(worse)[0] < macro_interval(best)[0] < 0.9


def drawn_subjects(
    subjects: dict[str, Tally], more: int
) -> tuple[dict[str, Tally], dict[str, int]]:
    return subjects, {name: totals(tally)[0] + more for name, tally in subjects.items()}


@given(subject_sets, st.integers(0, 50), confidences)
def test_the_stratified_interval_contains_its_estimate(
    subjects: dict[str, Tally], more: int, confidence: float
) -> None:
    subjects, sizes = drawn_subjects(subjects, more)
    value = defined(stratified_accuracy(subjects, sizes))
    intervals = [stratified_interval(subjects, sizes, confidence, finite=f) for f in (True, False)]
    (finite_low, finite_high), (low, high) = intervals
    assert 0 <= low <= value <= high <= 1
    assert 0 <= finite_low <= value <= finite_high <= 1
    # The correction shifts shares between subjects a little, beside making them narrower.
    assert low - 0.02 <= finite_low
    assert finite_high <= high + 0.02
    if more == 0:
        assert finite_low == finite_high


@given(st.dictionaries(st.text("abc", max_size=2), singles, min_size=1, max_size=5))
def test_a_full_draw_has_the_accuracy_of_the_benchmark(subjects: dict[str, Tally]) -> None:
    subjects, sizes = drawn_subjects(subjects, 0)
    pooled: Counter[tuple[int, int]] = sum(map(Counter, subjects.values()), Counter())
    assert stratified_accuracy(subjects, sizes) == pytest.approx(mean(pooled), abs=1e-14)


@given(st.lists(singles, min_size=1, max_size=6))
def test_equal_samples_are_weighted_by_their_populations(drawn: list[Tally]) -> None:
    subjects = {str(i): tally for i, tally in enumerate(drawn)}
    sizes = {name: 300 * (int(name) + 1) for name in subjects}
    expected = sum(mean(subjects[name]) * size for name, size in sizes.items())
    value = stratified_accuracy(subjects, sizes)
    assert value == pytest.approx(expected / sum(sizes.values()))


def test_a_subject_without_a_draw_leaves_the_benchmark_unknown() -> None:
    for subjects in ({"a": single_answers(1, 2)}, {"a": single_answers(1, 2), "b": {}}, {}):
        sizes = {"a": 9, "b": 9}
        assert stratified_accuracy(subjects, sizes) is None
        assert stratified_interval(subjects, sizes, finite=True) == (0.0, 1.0)
        assert stratified_effective_size(subjects, sizes) == 0
    assert stratified_accuracy({"a": single_answers(1, 2), "b": {}}, {"a": 9, "b": 0}) == 0.5
    assert stratified_accuracy({}, {}) is None


@pytest.mark.parametrize("sizes", [{}, {"a": 1}, {"a": -2}, {"a": 2.0}])
def test_populations_that_cannot_be(sizes: dict[str, int]) -> None:
    subjects = {"a": single_answers(1, 2)}
    with pytest.raises(ValueError, match=r"population"):
        stratified_accuracy(subjects, sizes)
    with pytest.raises(ValueError, match=r"population"):
        stratified_interval(subjects, sizes, finite=True)


@pytest.mark.parametrize("population", [1, -1, 2.5])
def test_a_population_smaller_than_its_draw(population: int) -> None:
    with pytest.raises(ValueError, match="population"):
        effective_size(single_answers(1, 2), population)
    with pytest.raises(ValueError, match="population"):
        macro_interval(
            {"a": single_answers(1, 2), "b": single_answers(1, 2)},
            populations={"a": population, "b": 2},
        )


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, 95, NAN])
def test_a_confidence_outside_is_refused_with_and_without_items(confidence: float) -> None:
    for tally in ({}, single_answers(1, 2), {(2, 1): 2, (2, 2): 1}):
        subjects, sizes = {"a": tally}, {"a": 9}
        with pytest.raises(ValueError, match="confidence"):
            tally_interval(tally, confidence)
        with pytest.raises(ValueError, match="confidence"):
            macro_interval(subjects, confidence)
        with pytest.raises(ValueError, match="confidence"):
            stratified_interval(subjects, sizes, confidence, finite=True)
        with pytest.raises(ValueError, match="confidence"):
            bootstrap_interval([tally], lambda n, c: c / n, confidence)


def rate(n: int, c: int) -> float:
    return c / n


@given(st.lists(st.one_of(tallies, singles), min_size=1, max_size=3), confidences)
def test_the_bootstrap_contains_its_estimate(strata: list[Tally], confidence: float) -> None:
    low, high = bootstrap_interval(strata, rate, confidence, resamples=50)
    items = [[c / n for (n, c), m in t.items() for _ in range(m)] for t in strata]
    estimate = math.fsum(math.fsum(v) / len(v) for v in items) / len(items)
    assert 0 <= low <= estimate + 1e-12
    assert estimate - 1e-12 <= high <= 1


@given(tallies, st.integers(0, 99), st.randoms())
def test_the_bootstrap_is_a_function_of_the_seed_not_of_the_order(
    tally: dict[tuple[int, int], int], seed: int, random: Any
) -> None:
    names = list(tally)
    random.shuffle(names)
    shuffled = {name: tally[name] for name in names}
    first = bootstrap_interval([tally], rate, seed=seed, resamples=50)
    assert bootstrap_interval([shuffled], rate, seed=seed, resamples=50) == first


def test_another_seed_is_another_draw() -> None:
    first, second = (
        bootstrap_interval([single_answers(317, 1000)], rate, seed=seed, resamples=50)
        for seed in (1, 2)
    )
    assert first != second


def test_the_bootstrap_of_a_mean_is_close_to_its_normal_interval() -> None:
    low, high = bootstrap_interval([single_answers(500, 1000)], rate)
    assert (low, high) == pytest.approx((0.5 - 0.03099, 0.5 + 0.03099), abs=0.002)
    subjects = {"a": single_answers(500, 1000), "b": single_answers(20, 100)}
    error = defined(macro_standard_error(subjects))
    low, high = bootstrap_interval(list(subjects.values()), rate)
    assert (low, high) == pytest.approx((0.35 - 1.96 * error, 0.35 + 1.96 * error), abs=0.003)


def test_the_bootstrap_without_spread_is_no_certainty() -> None:
    assert bootstrap_interval([], rate) == bootstrap_interval([{}], rate) == (0.0, 1.0)
    assert bootstrap_interval([single_answers(25, 25)], rate) == pytest.approx(
        wilson_interval(25, 25)
    )
    assert bootstrap_interval([{(4, 2): 20}], rate) == pytest.approx(wilson_interval(10, 20))
    # Half of 20 items whatever the order of all right and all wrong subjects.
    both = bootstrap_interval([single_answers(10, 10), single_answers(0, 10)], rate)
    assert both == pytest.approx(wilson_interval(10, 20))


def test_the_bootstrap_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="resamples"):
        bootstrap_interval([single_answers(1, 2)], rate, resamples=0)
    with pytest.raises(ValueError, match="seed"):
        bootstrap_interval([single_answers(1, 2)], rate, seed=-1)
    with pytest.raises(ValueError, match=r"value\(1, 0\)"):
        bootstrap_interval([single_answers(1, 2)], lambda n, c: NAN)


@given(
    st.dictionaries(st.integers(0, 4).map(lambda c: (4, c)), st.integers(1, 9), min_size=1),
    st.integers(1, 5),
)
def test_pass_intervals_contain_their_means(tally: Tally, k: int) -> None:
    for value, interval in (
        (mean_pass_at_k, pass_at_k_interval),
        (mean_pass_hat_k, pass_hat_k_interval),
    ):
        limits = interval(tally, k)
        if k == 5:
            assert limits is None
        else:
            assert limits is not None
            assert 0 <= limits[0] <= defined(value(tally, k)) <= limits[1] <= 1


def test_accuracy_and_interval_of_the_whole_agree() -> None:
    tally = {(3, 1): 4, (3, 3): 6}
    assert accuracy(22, 30) == mean(tally)
    assert tally_interval(tally) == score_interval(22 / 30, effective_size(tally))
