"""What was chosen in each arm of a permutation audit, as contents and as positions."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.permutations import Arm
from pytest_llmeval.permutations import inverse
from pytest_llmeval.permutations import order


class Answer(NamedTuple):
    """What was chosen for one item in one arm; a plain ``(chosen, correct)`` will do.

    ``chosen``: the option's index in the original order, None where nothing could be read.
    ``position``, ``gold``: where the chosen and the right option stood; ``shown``: which option
    stood at each position. Without them nothing is told of positions.
    """

    chosen: int | None
    correct: bool
    position: int | None = None
    gold: int | None = None
    shown: tuple[int, ...] = ()


def answered(item: Item, arm: Arm, label: str | None, correct: bool) -> Answer:
    """The answer of a label that was given to the item as the arm shows it.

    Options of equal text are one option: the first of them. What is none of the item's labels
    is no choice. ValueError for an item that is not in the arm.
    """
    shown = order(item, arm.item)
    if shown is None or not isinstance(item.gold, int):
        raise ValueError(f"item {item.id!r} is not in the arm {arm.name!r}")
    gold = inverse(shown)[item.gold]
    contents = tuple(item.options.index(item.options[index]) for index in shown)
    if not label or label not in LABELS[: len(shown)] or len(label) > 1:
        return Answer(None, correct, None, gold, contents)
    position = LABELS.index(label)
    return Answer(contents[position], correct, position, gold, contents)


Table = Mapping[str, Mapping[str, "Answer | tuple[int | None, bool]"]]
"""Item → arm → answer. An arm that an item is not in, or where it had an error, is missing."""

Rows = Sequence[Mapping[str, Answer]]
