"""Item ids: safe, short, different for different texts, the same for the same record."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.item_ids import safe_id


def test_very_long_ids_stay_different() -> None:
    ids = [safe_id("Given the passage " + "w" * 5000 + end) for end in (" end1", " end2")]
    assert len(set(ids)) == 2
    assert all(len(name) <= 100 for name in ids)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("college_mathematics", "college_mathematics"),
        ("high school  mathematics", "high_school_mathematics"),
        ("HumanEval/0", "HumanEval_0"),
    ],
)
def test_usual_names_stay_readable(text: str, expected: str) -> None:
    assert safe_id(text) == expected


def test_other_alphabets_stay_different() -> None:
    assert len({safe_id("数学"), safe_id("物理"), safe_id("_"), safe_id("")}) == 4


def test_row_ids() -> None:
    assert row_id("college_mathematics", 42) == "college_mathematics-0042"
    assert row_id("s", 12345) == "s-12345"
    assert len(row_id("x" * 500, 10**6)) <= 100


@given(st.text())
def test_every_id_is_safe_and_short(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", safe_id(text))
    assert safe_id(safe_id(text)) == safe_id(text)
