"""Consistency, RStd and the other numbers over permutations, against brute force and scipy."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import cochrans_q

from pytest_llmeval.metrics import cochran_q
from pytest_llmeval.metrics import consistency_rate
from pytest_llmeval.metrics import majority_choice
from pytest_llmeval.metrics import recall_std
from pytest_llmeval.metrics import variance_ratio
from pytest_llmeval.metrics.bias.positions import population_variance
from pytest_llmeval.metrics.bias.positions import position_recalls

CHOICE = st.none() | st.integers(0, 3)


@given(st.lists(st.lists(CHOICE, max_size=7), max_size=12))
def test_consistency_is_the_mean_share_of_agreeing_pairs(choices: list[list[int | None]]) -> None:
    shares = []
    for chosen in choices:
        pairs = list(combinations(chosen, 2))
        if pairs:
            same = sum(a is not None and a == b for a, b in pairs)
            shares.append(same / len(pairs))
    expected = sum(shares) / len(shares) if shares else None
    assert consistency_rate(choices) == (None if expected is None else pytest.approx(expected))


def test_consistency_by_hand() -> None:
    assert consistency_rate([[1, 1, 1, 1], [0, 1, 2, 3]]) == 0.5
    assert consistency_rate([[0, 0, 0, 2]]) == 0.5  # 3 of 6 pairs
    assert consistency_rate([[None, None, None]]) == 0.0
    assert consistency_rate([[None, 2, 2]]) == pytest.approx(1 / 3)
    assert consistency_rate([]) is None
    assert consistency_rate([[1], []]) is None
    assert consistency_rate([[1], [2, 2]]) == 1.0  # one order of an item has no consistency


def test_consistency_refuses_what_is_no_option() -> None:
    for nonsense in ([-1, 0], [0.0, 0], [math.nan, 0]):
        with pytest.raises(ValueError, match="choice"):
            consistency_rate([nonsense])  # type: ignore[list-item]


@given(
    st.integers(1, 6).flatmap(
        lambda k: st.tuples(
            st.just(k),
            st.lists(st.tuples(st.integers(0, k - 1), st.none() | st.integers(0, k - 1))),
        )
    )
)
def test_recall_std_is_numpys(drawn: tuple[int, list[tuple[int, int | None]]]) -> None:
    options, pairs = drawn
    recalls = []
    for k in range(options):
        there = [predicted == k for gold, predicted in pairs if gold == k]
        if there:
            recalls.append(np.mean(there))
    got = recall_std([g for g, _ in pairs], [p for _, p in pairs], options)
    assert got == (pytest.approx(float(np.std(recalls)), abs=1e-15) if recalls else None)


def test_recall_std_by_hand() -> None:
    # Recalls 1, 0, 0, 0: what always answers A has, whatever it knows.
    assert recall_std([0, 1, 2, 3], [0, 0, 0, 0], 4) == pytest.approx(math.sqrt(3) / 4)
    assert recall_std([0, 1, 2, 3], [0, 1, 2, 3], 4) == 0.0
    assert recall_std([0, 1], [0, None], 2) == 0.5
    assert recall_std([0, 0], [0, 1], 4) == 0.0  # one recall, 1/2
    assert recall_std([], [], 4) is None
    assert position_recalls([0, 0, 2], [0, None, 2], 4) == [0.5, None, 1.0, None]


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([0], [0, 1], "1 golds for 2"),
        ([4], [0], "gold position 4"),
        ([0], [4], "predicted"),
        ([-1], [0], "negative"),
    ],
)
def test_recall_std_refuses_nonsense(
    gold: list[int], predicted: list[int | None], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        recall_std(gold, predicted, 4)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_variance_is_the_populations(values: list[float]) -> None:
    assert population_variance(values) == pytest.approx(float(np.var(values)), abs=1e-15)


def test_variance_ratio() -> None:
    assert variance_ratio(1.0, 4.0) == 0.25
    assert variance_ratio(0.0, 4.0) == 0.0
    assert variance_ratio(1.0, 0.0) is None
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match="negative"):
            variance_ratio(bad, 1.0)


@given(st.lists(CHOICE, max_size=9))
def test_majority_is_a_mode_and_the_first_of_equals(choices: list[int | None]) -> None:
    answered = [choice for choice in choices if choice is not None]
    got = majority_choice(choices)
    if not answered:
        assert got is None
        return
    most = max(answered.count(choice) for choice in answered)
    assert got == next(choice for choice in answered if answered.count(choice) == most)


@given(
    st.integers(2, 6).flatmap(
        lambda arms: st.lists(
            st.lists(st.booleans(), min_size=arms, max_size=arms), min_size=1, max_size=15
        )
    )
)
def test_cochran_q_is_statsmodels(outcomes: list[list[bool]]) -> None:
    varied = any(len(set(row)) > 1 for row in outcomes)
    expected = cochrans_q(np.array(outcomes, dtype=int)).pvalue if varied else 1.0
    assert cochran_q(outcomes) == pytest.approx(expected, rel=1e-9)


def test_cochran_q_of_two_arms_is_mcnemar_without_correction() -> None:
    outcomes = [[True, False]] * 9 + [[False, True]] * 1 + [[True, True]] * 5
    assert cochran_q(outcomes) == pytest.approx(math.erfc(math.sqrt(8**2 / 10 / 2)))
    assert cochran_q([]) == 1.0
    with pytest.raises(ValueError, match="cannot be compared"):
        cochran_q([[True], [True, False]])
