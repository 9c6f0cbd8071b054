"""What is shown of two long values that differ: the place where they do, whatever they are."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.plugin.item_answer import Answer
from pytest_llmeval.plugin.long_comparisons import shortened_comparison

LONG = " ".join(f"word{n}" for n in range(17_000))


def answer(text: str) -> Answer:
    record = Record("m", "b", "exact_match", "i", "s", Outcome.WRONG, "A", "B", text=text)
    return Answer(Item("i", "s", "q", "B"), (record,))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("A", "B"),
        ("x" * 2_000, "y" * 2_000),
        (["A"], ("A",)),
        ({"A": 1}, None),
        (answer("A"), answer("B")),
    ],
)
def test_short_values_are_left_to_pytest(left, right):
    assert shortened_comparison("==", left, right) is None


@pytest.mark.parametrize(
    ("left", "right", "at"),
    [
        (LONG, "B", 0),
        (LONG, LONG + "!", len(LONG)),
        (LONG, LONG[:70_000] + "!" + LONG[70_001:], 70_000),
        (LONG[:70_000] + "!" + LONG[70_001:], LONG, 70_000),
        (LONG.replace(" ", "\n"), LONG.replace(" ", "\n", 7), 47),
        (LONG.split(), LONG.split()[:1], 8),
        (LONG.encode(), LONG[:70_000].encode(), 70_002),
        (dict.fromkeys(LONG.split()), {}, 1),
        (LONG, None, 0),
    ],
)
def test_long_values_are_shown_around_their_first_difference(left, right, at):
    summary, _, more = shortened_comparison("==", left, right)
    assert len(summary) < 1_000
    assert more.endswith(f"the first difference is at character {at:,}")


def test_answers_are_compared_by_all_they_hold():
    assert shortened_comparison("==", answer(LONG), answer(LONG[:-1])) is not None


def test_where_a_text_is_found_is_shown():
    summary, _, _ = shortened_comparison("not in", "word9000", LONG)
    assert "word8999 word9000 word9001" in LONG
    assert "word9000 word9001" in summary
    summary, _, more = shortened_comparison("in", "nowhere", LONG)
    assert summary.startswith("'nowhere' in 'word0 word1")
    assert more == f"7 and {len(LONG):,} characters"


def test_a_value_without_a_form_is_left_to_pytest():
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shortened_comparison("==", Broken(), "A") is None
