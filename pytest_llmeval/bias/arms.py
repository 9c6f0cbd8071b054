"""The arms of a permutation audit: orders of the options of an item and of its shots.

Everything is a pure function of the item (or shot), the arm and the seed of the arm. An order
lists the original index of the option at each position.

The attack arms move the right answer to one position by swapping it with the option there, after
Zheng et al. 2024 (arXiv:2309.03882); the other options stay in place. Applied only to the test
item, they show a preference for the position or its label; only to the shots, the copying of the
shots' answers; to both, they are the attack of Nowak et al. 2026 (arXiv:2602.17445).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace
from itertools import permutations
from math import factorial

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.plan import family_of
from pytest_llmeval.core.seeded_random import SeededRandom

Order = tuple[int, ...]
"""Position → original index of the option at that position."""

ORIGINAL = "original"
KINDS = ("cyclic", "full", "attack")
MOST_OPTIONS_IN_FULL = 5

_BRACKETED = re.compile(r"\(([A-Z])\)")


@dataclass(frozen=True, slots=True)
class Reordering:
    """A rule that orders an item's options.

    ``kind`` is ``keep``: the original order; ``rotate``: rotated, beginning with option
    ``number``; ``swap``: the gold swapped with position ``number``; ``fixed``: ``order``; or
    ``draw``: the ``number``-th of the distinct random permutations of the item from ``seed``.
    """

    kind: str = "keep"
    number: int = 0
    order: Order = ()
    seed: int = 0


KEEP = Reordering()


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm: a name such as ``original``, ``cyclic@2`` or ``both@C``, and its reorderings.

    ``item`` and ``shots`` reorder the options of the item and of its shots. ``instead``: for a
    content-free arm, the text that replaces the question and every option (``content_free``).
    """

    name: str
    item: Reordering = KEEP
    shots: Reordering = KEEP
    instead: str | None = None

    @property
    def family(self) -> str:
        """The part of the name before ``@``; arms of a family are compared with one another."""
        return family_of(self.name)


def position_of(name: str) -> int | None:
    """Return the position to which an attack arm moves answers; None for another arm."""
    family, _, label = name.partition("@")
    return LABELS.index(label) if family in ("test", "shots", "both") else None


def arms(kind: str, options: int, seed: int = 0, *, shots: bool = True) -> tuple[Arm, ...]:
    """Return the arms of an audit, the original first.

    ``kind`` is ``cyclic``: the rotations; ``full``: all permutations; ``attack``: the gold moved
    to every position in the test items (``test@A``) and, with ``shots``, in the shots
    (``shots@A``) and in both (``both@A``); or a number of random permutations per item, including
    the original. ``options``: the usual number of options (``usual_options``). Raises ConfigError
    for another kind, and for a number of options that the kind does not support.
    """
    original = Arm(ORIGINAL)
    if options < 2:
        raise ConfigError(f"a permutation audit needs at least 2 options, not {options}")
    if kind == "cyclic":
        rest = [Arm(f"cyclic@{n}", Reordering("rotate", n)) for n in range(1, options)]
    elif kind == "full":
        rest = _full(options)
    elif kind == "attack":
        moves = [(LABELS[k], Reordering("swap", k)) for k in range(options)]
        rest = [Arm(f"test@{label}", item=move) for label, move in moves]
        if shots:
            rest += [Arm(f"shots@{label}", shots=move) for label, move in moves]
            rest += [Arm(f"both@{label}", item=move, shots=move) for label, move in moves]
    elif kind.isascii() and kind.isdecimal():
        rest = _random(int(kind), options, seed)
    else:
        raise ConfigError(
            f"unknown permutations {kind!r}{suggestion(kind, (*KINDS, 'a number such as 4'))}"
        )
    return (original, *rest)


def _full(options: int) -> list[Arm]:
    if options > MOST_OPTIONS_IN_FULL:
        raise ConfigError(
            f"full permutations of {options} options are {factorial(options):,} arms; at most"
            f" {MOST_OPTIONS_IN_FULL} options are supported: use cyclic, attack or a number"
        )
    _, *others = permutations(range(options))
    return [
        Arm("full@" + "".join(LABELS[index] for index in order), Reordering("fixed", order=order))
        for order in others
    ]


