"""What is doubtful in the items of a multiple-choice benchmark, told as its data set's warnings."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence

from pytest_llmeval.core import Item

_SHOWN = 3


def doubts(name: str, items: Iterable[Item]) -> tuple[str, ...]:
    """One line each for equal options, repeated questions, and keys that contradict each other.

    Two items contradict each other where question and options are the same (in any order) and the
    text of the right one is not.
    """
    items = tuple(items)
    equal = [item.id for item in items if len(set(item.options)) < len(item.options)]
    same: dict[str, list[Item]] = {}
    for item in items:
        same.setdefault(item.question.strip(), []).append(item)
    repeated: list[str] = []
    contradictory: list[str] = []
    for asked in same.values():
        if len(asked) == 1:
            continue
        keys: dict[tuple[str, ...], set[str]] = {}
        for item in asked:
            keys.setdefault(tuple(sorted(item.options)), set()).add(item.gold_text)
        found = contradictory if any(len(gold) > 1 for gold in keys.values()) else repeated
        found.append(" = ".join(item.id for item in asked))
    return tuple(
        f"{name}: {len(found):,} {what[len(found) > 1]} ({_few(found)})"
        for found, what in (
            (equal, ("item has equal options", "items have equal options")),
            (
                repeated,
                ("question text occurs more than once", "question texts occur more than once"),
            ),
            (
                contradictory,
                (
                    "question has keys that contradict each other",
                    "questions have keys that contradict each other",
                ),
            ),
        )
        if found
    )


def _few(texts: Sequence[str]) -> str:
    rest = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")
