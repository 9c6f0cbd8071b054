"""Published and random orders of the options of an item, and of the items of a shard, as texts.

A request of an order test has one choice per order, the published one first, after a context that
is the same for all orders. The format is independent of protocols, so that runs under any protocol
can be compared. Everything is a pure function of the items and the seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from itertools import permutations

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core.plan import ITEM_ORDER
from pytest_llmeval.core.plan import OPTION_ORDER
from pytest_llmeval.core.plan import order_arm
from pytest_llmeval.core.seeded_random import SeededRandom

ORDERS = {OPTION_ORDER: 8, ITEM_ORDER: 6}
"""Orders of a group, the published one included; fewer if there are no more distinct ones."""

FORMATS = {
    OPTION_ORDER: "question, then options as lines A. to Z.; 1",
    ITEM_ORDER: "items with options as lines A. to Z. and their answers; 1",
}
"""Description and version of the texts; another text is another version."""

SHARD = 5
"""Largest number of items of a shard."""

SHARD_CHARACTERS = 3_000
"""Largest length of a shard in characters, which a window of 1,024 tokens holds in English."""

_TITLE = "Questions and answers"


def group_request(test: str, group: Sequence[Item], seed: int, benchmark: str = "") -> Request:
    """Return the request of a group: an item for ``option_order``, a shard for ``item_order``.

    ``Request.id`` is that of the group's first item, its carrier.
    """
    if test == OPTION_ORDER:
        prompt = Prompt("", (), group[0].question.strip(), delimiter="\n")
    else:
        prompt = Prompt("", (), _TITLE, delimiter="\n\n")
    return Request(
        id=group[0].id,
        prompt=prompt,
        choices=order_texts(test, group, seed),
        seed=seed,
        benchmark=benchmark,
        arm=order_arm(test),
    )


def order_texts(test: str, group: Sequence[Item], seed: int) -> tuple[str, ...]:
    """Return the texts of a group in its published order and in random orders, all distinct."""
    generator = SeededRandom("contamination", test, seed, *(item.id for item in group))
    if test == OPTION_ORDER:
        parts, separator = group[0].options, "\n"
    else:
        parts, separator = tuple(map(_with_answer, group)), "\n\n"
    orders = distinct_orders(parts, ORDERS[test], generator)
    if test == OPTION_ORDER:
        return tuple(separator.join(_lines(order)) for order in orders)
    return tuple(separator.join(order) for order in orders)


def distinct_orders(
    parts: Sequence[str], most: int, generator: SeededRandom
) -> tuple[tuple[str, ...], ...]:
    """Return the given order of the parts and others, selected at random without replacement.

    Orders of equal text are one order. Returns all of them if there are at most ``most``.
    """
    published = tuple(parts)
    total = math.factorial(len(parts)) // math.prod(
        map(math.factorial, Counter(published).values())
    )
    if total <= most:
        return tuple(dict.fromkeys((published, *permutations(published))))
    orders = {published: None}
    while len(orders) < most:
        orders[tuple(generator.shuffled(published))] = None
    return tuple(orders)


def shards(files: Iterable[Sequence[Item]]) -> Iterator[tuple[Item, ...]]:
    """Yield consecutive items of every file in shards, up to the size limits; at least two items.

    Only shards that have another order of different text are yielded.
    """
    for items in files:
        shard: list[Item] = []
        length = 0
        for item in items:
            size = len(_with_answer(item))
            if shard and (len(shard) == SHARD or length + size > SHARD_CHARACTERS):
                yield from _complete(shard)
                shard, length = [], 0
            shard.append(item)
            length += size
        yield from _complete(shard)


def _complete(shard: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    texts = {_with_answer(item) for item in shard}
    if len(texts) > 1 and sum(map(len, texts)) <= SHARD_CHARACTERS:
        yield tuple(shard)


def _lines(options: Sequence[str]) -> Iterator[str]:
    return (f"{label}. {option}" for label, option in zip(LABELS, options, strict=False))


def _with_answer(item: Item) -> str:
    """Return an item as a shard has it: question, options, answer."""
    lines = "".join(f"\n{line}" for line in _lines(item.options))
    return f"{item.question.strip()}{lines}\nAnswer: {item.gold_label}"
