"""Evidence on regression gates: every number of changed items and every order of a few items."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.metrics import mcnemar
from pytest_llmeval.metrics.sequential.paired import DropEdge
from pytest_llmeval.metrics.sequential.paired import Pairs


def fails(size: int, newly_wrong: int, newly_right: int, limit: float, level: float) -> bool:
    """The rule of the full run."""
    beyond = (newly_wrong - newly_right) / size > limit + 1e-12
    return beyond and mcnemar(newly_wrong, newly_right) <= level


@given(
    st.integers(0, 60), st.integers(0, 60), st.floats(0, 0.3), st.sampled_from([0.01, 0.05, 0.9])
)
def test_the_edge_is_that_of_the_full_run(right, wrong, limit, level):
    size = right + wrong
    if not size:
        return
    edge = DropEdge(right, wrong, limit, level).fails_from
    for changed in range(size + 1):
        first = next(
            (a for a in range(changed + 1) if fails(size, a, changed - a, limit, level)),
            changed + 1,
        )
        assert edge[changed] == first


def chance_of_a_false_verdict(
    edge: DropEdge, newly_wrong: int, newly_right: int, alpha: float
) -> Fraction:
    """P(another verdict than the full run's after any number of items), over all orders."""
    size = edge.right + edge.wrong
    failed = fails(size, newly_wrong, newly_right, edge.limit, edge.level)
    kinds = (
        (newly_wrong, (1, 1, 0, 0)),
        (edge.right - newly_wrong, (1, 0, 0, 0)),
        (newly_right, (0, 0, 1, 1)),
        (edge.wrong - newly_right, (0, 0, 1, 0)),
    )
    states, false = {(0, 0, 0, 0): Fraction(1)}, Fraction(0)
    for n in range(size + 1):
        after: dict[tuple[int, int, int, int], Fraction] = {}
        for state, chance in states.items():
            verdict = decide(edge, state, alpha)
            if verdict is not None and verdict is failed:
                false += chance
                continue
            right, worse, wrong, better = state
            seen = (worse, right - worse, better, wrong - better)
            for (total, step), taken in zip(kinds, seen, strict=True):
                if total > taken:
                    key = tuple(x + y for x, y in zip(state, step, strict=True))
                    share = chance * Fraction(total - taken, size - n)
                    after[key] = after.get(key, Fraction(0)) + share  # type: ignore[index, arg-type]
        states = after
    return false


@cache
def decide(edge: DropEdge, state: tuple[int, int, int, int], alpha: float) -> bool | None:
    return edge.decide(Pairs(*state), alpha)


@pytest.mark.parametrize("size", range(1, 9))
def test_a_false_verdict_is_rarer_than_alpha_for_all_populations_and_orders(size):
    splits = range(size + 1) if size < 8 else (5,)
    for right, limit, level in product(splits, (0.0, 0.2), (0.05, 0.6)):
        if size > 6 and limit:
            continue
        edge = DropEdge(right, size - right, limit, level)
        for newly_wrong, newly_right in product(range(right + 1), range(size - right + 1)):
            for alpha in (0.3, 0.05):
                assert chance_of_a_false_verdict(edge, newly_wrong, newly_right, alpha) <= alpha


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 30), st.integers(0, 30), st.sampled_from([0.0, 0.05, 0.2]))
def test_it_is_exact_after_all_items(data, right, wrong, limit):
    if right + wrong == 0:
        return
    worse, better = data.draw(st.integers(0, right)), data.draw(st.integers(0, wrong))
    verdict = DropEdge(right, wrong, limit, 0.05).decide(Pairs(right, worse, wrong, better), 0.01)
    assert verdict is not fails(right + wrong, worse, better, limit, 0.05)


def test_impossible_pairs():
    with pytest.raises(ValueError, match="newly_wrong"):
        Pairs(3, 4, 0, 0)
