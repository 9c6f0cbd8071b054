"""The arms of a permutation audit: in which order an item and its shots show their options.

Everything is a pure function of the item (or shot), the arm and the seed it was made with. An
order lists the original index of the option that is shown at each position.

The attack arms move the right answer to one position by swapping it with the option there, after
Zheng et al. 2024 (arXiv:2309.03882); the others stay. Moved in the test item alone they show a
preference for the position or its label, in the shots alone the copying of the shots' answers, in
both the attack of Nowak et al. 2026 (arXiv:2602.17445).
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
from pytest_llmeval.core.seeded_random import Draws

Order = tuple[int, ...]
"""Position shown → original index of the option."""

ORIGINAL = "original"
KINDS = ("cyclic", "full", "attack")
MOST_OPTIONS_IN_FULL = 5

_BRACKETED = re.compile(r"\(([A-Z])\)")


@dataclass(frozen=True, slots=True)
class Move:
    """How an item's options are ordered.

    ``kind`` ``keep``: as they are. ``rotate``: begun with option ``number``. ``swap``: the gold
    swapped with position ``number``. ``fixed``: as ``order`` says. ``draw``: the permutation
    that is drawn for the item as the ``number``-th from ``seed``, no two alike.
    """

    kind: str = "keep"
    number: int = 0
    order: Order = ()
    seed: int = 0


KEEP = Move()


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm: a name such as ``original``, ``cyclic@2`` or ``both@C``, and two moves.

    ``instead``: of an arm that is no order of the options, the text that stands in place of the
    question and of every option (``contentfree``).
    """

    name: str
    item: Move = KEEP
    shots: Move = KEEP
    instead: str | None = None

    @property
    def family(self) -> str:
        """What stands before the ``@``: the arms that are compared with one another."""
        return family_of(self.name)


def position_of(name: str) -> int | None:
    """The position that an attack arm moves answers to; None for another arm."""
    family, _, label = name.partition("@")
    return LABELS.index(label) if family in ("test", "shots", "both") else None


def arms(kind: str, options: int, seed: int = 0, *, shots: bool = True) -> tuple[Arm, ...]:
    """The arms of an audit, the original first.

    ``cyclic``: the rotations; ``full``: all permutations; ``attack``: the gold moved to every
    position, in the test items (``test@A``), in the shots (``shots@A``), in both (``both@A``),
    without ``shots`` in the test items only; a number: so many permutations drawn per item, the
    original counted. ``options``: how many a usual item has. ConfigError for another kind.
    """
    original = Arm(ORIGINAL)
    if options < 2:
        raise ConfigError(f"a permutation audit needs at least 2 options, not {options}")
    if kind == "cyclic":
        rest = [Arm(f"cyclic@{n}", Move("rotate", n)) for n in range(1, options)]
    elif kind == "full":
        rest = _full(options)
    elif kind == "attack":
        moves = [(LABELS[k], Move("swap", k)) for k in range(options)]
        rest = [Arm(f"test@{label}", item=move) for label, move in moves]
        if shots:
            rest += [Arm(f"shots@{label}", shots=move) for label, move in moves]
            rest += [Arm(f"both@{label}", item=move, shots=move) for label, move in moves]
    elif kind.isascii() and kind.isdecimal():
        rest = _drawn(int(kind), options, seed)
    else:
        raise ConfigError(
            f"unknown permutations {kind!r}{suggestion(kind, (*KINDS, 'a number such as 4'))}"
        )
    return (original, *rest)


def _full(options: int) -> list[Arm]:
    if options > MOST_OPTIONS_IN_FULL:
        raise ConfigError(
            f"full permutations of {options} options are {factorial(options):,} arms; at most"
            f" {MOST_OPTIONS_IN_FULL} options: use cyclic, attack or a number"
        )
    _, *others = permutations(range(options))
    return [
        Arm("full@" + "".join(LABELS[index] for index in order), Move("fixed", order=order))
        for order in others
    ]


