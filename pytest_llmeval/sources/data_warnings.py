"""What is doubtful in the items of a benchmark, reported as its data set's warnings."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_llmeval.core import Item

_SHOWN = 3

UNLIKELY = 0.01
"""Probability below which it is no accident that all items have the same answer."""

_ANSWERS = 4  # how many a question without options is taken to have at the least


def doubts(name: str, items: Iterable[Item]) -> tuple[str, ...]:
    """One line for each kind of doubt that the items of ``name`` raise.

    Equal and empty options, the same answer to every question, repeated questions, and keys that
    contradict each other: two items whose question and options are the same (in any order) and the
    text of the right one is not. Texts are the same where they differ in nothing but blanks and the
    form of Unicode; case tells options apart (``Rr`` and ``rr``).
    """
    items = tuple(items)
    shown = [list(map(plain, item.options)) for item in items]
    equal: list[str] = []
    right = 0
    for item, options in zip(items, shown, strict=True):
        if len(set(options)) < len(options):
            twice = options.count(options[_gold(item)]) > 1
            right += twice
            equal.insert(right - 1 if twice else len(equal), _name(item))
    empty = [_name(item) for item, options in zip(items, shown, strict=True) if not all(options)]
    same: dict[str, list[Item]] = {}
    for item in items:
        same.setdefault(plain(item.question), []).append(item)
    repeated: list[str] = []
    contradictory: list[str] = []
    for asked in same.values():
        if len(asked) == 1:
            continue
        keys: dict[tuple[str, ...], set[str]] = {}
        for item in asked:
            options = sorted(map(plain, item.options))
            keys.setdefault(tuple(options), set()).add(plain(item.gold_text))
        found = contradictory if any(len(gold) > 1 for gold in keys.values()) else repeated
        found.append(" = ".join(map(_name, asked)))
    of_these = f", in {right:,} of them the right one" if right else ""
    return tuple(
        f"{name}: {len(found):,} {what[len(found) > 1]} ({few(found)})"
        for found, what in (
            (
                equal,
                (f"item has equal options{of_these}", f"items have equal options{of_these}"),
            ),
            (empty, ("item has an empty option", "items have an empty option")),
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
    ) + _constant(name, items)


def without_items(
    warnings: Iterable[str], items: Sequence[Item], rest: Sequence[Item]
) -> tuple[str, ...]:
    """The warnings on a data set once only ``rest`` of its ``items`` are left.

    Those that ``doubts`` raised are raised anew; others stay as they are.
    """
    kept: dict[str, None] = {}
    raised: dict[str, tuple[str, ...]] = {}
    for warning in warnings:
        name = warning.partition(": ")[0]
        if name not in raised:
            raised[name] = doubts(name, items)
        kept.update(dict.fromkeys(doubts(name, rest) if warning in raised[name] else (warning,)))
    return tuple(kept)


def plain(text: str) -> str:
    """A text in Unicode's composed form, with single blanks and none around it."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(composed.split())


def few(texts: Sequence[str], shown: int = _SHOWN) -> str:
    """The first texts, and how many more there are."""
    rest = len(texts) - shown
    return ", ".join(texts[:shown]) + (f" and {rest:,} more" if rest > 0 else "")


def _constant(name: str, items: Sequence[Item]) -> tuple[str, ...]:
    """That all items have one answer, which a model may give unread: options left in order, say."""
    answers = {item.gold_label for item in items}
    chance = math.prod(1 / (len(item.options) or _ANSWERS) for item in items[1:])
    if len(answers) != 1 or chance >= UNLIKELY:
        return ()
    return (
        f"{name}: the answer of all {len(items):,} items is {items[0].gold_label[:40]!r}: a model"
        " that always gives it is always right",
    )


def _gold(item: Item) -> int:
    return item.gold if isinstance(item.gold, int) else 0


def _name(item: Item) -> str:
    return item.id if item.line is None else f"{item.id} in line {item.line}"
