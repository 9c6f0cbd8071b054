"""Evidence on means of scores: every population and order of a few items."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics.sequential.means import Scores
from pytest_llmeval.metrics.sequential.means import log_evidence_of_total
from pytest_llmeval.metrics.sequential.means import plain_scores
from pytest_llmeval.metrics.sequential.means import weighted_scores

Item = tuple[float, float]  # weight, value


def orders(items: Counter[Item]) -> Iterator[tuple[Item, ...]]:
    """All orders of the items; equal items are not distinguished, so that all are equally likely."""
    if not items:
        yield ()
    for item in list(items):
        rest = items - Counter([item])
        for order in orders(rest):
            yield (item, *order)


def populations(size: int, kinds: list[Item]) -> Iterator[Counter[Item]]:
    """All multisets of ``size`` items of these kinds."""
    if len(kinds) == 1:
        yield +Counter({kinds[0]: size})
        return
    for first in range(size + 1):
        for rest in populations(size - first, kinds[1:]):
            yield +Counter({kinds[0]: first}) + rest


def check_all_orders(items: Counter[Item], scores: Callable[[tuple[Item, ...]], Scores]) -> None:
    """Both edges at the true total: E has a mean of at most 1, and exceeds 1/alpha rarely."""
    total = math.fsum(weight * value * number for (weight, value), number in items.items())
    for side in (1, -1):
        paths = np.array(
            [
                np.exp(log_evidence_of_total(scores(order), total, side))  # type: ignore[arg-type]
                for order in orders(items)
            ]
        )
        assert np.all(paths.mean(axis=0) <= 1 + 1e-6)
        largest = paths.max(axis=1)
        for alpha in (0.5, 0.2, 0.05):
            assert np.mean(largest >= 1 / alpha) <= alpha


@pytest.mark.parametrize("size", range(1, 9))
def test_scores_of_zero_and_one(size):
    for items in populations(size, [(1.0, 0.0), (1.0, 1.0)]):
        check_all_orders(items, lambda order: plain_scores([value for _, value in order], size))


@pytest.mark.parametrize("size", range(1, 6))
def test_scores_of_several_samples(size):
    for items in populations(size, [(1.0, 0.0), (1.0, 1 / 3), (1.0, 1.0)]):
        check_all_orders(items, lambda order: plain_scores([value for _, value in order], size))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 4), (2, 3), (3, 5), (1, 2, 3)])
def test_macro_accuracy(sizes):
    size = sum(sizes)
    weights = [size / (len(sizes) * number) for number in sizes]
    weight_counts = dict(zip(weights, sizes, strict=True))
    if len(weight_counts) < len(sizes):
        weight_counts = {weights[0]: size}
    subjects: list[list[Counter[Item]]] = [
        list(populations(number, [(weight, 0.0), (weight, 1.0)]))
        for number, weight in zip(sizes, weights, strict=True)
    ]
    combined = [Counter[Item]()]
    for choices in subjects:
        combined = [first + second for first in combined for second in choices]
    for items in combined:
        check_all_orders(
            items,
            lambda order: weighted_scores(
                [value for _, value in order], [weight for weight, _ in order], weight_counts
            ),
        )


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=1, max_size=40), st.data())
def test_it_is_exact_after_all_items(values, data):
    """A failed total is excluded if the sum is larger, and the reverse."""
    scores = plain_scores(values, len(values))
    total = data.draw(st.floats(0, len(values)))
    above = log_evidence_of_total(scores, total, 1)[-1]
    below = log_evidence_of_total(scores, total, -1)[-1]
    actual = math.fsum(values)
    if abs(actual - total) > 1e-6:
        assert above == (math.inf if actual > total else -math.inf)
        assert below == -above
    else:
        assert above < math.inf or actual > total


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0, 1))
def test_both_sides_are_symmetric_without_weights(values, rate):
    """Evidence of a small sum of y is evidence of a large sum of 1 - y."""
    size = len(values) + 5
    mirrored = plain_scores([1 - value for value in values], size)
    small = log_evidence_of_total(plain_scores(values, size), rate * size, -1)
    large = log_evidence_of_total(mirrored, size - rate * size, 1)
    both = np.isfinite(small) & np.isfinite(large)
    assert small[both] == pytest.approx(large[both], rel=1e-6, abs=1e-6)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=30), st.floats(0.05, 0.95))
def test_earlier_evidence_does_not_depend_on_later_items(values, rate):
    size = 2 * len(values)
    whole = log_evidence_of_total(plain_scores(values, size), rate * size, 1)
    part = log_evidence_of_total(plain_scores(values[:-1], size), rate * size, 1)
    assert whole[:-1].tolist() == part.tolist()


def test_many_right_answers_do_not_overflow():
    evidence = log_evidence_of_total(plain_scores([1.0] * 5_000, 14_042), 0.6 * 14_042, 1)
    assert 900 < evidence[-1] < math.inf
    losing = log_evidence_of_total(plain_scores([1.0] * 5_000, 14_042), 0.6 * 14_042, -1)
    assert -math.inf < losing[-1] < -30


def test_more_scores_than_items():
    with pytest.raises(ValueError, match="3 scores of 2 items"):
        plain_scores([1, 1, 1], 2)


def test_without_scores():
    assert log_evidence_of_total(plain_scores([], 10), 5.0, 1).shape == (0,)
