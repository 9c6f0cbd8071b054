"""What is doubtful in multiple-choice items is told in one line a kind."""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.sources.doubts import doubts


def item(name: str, question: str, gold: int, *options: str) -> Item:
    return Item(name, "s", question, gold, options or ("x", "y"))


def test_nothing_doubtful_is_not_told() -> None:
    assert doubts("b", [item("a", "A?", 0), item("b", "B?", 1)]) == ()


def test_equal_options_are_counted_by_item() -> None:
    items = [item(f"i{n}", f"{n}?", 0, "x", "y", "x", "x") for n in range(5)]
    assert doubts("b", items) == ("b: 5 items have equal options (i0, i1, i2 and 2 more)",)
    assert doubts("b", items[:1]) == ("b: 1 item has equal options (i0)",)


def test_the_same_question_with_other_options_or_the_same_key_is_only_repeated() -> None:
    items = [
        item("a", "A?", 0, "x", "y"),
        item("b", " A? ", 1, "y", "x"),  # the same key, in another order
        item("c", "A?", 0, "y", "z"),
    ]
    assert doubts("b", items) == ("b: 1 question text occurs more than once (a = b = c)",)


def test_the_same_question_and_options_with_another_key_contradict() -> None:
    items = [item("a", "A?", 0, "x", "y"), item("b", "A?", 0, "y", "x"), item("c", "C?", 0)]
    assert doubts("b", items) == ("b: 1 question has keys that contradict each other (a = b)",)
