"""Doubts about multiple-choice items: a warning of one line a kind."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.sources.data_warnings import item_warnings


def item(name: str, question: str, gold: int, *options: str) -> Item:
    return Item(name, "s", question, gold, options or ("x", "y"))


def test_no_warning_without_a_doubt() -> None:
    assert item_warnings("b", [item("a", "A?", 0), item("b", "B?", 1)]) == ()


def test_equal_options_are_counted_by_item() -> None:
    items = [item(f"i{n}", f"{n}?", 1 + n % 2, "x", "y", "z", "x") for n in range(5)]
    assert item_warnings("b", items) == ("b: 5 items have equal options (i0, i1, i2 and 2 more)",)
    assert item_warnings("b", items[:1]) == ("b: 1 item has equal options (i0)",)


def test_items_whose_right_option_occurs_twice_come_first() -> None:
    items = [item("a", "A?", 1, "x", "y", "x"), item("b", "B?", 0, "x", "y", "x")]
    assert item_warnings("n", items) == (
        "n: 2 items have equal options, in 1 of them the right one (b, a)",
    )


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [
        ("x", " x", True),
        ("two words", "two\u00a0 words", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("Rr", "rr", False),  # genotypes
        ("x\u00b2", "x2", False),
    ],
)
def test_equal_options(first: str, other: str, same: bool) -> None:
    assert bool(item_warnings("b", [item("a", "A?", 0, first, other)])) is same


def test_an_empty_option_is_doubtful() -> None:
    items = [item("a", "A?", 0, "x", " "), item("b", "B?", 1)]
    assert item_warnings("b", items) == ("b: 1 item has an empty option (a)",)


def test_one_answer_to_all_questions_is_warned_about() -> None:
    items = [item(f"i{n}", f"{n}?", 2, "w", "x", "y", "z") for n in range(5)]
    assert item_warnings("b", items) == (
        "b: the answer of all 5 items is 'C': a model that always gives it is always right",
    )
    assert item_warnings("b", items[:4]) == ()
    assert item_warnings("b", [*items, item("j", "J?", 1, "w", "x")]) == ()


def test_the_same_question_with_other_options_or_the_same_key_is_only_repeated() -> None:
    items = [
        item("a", "A?", 0, "x", "y"),
        item("b", " A? ", 1, "y", "x"),  # the same key, in another order
        item("c", "A?", 0, "y", "z"),
    ]
    assert item_warnings("b", items) == ("b: 1 question text occurs more than once (a = b = c)",)


def test_the_same_question_and_options_with_another_key_contradict() -> None:
    items = [item("a", "A?", 0, "x", "y"), item("b", "A?", 0, "y", "x"), item("c", "C?", 0)]
    assert item_warnings("b", items) == (
        "b: 1 question has keys that contradict each other (a = b)",
    )
