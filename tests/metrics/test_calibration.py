"""Reliability diagrams against small hand computations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics import calibration
from pytest_llmeval.metrics import choice_confidence

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def test_confidence_is_the_softmax_at_the_choice():
    logprobs = [math.log(0.1), math.log(0.3), math.log(0.2)]
    assert choice_confidence(logprobs, 1) == pytest.approx(0.5)
    assert choice_confidence(logprobs, 0) == pytest.approx(1 / 6)
    # A constant, such as the length of what all choices share, changes nothing.
    assert choice_confidence([x - 5000 for x in logprobs], 1) == pytest.approx(0.5)


def test_impossible_choices_have_no_share_and_all_impossible_no_confidence():
    assert choice_confidence([-math.inf, -2.0], 1) == 1.0
    assert choice_confidence([-math.inf, -math.inf], 1) is None
    assert choice_confidence([math.nan, -2.0], 1) is None
    with pytest.raises(ValueError):
        choice_confidence([-1.0], 1)


def test_ece_by_hand():
    """Two bins: |1/2 - 0.85| of two answers, |0 - 0.3| of one: (2 * 0.35 + 0.3) / 3."""
    curve = calibration([(0.8, True), (0.9, False), (0.3, False)], bins=2)
    assert curve is not None
    assert curve.ece == pytest.approx((2 * 0.35 + 0.3) / 3)
    assert [(part.low, part.high, part.items, part.correct) for part in curve.bins] == [
        (0.0, 0.5, 1, 0),
        (0.5, 1.0, 2, 1),
    ]
    assert (curve.accuracy, curve.confidence) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_a_bin_is_closed_above():
    curve = calibration([(0.5, True), (0.0, True), (1.0, True)], bins=2)
    assert curve is not None
    assert [part.items for part in curve.bins] == [2, 1]


def test_nothing_to_calibrate_and_nonsense():
    assert calibration([]) is None
    with pytest.raises(ValueError):
        calibration([(1.5, True)])
    with pytest.raises(ValueError):
        calibration([(0.5, True)], bins=0)


@given(ANSWERS, st.integers(1, 20))
def test_bins_hold_every_answer_and_ece_bounds_the_overconfidence(answers, bins):
    curve = calibration(answers, bins)
    assert curve is not None
    assert sum(part.items for part in curve.bins) == len(answers)
    assert sum(part.correct for part in curve.bins) == sum(right for _, right in answers)
    assert abs(curve.accuracy - curve.confidence) - 1e-9 <= curve.ece <= 1
    for part in curve.bins:
        assert part.low - 1e-9 <= part.confidence <= part.high + 1e-9
        assert part.interval[0] <= part.accuracy <= part.interval[1]
