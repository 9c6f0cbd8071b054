"""Weighted pairs of scorers: value, name, and an interval that knows that they share the items."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Outcome
from pytest_llmeval.metrics import Hybrid
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_or_reason
from pytest_llmeval.metrics import hybrid_score
from pytest_llmeval.metrics import hybrid_weights
from pytest_llmeval.metrics import wilson_interval

WEIGHTS = {"letter": 0.3, "matched": 0.7}
SCORERS = ("letter", "matched+minilm", "letter+contextual", "exact_match+case", "choice")


def table(pairs: list[tuple[bool, bool]]) -> dict[str, dict[str, bool]]:
    return {
        "letter": {f"i{n}": letter for n, (letter, _) in enumerate(pairs)},
        "matched": {f"i{n}": matched for n, (_, matched) in enumerate(pairs)},
    }


def test_value_and_name() -> None:
    hybrid = hybrid_score(
        WEIGHTS, table([(True, True), (True, False), (False, True), (False, False)])
    )
    assert hybrid is not None
    assert hybrid.name == "0.7*matched+0.3*letter"
    assert hybrid.value == pytest.approx((1 + 0.3 + 0.7 + 0) / 4)
    assert hybrid.items == 4


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_the_mean_of_weighted_accuracies_inside_its_interval(
    pairs: list[tuple[bool, bool]],
) -> None:
    hybrid = hybrid_score(WEIGHTS, table(pairs))
    assert hybrid is not None
    letters, matches = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    assert hybrid.value == pytest.approx(0.3 * letters + 0.7 * matches)
    low, high = hybrid.interval
    assert 0 <= low <= hybrid.value <= high <= 1
    assert high > low


def test_scorers_that_agree_are_one_scorer() -> None:
    pairs = [(n < 30, n < 30) for n in range(100)]
    hybrid = hybrid_score(WEIGHTS, table(pairs))
    assert hybrid is not None
    # One answer an item.
    assert hybrid.interval == pytest.approx(wilson_interval(30, 100), abs=1e-12)


def test_the_interval_covers() -> None:
    """Nominal 95 %; 1,000 simulations have a standard deviation of 0.7 points."""
    generator = random.Random(7)
    covered = 0
    for _ in range(1000):
        pairs = []
        for _ in range(60):
            hard = generator.random()  # of an item, for both scorers
            pairs.append((generator.random() > hard, generator.random() > hard * 0.8))
        hybrid = hybrid_score(WEIGHTS, table(pairs))
        assert hybrid is not None
        covered += hybrid.interval[0] <= 0.3 * 0.5 + 0.7 * 0.6 <= hybrid.interval[1]
    assert 920 <= covered <= 980


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"letter": 0.5, "matched": 0.6}, "sum to 1.1, not 1"),
        ({"letter": 1.5, "matched": -0.5}, "positive"),
        ({"letter": float("nan"), "matched": 1.0}, "positive"),
        ({}, "sum to 0, not 1"),
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


@given(st.dictionaries(st.sampled_from(SCORERS), st.integers(1, 10**6), min_size=1))
def test_a_name_is_read_back(parts: dict[str, int]) -> None:
    weights = {scorer: part / sum(parts.values()) for scorer, part in parts.items()}
    weights_read = hybrid_weights(hybrid_name(weights))
    assert weights_read.keys() == weights.keys()
    assert weights_read == pytest.approx(weights)
    assert hybrid_name(weights_read) == hybrid_name(weights)


@pytest.mark.parametrize(
    "text",
    ["0.7*matched+0.3*letter", "0.3 letter + 0.7 matched", " 7e-1 * matched+.3*letter "],
)
def test_other_spellings_of_a_name(text: str) -> None:
    assert hybrid_weights(text) == {"matched": 0.7, "letter": 0.3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("letter", "'letter' is not a hybrid such as"),
        ("", "is not a hybrid"),
        ("0.7*matched+letter", "sum to 0.7, not 1"),  # a scorer's name may hold a plus
        ("0.7*matched+0.4*letter", "sum to 1.1, not 1"),
        ("1*matched+0*letter", "not all positive"),
        ("0.5*letter+0.5*letter", "names 'letter' twice"),
        ("0.5.5*matched+0.5*letter", "is not a hybrid"),
    ],
)
def test_invalid_hybrid_names(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        hybrid_weights(text)


def test_unlike_parts_are_no_score() -> None:
    right, error = Outcome.CORRECT, Outcome.ERROR
    whole = {"matched": {"a": right, "b": Outcome.UNPARSED}, "letter": {"a": right, "b": right}}
    hybrid = hybrid_or_reason(WEIGHTS, whole)
    assert isinstance(hybrid, Hybrid)
    assert hybrid.value == pytest.approx((1 + 0.3) / 2)
    assert hybrid_or_reason(WEIGHTS, {"letter": {}}) == "scorer 'matched' did not run"
    lost = {**whole, "letter": {"a": right, "b": error}}
    assert hybrid_or_reason(WEIGHTS, lost) == "its scorers have 1 error"
    assert hybrid_or_reason(WEIGHTS, {**whole, "letter": {"a": right}}) == (
        "its scorers have different items"
    )
    assert hybrid_or_reason(WEIGHTS, {"letter": {}, "matched": {}}) == "no item was run"
