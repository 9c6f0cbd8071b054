"""Evidence on numbers of right answers: every population and order, and general properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics.sequential.counts import count_interval
from pytest_llmeval.metrics.sequential.counts import log_evidence_at_least
from pytest_llmeval.metrics.sequential.counts import log_evidence_below
from pytest_llmeval.metrics.sequential.counts import log_evidence_rate_above
from pytest_llmeval.metrics.sequential.operating import Boundary
from pytest_llmeval.metrics.sequential.operating import operating

ALPHAS = (0.5, 0.2, 0.05, 0.01)


def chance_of_ever(population: int, correct: int, rejects: Callable[[int, int], bool]) -> Fraction:
    """P(rejected after any number of items), exactly, over all orders of the items.

    Every state (n, s) is reached with an exact probability, over the orders in which no earlier one
    was rejected.
    """
    states, ever = {0: Fraction(1)}, Fraction(0)
    for n in range(population + 1):
        for s in [s for s in states if rejects(n, s)]:
            ever += states.pop(s)
        if n == population:
            return ever
        after: dict[int, Fraction] = {}
        for s, chance in states.items():
            right = Fraction(correct - s, population - n)
            after[s + 1] = after.get(s + 1, Fraction(0)) + chance * right
            after[s] = after.get(s, Fraction(0)) + chance * (1 - right)
        states = {s: chance for s, chance in after.items() if chance}
    raise AssertionError


@pytest.mark.parametrize("population", range(1, 9))
def test_a_false_verdict_is_rarer_than_alpha_for_all_populations_and_orders(population):
    for least in range(1, population + 1):
        for correct in range(population + 1):
            for alpha in ALPHAS:
                limit = -math.log(alpha)

                def wrong(n: int, s: int, least: int = least, correct: int = correct) -> bool:
                    evidence = log_evidence_below if correct >= least else log_evidence_at_least
                    return evidence(population, least, n, s) >= limit  # noqa: B023

                assert chance_of_ever(population, correct, wrong) <= alpha


@pytest.mark.parametrize("population", range(1, 9))
def test_the_confidence_sequence_covers_all_populations_and_orders(population):
    for correct in range(population + 1):
        for alpha in (0.5, 0.2, 0.05):

            def misses(n: int, s: int, correct: int = correct, alpha: float = alpha) -> bool:
                low, high = count_interval(population, n, s, alpha)
                return not low <= correct <= high

            assert chance_of_ever(population, correct, misses) <= alpha


@st.composite
def counts(draw: st.DrawFn, most: int = 80) -> tuple[int, int, int, int]:
    """(population, least, answered, correct), with both verdicts possible at first."""
    population = draw(st.integers(1, most))
    answered = draw(st.integers(0, population))
    return (
        population,
        draw(st.integers(1, population)),
        answered,
        draw(st.integers(0, answered)),
    )


@given(counts(), st.data())
def test_it_is_a_supermartingale_for_every_smaller_number(case, data):
    """The mean of the next value, over the items left, is not larger.

    On the edge it is equal, as long as right and wrong answers are possible there.
    """
    population, least, answered, correct = case
    total = data.draw(st.integers(0, least - 1))
    remaining, wrong = population - answered, answered - correct
    possible = correct <= total and wrong <= population - total
    if not possible or not remaining:
        return
    now = math.exp(log_evidence_at_least(population, least, answered, correct))
    chance = (total - correct) / remaining
    after = 0.0
    if chance > 0:
        right = log_evidence_at_least(population, least, answered + 1, correct + 1)
        after += chance * math.exp(right)
    if chance < 1:
        after += (1 - chance) * math.exp(
            log_evidence_at_least(population, least, answered + 1, correct)
        )
    if total == least - 1 and 0 < chance < 1:
        assert after == pytest.approx(now, rel=1e-9)
    else:
        assert after <= now * (1 + 1e-9)


@given(counts())
def test_right_and_wrong_are_symmetric(case):
    population, least, answered, correct = case
    mirrored = population, population - least + 1, answered, answered - correct
    assert log_evidence_at_least(*case) == log_evidence_below(*mirrored)


@given(counts())
def test_it_increases_with_right_answers_and_decreases_with_the_bound(case):
    population, least, answered, correct = case
    evidence = log_evidence_at_least(*case)
    if correct < answered:
        assert log_evidence_at_least(population, least, answered, correct + 1) >= evidence - 1e-9
    if least < population:
        assert log_evidence_at_least(population, least + 1, answered, correct) <= evidence + 1e-9


@given(st.integers(1, 500), st.data())
def test_it_is_exact_after_all_items(population, data):
    least = data.draw(st.integers(1, population))
    correct = data.draw(st.integers(0, population))
    assert count_interval(population, population, correct, 0.05) == (correct, correct)
    above = log_evidence_at_least(population, least, population, correct)
    assert above == (math.inf if correct >= least else -math.inf)
    assert log_evidence_below(population, least, population, correct) == -above


@given(counts(), st.sampled_from([0.5, 0.05, 0.001]))
def test_the_confidence_sequence_is_what_no_side_rejects(case, alpha):
    population, _, answered, correct = case
    low, high = count_interval(population, answered, correct, alpha)
    limit = math.log(2 / alpha)
    kept = [
        total
        for total in range(correct, population - (answered - correct) + 1)
        if log_evidence_at_least(population, total + 1, answered, correct) < limit
        and log_evidence_below(population, total, answered, correct) < limit
    ]
    # K is rejected by the evidence of at least K + 1, and by that of fewer than K.
    assert kept == list(range(low, high + 1))


def test_gates_that_every_run_passes_or_fails():
    assert log_evidence_at_least(10, 0, 0, 0) == math.inf
    assert log_evidence_at_least(10, 11, 0, 0) == -math.inf


@pytest.mark.parametrize("counts", [(10, 5, 11, 3), (10, 5, 4, 5), (10, 5, -1, 0)])
def test_counts_that_contradict_one_another(counts):
    with pytest.raises(ValueError, match=r"larger than|negative"):
        log_evidence_at_least(*counts)


def test_large_numbers_of_items_neither_overflow_nor_vanish():
    """The losing side is far below the smallest double, whose logarithm is -745."""
    assert 3000 < log_evidence_at_least(100_000, 60_000, 50_000, 47_000) < math.inf
    assert log_evidence_rate_above(0.6, 100_000, 95_000) > 30_000
    assert log_evidence_below(10**5, 10**5 // 2, 60_000, 29_900) > -math.inf


def test_the_last_look_must_be_at_the_end():
    with pytest.raises(ValueError, match="after all items"):
        operating(Boundary(10, [5], [5], [0]), 5)
