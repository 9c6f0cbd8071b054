"""Published and random orders as texts: distinct, seeded, of limited size."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.bias.order_texts import ORDERS
from pytest_llmeval.bias.order_texts import SHARD
from pytest_llmeval.bias.order_texts import SHARD_CHARACTERS
from pytest_llmeval.bias.order_texts import distinct_orders
from pytest_llmeval.bias.order_texts import group_request
from pytest_llmeval.bias.order_texts import order_texts
from pytest_llmeval.bias.order_texts import shards
from pytest_llmeval.core import Item
from pytest_llmeval.core.plan import ITEM_ORDER
from pytest_llmeval.core.plan import OPTION_ORDER
from pytest_llmeval.core.seeded_random import SeededRandom

ITEM = Item("a-1", "a", " Which? ", 1, ("red", "blue", "green", "black"))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.integers(1, 30), st.integers())
@settings(deadline=None)
def test_orders_are_distinct_and_the_published_one_is_first(parts, most, seed):
    orders = distinct_orders(parts, most, SeededRandom(seed))
    everything = set(permutations(parts))
    assert orders[0] == tuple(parts)
    assert len(set(orders)) == len(orders)
    assert set(orders) <= everything
    if len(everything) <= most:
        assert set(orders) == everything
    else:
        assert len(orders) == max(1, most)
    assert orders == distinct_orders(parts, most, SeededRandom(seed))


def test_every_order_is_selected_equally_often():
    counts = dict.fromkeys(permutations("abcd"), 0)
    for seed in range(4000):
        for order in distinct_orders("abcd", 3, SeededRandom(seed))[1:]:
            counts[order] += 1
    del counts["a", "b", "c", "d"]
    expected = 8000 / 23
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_option_blocks():
    texts = order_texts(OPTION_ORDER, [ITEM], 0)
    assert texts[0] == "A. red\nB. blue\nC. green\nD. black"
    assert len(texts) == ORDERS[OPTION_ORDER] == 8
    assert texts != order_texts(OPTION_ORDER, [ITEM], 1)
    assert texts != order_texts(OPTION_ORDER, [replace(ITEM, id="a-2")], 0)
    pair = order_texts(OPTION_ORDER, [replace(ITEM, options=("yes", "no"))], 0)
    assert pair == ("A. yes\nB. no", "A. no\nB. yes")


def test_a_request_has_one_choice_per_order():
    request = group_request(OPTION_ORDER, [ITEM], 0, "bench")
    assert (request.id, request.arm, request.benchmark) == ("a-1", "orders@option_order", "bench")
    assert request.prompt.text == "Which?"
    assert request.prompt.delimiter == "\n"
    assert request.choices == order_texts(OPTION_ORDER, [ITEM], 0)


def test_a_shard_has_items_with_answers():
    other = Item("a-2", "a", "How many?", "12")
    texts = order_texts(ITEM_ORDER, [ITEM, other], 0)
    first = "Which?\nA. red\nB. blue\nC. green\nD. black\nAnswer: B"
    assert texts == (f"{first}\n\nHow many?\nAnswer: 12", f"How many?\nAnswer: 12\n\n{first}")
    assert group_request(ITEM_ORDER, [ITEM, other], 0).id == "a-1"


@given(st.lists(st.lists(st.integers(1, 1500), max_size=12), max_size=4))
@settings(deadline=None)
def test_shards_are_consecutive_items_of_one_file(files):
    items = [
        [
            Item(f"{file}-{row}", str(file), f"{file} {row} ".ljust(size, "x"), "y")
            for row, size in enumerate(sizes)
        ]
        for file, sizes in enumerate(files)
    ]
    place = {item.id: (item.subject, row) for own in items for row, item in enumerate(own)}
    seen = set()
    for shard in shards(items):
        places = [place[item.id] for item in shard]
        assert len({file for file, _ in places}) == 1
        rows = [row for _, row in places]
        assert rows == list(range(rows[0], rows[0] + len(rows)))
        assert 2 <= len(shard) <= SHARD
        assert len(order_texts(ITEM_ORDER, shard, 0)[0]) <= SHARD_CHARACTERS + 2 * SHARD
        assert not seen & {*places}
        seen.update(places)


def test_items_of_equal_text_are_no_shard():
    items = [replace(ITEM, id=f"a-{n}") for n in range(3)]
    assert list(shards([items])) == []
