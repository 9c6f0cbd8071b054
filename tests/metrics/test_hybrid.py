"""Weighted pairs of scorers: value, name, and an interval that knows that they share the items."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_score
from pytest_llmeval.metrics import wilson_interval

WEIGHTS = {"letter": 0.3, "matched": 0.7}


def table(pairs: list[tuple[bool, bool]]) -> dict[str, dict[str, bool]]:
    return {
        "letter": {f"i{n}": letter for n, (letter, _) in enumerate(pairs)},
        "matched": {f"i{n}": matched for n, (_, matched) in enumerate(pairs)},
    }


def test_value_and_name() -> None:
    found = hybrid_score(
        WEIGHTS, table([(True, True), (True, False), (False, True), (False, False)])
    )
    assert found is not None
    assert found.name == "0.7*matched+0.3*letter"
    assert found.value == pytest.approx((1 + 0.3 + 0.7 + 0) / 4)
    assert found.items == 4


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_the_mean_of_weighted_accuracies_inside_its_interval(
    pairs: list[tuple[bool, bool]],
) -> None:
    found = hybrid_score(WEIGHTS, table(pairs))
    assert found is not None
    letters, matches = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    assert found.value == pytest.approx(0.3 * letters + 0.7 * matches)
    low, high = found.interval
    assert 0 <= low <= found.value <= high <= 1
    assert high > low


def test_scorers_that_agree_are_one_scorer() -> None:
    pairs = [(n < 30, n < 30) for n in range(100)]
    found = hybrid_score(WEIGHTS, table(pairs))
    assert found is not None
    # One answer an item.
    assert found.interval == pytest.approx(wilson_interval(30, 100), abs=1e-12)


def test_the_interval_covers() -> None:
    """Nominal 95 %; 1,000 simulations have a standard deviation of 0.7 points."""
    generator = random.Random(7)
    covered = 0
    for _ in range(1000):
        pairs = []
        for _ in range(60):
            hard = generator.random()  # of an item, for both scorers
            pairs.append((generator.random() > hard, generator.random() > hard * 0.8))
        found = hybrid_score(WEIGHTS, table(pairs))
        assert found is not None
        covered += found.interval[0] <= 0.3 * 0.5 + 0.7 * 0.6 <= found.interval[1]
    assert 920 <= covered <= 980


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"letter": 0.5, "matched": 0.6}, "sum to 1"),
        ({"letter": 1.5, "matched": -0.5}, "positive"),
        ({"letter": float("nan"), "matched": 1.0}, "positive"),
        ({}, "sum to 1"),
        ({"letter": 0.5, "cloze": 0.5}, "no outcomes of 'cloze'"),
    ],
)
def test_nonsense_is_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hybrid_score(weights, table([(True, False)]))


def test_only_the_same_items_are_mixed() -> None:
    outcomes = table([(True, False)])
    outcomes["letter"]["more"] = True
    with pytest.raises(ValueError, match="other items"):
        hybrid_score(WEIGHTS, outcomes)
    assert hybrid_score(WEIGHTS, table([])) is None
    assert hybrid_name({"choice": 1.0}) == "1*choice"
