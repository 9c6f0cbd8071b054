"""The gap between a benchmark and its rewritten copy: exact one-sided tests."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.metrics.contamination.twins import one_sided_sign_flip
from pytest_llmeval.metrics.contamination.twins import twin_gap
from pytest_llmeval.metrics.contamination.twins import twin_gap_over_reference
from support.paths import DATA

ORACLES = DATA.parent / "reference" / "contamination_oracles.json"


def pairs(items: int, original_only: int, twin_only: int) -> dict[str, tuple[bool, bool]]:
    both = items - original_only - twin_only
    outcomes = [(True, False)] * original_only + [(False, True)] * twin_only + [(True, True)] * both
    return {str(number): pair for number, pair in enumerate(outcomes)}


@pytest.mark.parametrize(
    ("counts", "gap", "p"),
    [
        ((200, 12, 3), 0.045, 0.017578125),
        ((1000, 60, 41), 0.019, 0.036378503438762096),
        ((50, 0, 0), 0.0, 1.0),
    ],
)
def test_known_gaps(counts, gap, p):
    test = twin_gap(pairs(*counts))
    assert test is not None
    assert (test.items, test.original_only, test.twin_only) == counts
    assert test.gap == pytest.approx(gap)
    assert test.p_value == pytest.approx(p, rel=1e-12)


@pytest.mark.skipif(not ORACLES.exists(), reason="no oracles")
def test_oracles():
    stored = json.loads(ORACLES.read_text())
    for case in stored["twin"]:
        test = twin_gap(pairs(case["items"], case["original_only"], case["twin_only"]))
        assert test is not None
        assert (test.gap, test.p_value) == pytest.approx((case["gap"], case["p_one_sided"]))
    case = stored["twin_over_reference"]
    counted = {d: case["differences"].count(d) for d in case["differences"]}
    assert one_sided_sign_flip(counted) == pytest.approx(float(Fraction(case["p_one_sided"])))


def test_over_a_reference():
    """Six items with differences 2, 1, 1, 0, -1, 1."""
    candidate = dict(zip("abcdef", [(1, 0), (1, 0), (1, 1), (0, 0), (1, 1), (1, 0)], strict=True))
    reference = dict(zip("abcdef", [(0, 1), (0, 0), (0, 1), (1, 1), (1, 0), (1, 1)], strict=True))
    test = twin_gap_over_reference(candidate, reference)
    assert test is not None
    assert test.gap == pytest.approx(4 / 6)
    assert test.p_value == pytest.approx(5 / 32)
    with pytest.raises(KeyError):
        twin_gap_over_reference(candidate, {})
    assert twin_gap({}) is None


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=9))
def test_sign_flips_by_enumeration(differences):
    counted = {d: differences.count(d) for d in differences}
    total = sum(differences)
    signs = list(product((1, -1), repeat=len(differences)))
    sums = [sum(s * d for s, d in zip(own, differences, strict=True)) for own in signs]
    expected = Fraction(sum(value >= total for value in sums), len(sums))
    assert one_sided_sign_flip(counted) == pytest.approx(float(expected), rel=1e-12)