def _drawn(number: int, options: int, seed: int) -> list[Arm]:
    if not 2 <= number <= factorial(options):
        raise ConfigError(
            f"permutations: {number} of {options} options; 2 to {factorial(options):,} were expected"
        )
    return [Arm(f"drawn@{n}", Move("draw", n, seed=seed)) for n in range(1, number)]


def usual_options(items: Iterable[Item]) -> int:
    """How many options most items have, the larger of equally frequent numbers.

    ConfigError unless every item has options to permute.
    """
    sizes: Counter[int] = Counter()
    for item in items:
        if not item.options or not isinstance(item.gold, int):
            raise ConfigError(f"item {item.id!r} has no options to permute")
        sizes[len(item.options)] += 1
    if not sizes:
        raise ConfigError("there are no items to permute")
    return max(sizes, key=lambda size: (sizes[size], size))


def order(item: Item, move: Move) -> Order | None:
    """Position shown → original index; None where the item is not in this arm.

    That is the case where it has no such position (a gold cannot stand at D of three options),
    no such permutation, or no options.
    """
    size = len(item.options)
    if not isinstance(item.gold, int) or not size:
        return None
    return _ORDERS[move.kind](item, item.gold, size, move)


def inverse(shown: Order) -> Order:
    """Original index → the position at which the option is shown."""
    places = [0] * len(shown)
    for position, index in enumerate(shown):
        places[index] = position
    return tuple(places)


def arrange(item: Item, move: Move) -> Item | None:
    """The item with its options in the move's order and its gold where it then stands.

    None where the item is not in the arm. Its id stays. Letters in brackets in a recorded
    reasoning (``cot``: "The answer is (C).") are those of the same options in the new order.
    """
    shown = order(item, move)
    if shown is None or not isinstance(item.gold, int):
        return None
    places = inverse(shown)
    fields = item.fields
    if "cot" in fields:
        fields = {**fields, "cot": _relabelled(fields["cot"], places)}
    return replace(
        item,
        options=tuple(item.options[index] for index in shown),
        gold=places[item.gold],
        fields=fields,
    )


def same_options(item: Item) -> tuple[int, ...]:
    """The first option with the text of each of an item's options; empty where all differ."""
    if len(set(item.options)) == len(item.options):
        return ()
    return tuple(map(item.options.index, item.options))


def _relabelled(text: str, places: Order) -> str:
    def label(match: re.Match[str]) -> str:
        index = LABELS.index(match[1])
        return f"({LABELS[places[index]]})" if index < len(places) else match[0]

    return _BRACKETED.sub(label, text)


def _keep(_item: Item, _gold: int, size: int, _move: Move) -> Order:
    return tuple(range(size))


def _rotate(_item: Item, _gold: int, size: int, move: Move) -> Order | None:
    if move.number >= size:
        return None
    return tuple((position + move.number) % size for position in range(size))


def _swap(_item: Item, gold: int, size: int, move: Move) -> Order | None:
    if move.number >= size:
        return None
    shown = list(range(size))
    shown[gold], shown[move.number] = move.number, gold
    return tuple(shown)


def _fixed(_item: Item, _gold: int, size: int, move: Move) -> Order | None:
    return move.order if len(move.order) == size else None


def _draw(item: Item, _gold: int, size: int, move: Move) -> Order | None:
    if move.number >= factorial(size):
        return None
    draws = Draws("permutations", move.seed, item.id)
    indices = tuple(range(size))
    # The n-th that is new: the same whatever number of arms there is.
    seen = [indices]
    while len(seen) <= move.number:
        candidate = tuple(draws.shuffled(indices))
        if candidate not in seen:
            seen.append(candidate)
    return seen[-1]


_ORDERS: dict[str, Callable[[Item, int, int, Move], Order | None]] = {
    "keep": _keep,
    "rotate": _rotate,
    "swap": _swap,
    "fixed": _fixed,
    "draw": _draw,
}
