"""What was chosen in each arm of a permutation audit, as contents and as positions."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple


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


def answered(
    shown: Sequence[int], gold: int, chosen: int | None, correct: bool, same: Sequence[int] = ()
) -> Answer:
    """The answer to an item that was shown in an order; indices are of the original order.

    ``same``: ``permutations.same_options``, where some are equal: they are one option, whichever of
    them was chosen. None is no choice.
    """
    contents = tuple(same[index] for index in shown) if same else tuple(shown)
    place = list(shown).index(gold)
    if chosen is None:
        return Answer(None, correct, None, place, contents)
    position = list(shown).index(chosen)
    return Answer(contents[position], correct, position, place, contents)


Table = Mapping[str, Mapping[str, "Answer | tuple[int | None, bool]"]]
"""Item → arm → answer. An arm that an item is not in, or where it had an error, is missing."""

Rows = Sequence[Mapping[str, Answer]]
