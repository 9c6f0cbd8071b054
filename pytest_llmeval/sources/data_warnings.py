"""Warnings about doubtful items, such as equal options and contradictory keys."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_llmeval.core import Item

_MOST_LISTED = 3

UNLIKELY = 0.01
"""Probability below which equal answers of all items are not regarded as chance."""

_ANSWERS = 4  # smallest number of possible answers assumed for a question without options


def item_warnings(name: str, items: Iterable[Item]) -> tuple[str, ...]:
    """Return one line for each kind of problem in the items of the benchmark ``name``.

    Problems are equal options, empty options, one answer to all questions, repeated questions, and
    contradictory keys: two items with equal question and options (in any order), but different
    right options. Texts are compared without regard to white space and Unicode normalisation; case
    matters (``Rr`` and ``rr``).
    """
    items = tuple(items)
    normalized = [list(map(normalize, item.options)) for item in items]
    equal: list[str] = []
    right = 0
    for item, options in zip(items, normalized, strict=True):
        if len(set(options)) < len(options):
            twice = options.count(options[_gold(item)]) > 1
            right += twice
            equal.insert(right - 1 if twice else len(equal), _name(item))
    empty = [
        _name(item) for item, options in zip(items, normalized, strict=True) if not all(options)
    ]
    by_question: dict[str, list[Item]] = {}
    for item in items:
        by_question.setdefault(normalize(item.question), []).append(item)
    repeated: list[str] = []
    contradictory: list[str] = []
    for group in by_question.values():
        if len(group) == 1:
            continue
        keys: dict[tuple[str, ...], set[str]] = {}
        for item in group:
            options = sorted(map(normalize, item.options))
            keys.setdefault(tuple(options), set()).add(normalize(item.gold_text))
        names = contradictory if any(len(gold) > 1 for gold in keys.values()) else repeated
        names.append(" = ".join(map(_name, group)))
    of_these = f", in {right:,} of them the right one" if right else ""
    return tuple(
        f"{name}: {len(names):,} {problem[len(names) > 1]} ({abbreviate(names)})"
        for names, problem in (
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
        if names
    ) + _constant(name, items)


def warnings_after_exclusion(
    warnings: Iterable[str], items: Sequence[Item], rest: Sequence[Item]
) -> tuple[str, ...]:
    """Return the warnings on a data set of which only the items ``rest`` remain.

    Warnings of ``item_warnings`` are computed again; others are kept.
    """
    remaining: dict[str, None] = {}
    computed: dict[str, tuple[str, ...]] = {}
    for warning in warnings:
        name = warning.partition(": ")[0]
        if name not in computed:
            computed[name] = item_warnings(name, items)
        remaining.update(
            dict.fromkeys(item_warnings(name, rest) if warning in computed[name] else (warning,))
        )
    return tuple(remaining)


def normalize(text: str) -> str:
    """Return a text in Unicode's form NFC, with white space stripped and collapsed to blanks."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    return " ".join(composed.split())


def abbreviate(texts: Sequence[str], limit: int = _MOST_LISTED) -> str:
    """Return the first ``limit`` texts, separated by commas, and the number of the others."""
    rest = len(texts) - limit
    return ", ".join(texts[:limit]) + (f" and {rest:,} more" if rest > 0 else "")


def _constant(name: str, items: Sequence[Item]) -> tuple[str, ...]:
    """Return a warning if all items have one answer, for example because options were sorted.

    A model could then be right without reading the question.
    """
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
