"""Generated questions: the recipe, held fast, and what it promises."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

from pytest_llmeval.catalog.nonsenseqa import load
from pytest_llmeval.catalog.nonsenseqa import nonsenseqa
from pytest_llmeval.core import check_dataset
from pytest_llmeval.sources.nonsense import RECIPE
from pytest_llmeval.sources.nonsense import nonsense
from pytest_llmeval.sources.nonsense import words

DATA = load()


def test_the_data_of_recipe_1_are_held_fast() -> None:
    assert RECIPE == nonsenseqa().version == "1"
    assert DATA.content_hash() == "353a1eb49c1e1954"
    assert hashlib.sha256("\n".join(words()).encode()).hexdigest()[:16] == "2ef765054e1f39aa"
    first = DATA.items[0]
    assert (first.id, first.gold) == ("nonsense-0000", 1)
    assert first.question == (
        "Wait examines phone wherever ran dealing approach earliest t"
        "runk sat permit political partially submitted requirements fourth?"
    )
    assert first.options == (
        "Associates sequences",
        "Removed",
        "Component closer",
        "King committee feed",
    )


def test_a_thousand_items_of_four_options_golds_uniform() -> None:
    check_dataset("nonsenseqa", DATA)
    assert len(DATA.items) == 1000
    assert Counter(item.gold for item in DATA.items) == dict.fromkeys(range(4), 250)
    assert DATA.chance() == 0.25
    assert len({item.question for item in DATA.items}) == 1000
    # In no order that could be learned: neighbours are alike as often as by chance.
    alike = sum(a.gold == b.gold for a, b in zip(DATA.items, DATA.items[1:], strict=False))
    assert abs(alike - 250) < 5 * (1000 * 3 / 16) ** 0.5


def test_every_text_has_the_shape_of_the_published_example() -> None:
    lengths: Counter[int] = Counter()
    for item in DATA.items:
        assert re.fullmatch(r"[A-Z][a-z]+( [a-z]+){7,15}\?", item.question)
        words = item.question.rstrip("?").lower().split()
        for option in item.options:
            assert re.fullmatch(r"[A-Z][a-z]+( [a-z]+){0,5}", option)
            words += option.lower().split()
            lengths[len(option.split())] += 1
        assert len(set(words)) == len(words)
    assert all(abs(lengths[n] - 4000 / 6) < 5 * (4000 * 5 / 36) ** 0.5 for n in range(1, 7))


def test_golds_do_not_go_with_the_length_of_the_option() -> None:
    longest = sum(
        len(item.options[item.gold].split()) == max(len(o.split()) for o in item.options)
        for item in DATA.items
        if isinstance(item.gold, int)
    )
    tied = sum(
        sum(len(o.split()) == max(len(p.split()) for p in item.options) for o in item.options)
        for item in DATA.items
    )
    assert abs(longest - tied / 4) < 5 * (1000 * 0.25) ** 0.5


def test_the_pool_is_apart_and_its_first_four_show_every_position() -> None:
    ((_, pool),) = DATA.pool.items()
    assert len(pool) == 20
    assert Counter(shot.gold for shot in pool) == dict.fromkeys(range(4), 5)
    assert {shot.gold for shot in pool[:4]} == {0, 1, 2, 3}
    assert not {shot.question for shot in pool} & {item.question for item in DATA.items}


def test_an_item_depends_on_its_number_and_the_seed_alone() -> None:
    assert [i.question for i in nonsense(items=3).items] == [i.question for i in DATA.items[:3]]
    other = nonsense(items=5, seed=1)
    assert not {i.question for i in other.items} & {i.question for i in DATA.items}
