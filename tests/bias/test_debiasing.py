"""Debiasing against small computations by hand, and what each method promises."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.bias.debiasing import FLOOR
from pytest_llmeval.bias.debiasing import averaged_probabilities
from pytest_llmeval.bias.debiasing import batch_calibrated
from pytest_llmeval.bias.debiasing import contextually_calibrated
from pytest_llmeval.bias.debiasing import estimation_items
from pytest_llmeval.bias.debiasing import mean_prior
from pytest_llmeval.bias.debiasing import prior
from pytest_llmeval.bias.debiasing import without_prior

ROTATIONS = {k: [tuple((p + r) % k for p in range(k)) for r in range(k)] for k in (2, 3, 4)}


def logs(*rows: tuple[float, ...]) -> list[list[float]]:
    return [[math.log(value) if value else -math.inf for value in row] for row in rows]


def observed(knowledge: list[float], bias: list[float], order: tuple[int, ...]) -> list[float]:
    """Label log-probabilities of a model whose bias multiplies what it knows."""
    return [math.log(knowledge[option] * bias[place]) for place, option in enumerate(order)]


def test_average_by_hand() -> None:
    # Order 0 1: 0.6, 0.4. Order 1 0: 0.5 on option 1, 0.5 on option 0.
    assert averaged_probabilities(logs((0.6, 0.4), (0.5, 0.5)), [(0, 1), (1, 0)]) == pytest.approx(
        [0.55, 0.45]
    )
    three = logs((0.7, 0.2, 0.1), (0.6, 0.3, 0.1), (0.8, 0.1, 0.1))
    assert averaged_probabilities(three, [(0, 1, 2), (1, 2, 0), (2, 0, 1)]) == pytest.approx(
        [(0.7 + 0.1 + 0.1) / 3, (0.2 + 0.6 + 0.1) / 3, (0.1 + 0.3 + 0.8) / 3]
    )


def test_labels_share_what_is_theirs() -> None:
    # 0.3 and 0.1 with other tokens taking the rest: three quarters and one.
    assert averaged_probabilities(logs((0.3, 0.1)), [(0, 1)]) == pytest.approx([0.75, 0.25])


@pytest.mark.parametrize("orders", [ROTATIONS[3], list(permutations(range(3)))])
def test_averaging_makes_a_pure_preference_uniform(orders: list[tuple[int, ...]]) -> None:
    always_first = logs(*[(1.0, 0.0, 0.0)] * len(orders))
    assert averaged_probabilities(always_first, orders) == pytest.approx([1 / 3] * 3)


def test_prior_by_hand() -> None:
    rows = logs((0.8, 0.2), (0.5, 0.5))
    raw = [math.sqrt(0.8 * 0.5), math.sqrt(0.2 * 0.5)]
    assert prior(rows, [(0, 1), (1, 0)]) == pytest.approx([r / sum(raw) for r in raw])


WEIGHTS = st.floats(0.05, 1.0)


@given(
    st.sampled_from([2, 3, 4]).flatmap(
        lambda k: st.tuples(*[st.lists(WEIGHTS, min_size=k, max_size=k)] * 2)
    )
)
def test_pride_recovers_a_bias_that_multiplies(drawn: tuple[list[float], list[float]]) -> None:
    """Averaged over rotations the knowledge of each option cancels, and division leaves it."""
    knowledge, bias = drawn
    orders = ROTATIONS[len(bias)]
    rows = [observed(knowledge, bias, order) for order in orders]
    # Each row is renormalised, which is the same factor for all its labels.
    recovered = prior(rows, orders)
    assert recovered == pytest.approx(np.array(bias) / sum(bias), rel=1e-9)
    left = without_prior(rows[0], list(recovered))
    assert left == pytest.approx(np.array(knowledge) / sum(knowledge), rel=1e-9)


def test_a_prior_needs_balanced_orders() -> None:
    with pytest.raises(ValueError, match="equally often"):
        prior(logs((0.5, 0.5), (0.5, 0.5)), [(0, 1), (0, 1)])


def test_without_prior_by_hand() -> None:
    # 0.6 / 0.75 against 0.4 / 0.25: the second option.
    assert without_prior(logs((0.6, 0.4))[0], [0.75, 0.25]) == pytest.approx([1 / 3, 2 / 3])
    for bad in ([0.5], [0.5, math.nan], [1.5, -0.5]):
        with pytest.raises(ValueError, match="prior of 2"):
            without_prior([0.0, 0.0], bad)
    assert mean_prior([[0.2, 0.8], [0.4, 0.6]]) == pytest.approx([0.3, 0.7])
    with pytest.raises(ValueError, match="no item"):
        mean_prior([])


def test_the_items_of_the_estimate_are_a_pure_draw() -> None:
    ids = [f"i{n}" for n in range(200)]
    drawn = estimation_items(ids)
    assert len(drawn) == 10
    assert drawn == estimation_items(ids[::-1])
    assert drawn != estimation_items(ids, seed=1)
    assert drawn < set(ids)
    assert estimation_items(["a", "b"]) < {"a", "b"}  # at least one
    assert estimation_items(ids, share=1.0) == set(ids)
    assert estimation_items([]) == frozenset()
    for bad in (0.0, 1.1, math.nan):
        with pytest.raises(ValueError, match="share"):
            estimation_items(ids, share=bad)


def test_contextual_calibration_by_hand() -> None:
    # p_cf = (0.7, 0.3); 0.6 / 0.7 and 0.4 / 0.3.
    free = logs((0.8, 0.2), (0.6, 0.4))
    raw = [0.6 / 0.7, 0.4 / 0.3]
    assert contextually_calibrated(logs((0.6, 0.4))[0], free) == pytest.approx(
        [r / sum(raw) for r in raw]
    )
    # The model's answer without a question becomes uniform.
    assert contextually_calibrated(free[0], [free[0]]) == pytest.approx([0.5, 0.5])
    with pytest.raises(ValueError, match="3 content-free"):
        contextually_calibrated([0.0, 0.0], [[0.0, 0.0, 0.0]])


def test_batch_calibration_by_hand() -> None:
    rows = logs((0.9, 0.1), (0.7, 0.3))  # mean 0.8, 0.2
    first, second = batch_calibrated(rows)
    raw = [0.9 / 0.8, 0.1 / 0.2], [0.7 / 0.8, 0.3 / 0.2]
    assert first == pytest.approx([r / sum(raw[0]) for r in raw[0]])
    assert second == pytest.approx([r / sum(raw[1]) for r in raw[1]])
    assert int(second.argmax()) == 1  # the second item's answer turns
    assert batch_calibrated(rows[:1])[0] == pytest.approx([0.5, 0.5])


def test_missing_probabilities_count_as_small() -> None:
    assert averaged_probabilities(logs((1.0, 0.0)), [(0, 1)])[1] == pytest.approx(FLOOR)
    assert np.isfinite(batch_calibrated(logs((1.0, 0.0), (0.5, 0.5)))).all()


@pytest.mark.parametrize(
    "rows", [[], [[]], [[0.0, math.nan]], [[math.inf, 0.0]], [[-math.inf] * 2], [[0.0], [0.0, 1.0]]]
)
def test_nonsense_is_refused(rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="log-probabilities"):
        batch_calibrated(rows)


@pytest.mark.parametrize("orders", [[(0, 1)], [(0, 1), (0, 0)], [(0, 1), (1, 2)], [(0,), (1,)]])
def test_invalid_orders_are_refused(orders: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="2 orders of 2 options"):
        averaged_probabilities([[0.0, 0.0], [0.0, 0.0]], orders)