def _random(number: int, options: int, seed: int) -> list[Arm]:
    if not 2 <= number <= factorial(options):
        raise ConfigError(
            f"permutations: {number} of {options} options; write 2 to {factorial(options):,}"
        )
    return [Arm(f"drawn@{n}", Reordering("draw", n, seed=seed)) for n in range(1, number)]


def usual_options(items: Iterable[Item]) -> int:
    """Return the most frequent number of options, the larger of equally frequent numbers.

    Raises ConfigError unless every item has options to permute.
    """
    sizes: Counter[int] = Counter()
    for item in items:
        if not item.options or not isinstance(item.gold, int):
            raise ConfigError(f"item {item.id!r} has no options to permute")
        sizes[len(item.options)] += 1
    if not sizes:
        raise ConfigError("there are no items to permute")
    return max(sizes, key=lambda size: (sizes[size], size))


def option_order(item: Item, move: Reordering) -> Order | None:
    """Return position → original index; None if the item is not in the arm.

    That is the case if it has no such position (the gold cannot be D of three options), no such
    permutation, or no options.
    """
    size = len(item.options)
    if not isinstance(item.gold, int) or not size:
        return None
    return _ORDERS[move.kind](item, item.gold, size, move)


def inverse_order(order: Order) -> Order:
    """Return original index → position of the option."""
    positions = [0] * len(order)
    for position, index in enumerate(order):
        positions[index] = position
    return tuple(positions)


def arrange(item: Item, move: Reordering) -> Item | None:
    """Return the item with reordered options, its gold adjusted; None if it is not in the arm.

    The id is kept. Letters in brackets in a recorded reasoning (``cot``: "The answer is (C).") are
    replaced by those of the same options in the new order.
    """
    order = option_order(item, move)
    if order is None or not isinstance(item.gold, int):
        return None
    positions = inverse_order(order)
    fields = item.fields
    if "cot" in fields:
        fields = {**fields, "cot": _relabel(fields["cot"], positions)}
    return replace(
        item,
        options=tuple(item.options[index] for index in order),
        gold=positions[item.gold],
        fields=fields,
    )


def same_options(item: Item) -> tuple[int, ...]:
    """Return for each option the first index with the same text; empty if all texts differ."""
    if len(set(item.options)) == len(item.options):
        return ()
    return tuple(map(item.options.index, item.options))


def _relabel(text: str, positions: Order) -> str:
    def label(match: re.Match[str]) -> str:
        index = LABELS.index(match[1])
        return f"({LABELS[positions[index]]})" if index < len(positions) else match[0]

    return _BRACKETED.sub(label, text)


def _keep(_item: Item, _gold: int, size: int, _move: Reordering) -> Order:
    return tuple(range(size))


def _rotate(_item: Item, _gold: int, size: int, move: Reordering) -> Order | None:
    if move.number >= size:
        return None
    return tuple((position + move.number) % size for position in range(size))


def _swap(_item: Item, gold: int, size: int, move: Reordering) -> Order | None:
    if move.number >= size:
        return None
    order = list(range(size))
    order[gold], order[move.number] = move.number, gold
    return tuple(order)


def _fixed(_item: Item, _gold: int, size: int, move: Reordering) -> Order | None:
    return move.order if len(move.order) == size else None


def _draw(item: Item, _gold: int, size: int, move: Reordering) -> Order | None:
    if move.number >= factorial(size):
        return None
    generator = SeededRandom("permutations", move.seed, item.id)
    indices = tuple(range(size))
    # The n-th new permutation, so that it does not depend on the number of arms.
    seen = [indices]
    while len(seen) <= move.number:
        candidate = tuple(generator.shuffled(indices))
        if candidate not in seen:
            seen.append(candidate)
    return seen[-1]


_ORDERS: dict[str, Callable[[Item, int, int, Reordering], Order | None]] = {
    "keep": _keep,
    "rotate": _rotate,
    "swap": _swap,
    "fixed": _fixed,
    "draw": _draw,
}
