"""The order test against enumeration, stored oracles and simulated nulls."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.metrics.contamination import orders
from pytest_llmeval.metrics.contamination.orders import differences
from pytest_llmeval.metrics.contamination.orders import order_test
from pytest_llmeval.metrics.contamination.orders import smallest_visible_rank
from support.paths import DATA

ORACLES = DATA.parent / "reference" / "contamination_oracles.json"


def oracle(name: str) -> list[dict]:
    """Entries of the stored oracles; none where the file is not there."""
    return json.loads(ORACLES.read_text())[name] if ORACLES.exists() else []


def ranks(values) -> list[Fraction]:
    """The rank of every value among the others of its group, by its definition."""
    return [
        sum(
            Fraction(1) if other < value else Fraction(1, 2) if other == value else Fraction(0)
            for place, other in enumerate(values)
            if place != own
        )
        / (len(values) - 1)
        for own, value in enumerate(values)
    ]


def enumerated(groups) -> tuple[Fraction, Fraction]:
    """Mean rank, and P(sum of ranks >= observed) over all equally likely places."""
    by_group = [ranks(values) for values in groups]
    observed = sum(own[0] for own in by_group)
    sums = [sum(places) for places in product(*by_group)]
    hits = sum(total >= observed for total in sums)
    return observed / len(groups), Fraction(hits, len(sums))


GROUPS = [
    [[-1.0, -2.0, -3.0]],
    [[-3.0, -2.0, -1.0]],
    [[-1.0, -2.0], [-1.0, -2.0]],
    [[-1.0, -1.0, -2.0]],
    [[-5.0, -5.0, -5.0, -5.0]],
    [[-10.0, -11.0, -12.0, -13.0], [-20.0, -19.0, -21.0, -22.0], [-7.0, -8.0, -6.0, -9.0]],
    [[-1.0, -2.0, -3.0], [-2.0, -1.0], [-1.0, -3.0, -2.0, -0.5]],
    [[-2.0, -3.0, -3.0, -1.0], [-4.0, -4.0, -4.0, -6.0]],
]
P_VALUES = ["1/3", "1", "1/4", "2/3", "1", "5/32", "11/24", "3/8"]
MEANS = ["1", "0", "1", "3/4", "1/2", "7/9", "5/9", "2/3"]


@pytest.mark.parametrize(("groups", "p", "mean"), [*zip(GROUPS, P_VALUES, MEANS, strict=True)])
def test_small_groups_by_hand(groups, p, mean):
    assert enumerated(groups) == (Fraction(mean), Fraction(p))
    test = order_test(groups)
    assert test is not None
    assert test.p_value == pytest.approx(float(Fraction(p)), rel=1e-13)
    assert test.mean_rank == pytest.approx(float(Fraction(mean)), rel=1e-14)


@pytest.mark.parametrize("case", oracle("order_test"), ids=lambda case: case["name"])
def test_oracles(case):
    groups = case.get("groups")
    if "ranks_of_24" in case:
        # The published order is above `rank` of the 23 others.
        groups = [[rank - 0.5, *map(float, range(23))] for rank in case["ranks_of_24"]]
    test = order_test(groups)
    assert test is not None
    assert test.p_value == pytest.approx(case["p_float"], rel=1e-12)
    assert test.mean_rank == pytest.approx(case["mean_rank_float"], rel=1e-12)
    if "tops" in case:
        assert test.tops == case["tops"]
        assert test.expected_tops == pytest.approx(case["expected_top_rate"])


@pytest.mark.parametrize("case", oracle("canary"))
def test_a_canary_is_one_group(case):
    test = order_test([[case["true"], *case["others"]]])
    assert test is not None
    assert test.p_value == pytest.approx(float(Fraction(case["p"])), rel=1e-13)


@pytest.mark.parametrize(("m", "variance"), [(2, "1/4"), (4, "5/36"), (8, "3/28"), (24, "25/276")])
def test_the_variance_without_ties(m, variance):
    assert (Fraction(m + 1), 12 * (m - 1)) == (Fraction(variance) * 12 * (m - 1), 12 * (m - 1))
    own = orders._places([float(n) for n in range(m)])
    assert orders._rank_variance(own) == pytest.approx(float(Fraction(variance)))


@pytest.mark.parametrize("case", oracle("sees_mean_rank"))
def test_the_smallest_visible_effect(case):
    m, n = case["orders"], case["items"]
    variance = (m + 1) / (12 * (m - 1) * n)
    seen = smallest_visible_rank(variance, 0.0, case["alpha"], case["power"])
    assert seen == pytest.approx(case["mean_rank"], rel=1e-9)


def test_against_a_reference_with_a_tolerance():
    """Eighty items of eight orders with mean rank 0.775: the numbers of the documentation."""
    below = [5] * 46 + [6] * 34
    groups = [[rank - 0.5, *map(float, range(7))] for rank in below]
    test = order_test(groups, max_excess=0.05)
    assert test is not None
    assert test.mean_rank == pytest.approx(0.775, abs=1e-3)
    assert test.p_value == pytest.approx(4e-10, rel=0.1)
    assert test.sees == pytest.approx(0.666, abs=1e-3)


small = st.lists(
    st.lists(st.integers(0, 3).map(float), min_size=2, max_size=4), min_size=1, max_size=4
)


@given(small)
@settings(deadline=None)
def test_equal_to_enumeration_with_ties(groups):
    mean, p = enumerated(groups)
    test = order_test(groups)
    assert test is not None
    assert test.p_value == pytest.approx(float(p), rel=1e-12)
    assert test.mean_rank == pytest.approx(float(mean), rel=1e-12, abs=1e-12)


@given(small, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_only_the_ranks_within_groups_count(groups, random_order):
    """Neither the order of groups, nor that of the other orders, nor a monotone map changes it."""
    other = [[3 * math.exp(v), *(3 * math.exp(o) for o in rest)] for v, *rest in groups]
    for values in other:
        rest = values[1:]
        random_order.shuffle(rest)
        values[1:] = rest
    random_order.shuffle(other)
    first, second = order_test(groups), order_test(other)
    assert first is not None
    assert second is not None
    assert first.p_value == pytest.approx(second.p_value, rel=1e-12)
    assert first.mean_rank == pytest.approx(second.mean_rank, rel=1e-12, abs=1e-12)


@given(small)
@settings(deadline=None)
def test_a_group_of_equal_values_changes_nothing(groups):
    first, second = order_test(groups), order_test([*groups, [1.0, 1.0, 1.0]])
    assert first is not None
    assert second is not None
    assert first.p_value == pytest.approx(second.p_value, rel=1e-12)


@given(small)
@settings(deadline=None)
def test_a_higher_published_order_is_never_less_significant(groups):
    raised = [[max(values) + 1, *values[1:]] for values in groups]
    first, second = order_test(groups), order_test(raised)
    assert first is not None
    assert second is not None
    assert second.mean_rank == 1.0
    assert second.p_value <= first.p_value + 1e-12


def test_the_normal_is_near_the_exact_value_where_it_takes_over(monkeypatch):
    generator = random.Random(1)
    groups = [
        [generator.random() + 0.03, *(generator.random() for _ in range(7))] for _ in range(1500)
    ]
    exact = order_test(groups)
    monkeypatch.setattr(orders, "EXACT_GROUPS", 10)
    normal = order_test(groups)
    assert exact is not None
    assert normal is not None
    assert normal.p_value != exact.p_value
    assert normal.p_value == pytest.approx(exact.p_value, rel=0.1)


@pytest.mark.parametrize("m", [2, 6, 8])
def test_false_positives_of_simulated_nulls(m):
    """The published order is random: at most alpha of 2,000 benchmarks of forty items are found."""
    generator = random.Random(m)
    p_values = []
    for _ in range(2000):
        test = order_test([[generator.random() for _ in range(m)] for _ in range(40)])
        assert test is not None
        p_values.append(test.p_value)
    for alpha in (0.01, 0.05, 0.1):
        hits = sum(p <= alpha for p in p_values)
        error = math.sqrt(2000 * alpha * (1 - alpha))
        assert hits <= 2000 * alpha + 3 * error, (m, alpha, hits)
    # Not empty caution: it is close to alpha, which a sum of ranks of many groups reaches.
    assert sum(p <= 0.1 for p in p_values) >= 2000 * 0.1 - 6 * math.sqrt(180)


def test_false_positives_with_a_tolerance_are_rarer():
    generator = random.Random(5)
    hits = 0
    for _ in range(500):
        test = order_test(
            [[generator.random() for _ in range(8)] for _ in range(40)], max_excess=0.05
        )
        assert test is not None
        hits += test.p_value <= 0.05
    assert hits <= 25


def test_differences_and_mistakes():
    assert differences([[1.0, 2.0]], [[0.5, 0.0]]) == [[0.5, 2.0]]
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        differences([[1.0, 2.0]], [[1.0]])
    with pytest.raises(ValueError, match="must be numbers"):
        order_test([[1.0, math.nan]])
    with pytest.raises(ValueError, match="max_excess"):
        order_test([[1.0, 2.0]], max_excess=0.5)
    with pytest.raises(ValueError, match="variance"):
        smallest_visible_rank(-1.0)
    assert order_test([]) is None
    assert order_test([[1.0]]) is None


def test_an_impossible_order_is_the_lowest():
    test = order_test([[-1.0, -math.inf, -2.0]])
    assert test is not None
    assert test.p_value == pytest.approx(1 / 3)
