"""Arms of a permutation audit: orders, what is in an arm, moved shots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import factorial

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from pytest_llmeval.bias.arms import Arm
from pytest_llmeval.bias.arms import Reordering
from pytest_llmeval.bias.arms import arms
from pytest_llmeval.bias.arms import arrange
from pytest_llmeval.bias.arms import inverse_order
from pytest_llmeval.bias.arms import option_order
from pytest_llmeval.bias.arms import position_of
from pytest_llmeval.bias.arms import usual_options
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core.plan import family_of


def an_item(options: int = 4, gold: int = 1, name: str = "i") -> Item:
    return Item(name, "s", "?", gold, tuple("wxyzuv"[:options]))


ITEMS = st.integers(2, 6).flatmap(
    lambda size: st.builds(
        an_item, st.just(size), st.integers(0, size - 1), st.text("abc-1", min_size=1, max_size=5)
    )
)
KINDS = st.sampled_from(["cyclic", "full", "attack", "2", "5", "6"])


@given(ITEMS, KINDS, st.integers(2, 5), st.integers(0, 3))
def test_every_arm_shows_every_option_once_and_finds_the_gold(
    item: Item, kind: str, usual: int, seed: int
) -> None:
    if kind.isdecimal() and int(kind) > factorial(usual):
        return
    for arm in arms(kind, usual, seed):
        shown = option_order(item, arm.item)
        arranged = arrange(item, arm.item)
        if shown is None:
            assert arranged is None
            continue
        assert arranged is not None
        assert sorted(shown) == list(range(len(item.options)))
        assert arranged.options == tuple(item.options[index] for index in shown)
        assert arranged.options[arranged.gold] == item.options[item.gold]  # type: ignore[index]
        assert [shown[place] for place in inverse_order(shown)] == sorted(shown)
        assert (arranged.id, arranged.question) == (item.id, item.question)
        back = replace(arranged, options=item.options, gold=item.gold)
        assert back == item


def test_the_original_comes_first_and_changes_nothing() -> None:
    for kind in ("cyclic", "full", "attack", "3"):
        first = arms(kind, 4)[0]
        assert first.name == "original"
        assert arrange(an_item(), first.item) == an_item()
        assert arrange(an_item(), first.shots) == an_item()


def test_names_and_numbers_of_arms() -> None:
    assert [arm.name for arm in arms("cyclic", 3)] == ["original", "cyclic@1", "cyclic@2"]
    assert [arm.name for arm in arms("full", 3)] == [
        "original", "full@ACB", "full@BAC", "full@BCA", "full@CAB", "full@CBA",
    ]  # fmt: skip
    assert [arm.name for arm in arms("attack", 2)] == [
        "original", "test@A", "test@B", "shots@A", "shots@B", "both@A", "both@B",
    ]  # fmt: skip
    assert [arm.name for arm in arms("attack", 2, shots=False)] == ["original", "test@A", "test@B"]
    assert [arm.name for arm in arms("3", 4)] == ["original", "drawn@1", "drawn@2"]
    assert len(arms("full", 5)) == 120
    assert (family_of("both@C"), position_of("both@C")) == ("both", 2)
    assert (family_of("original"), position_of("original")) == ("original", None)
    assert (arms("cyclic", 3)[2].family, position_of("cyclic@2")) == ("cyclic", None)


def test_orders_by_hand() -> None:
    item = an_item(4, gold=1)
    assert option_order(item, Reordering("rotate", 1)) == (1, 2, 3, 0)
    assert option_order(item, Reordering("swap", 3)) == (0, 3, 2, 1)
    assert option_order(item, Reordering("swap", 1)) == (0, 1, 2, 3)
    assert option_order(item, Reordering("fixed", order=(3, 2, 1, 0))) == (3, 2, 1, 0)


@given(ITEMS, st.integers(0, 5))
def test_a_swap_moves_the_gold_and_the_option_there_only(item: Item, place: int) -> None:
    arranged = arrange(item, Reordering("swap", place))
    if place >= len(item.options):
        assert arranged is None
        return
    assert arranged is not None
    assert arranged.gold == place
    moved = [
        k for k, (a, b) in enumerate(zip(item.options, arranged.options, strict=True)) if a != b
    ]
    assert sorted(moved) == ([] if place == item.gold else sorted([place, item.gold]))  # type: ignore[list-item]


def left_out(requested: Iterable[Item], arm: Arm) -> int:
    return sum(option_order(item, arm.item) is None for item in requested)


def test_items_without_the_position_are_left_out() -> None:
    mixed = [an_item(4), an_item(3), an_item(5), replace(an_item(), gold="text", options=())]
    by_name = {arm.name: arm for arm in arms("attack", 4)}
    assert left_out(mixed, by_name["test@C"]) == 1
    assert left_out(mixed, by_name["test@D"]) == 2
    assert left_out(mixed, by_name["both@D"]) == 2
    assert left_out(mixed, by_name["shots@D"]) == 1  # the shots are moved, not these
    assert left_out(mixed, arms("cyclic", 4)[3]) == 2
    assert left_out(mixed, arms("full", 4)[1]) == 3
    assert left_out([an_item(2)] * 3, arms("4", 4)[2]) == 3  # two options have no third order


def test_shots_that_cannot_be_moved_are_left_out() -> None:
    pool = [an_item(4, 0, "a"), an_item(3, 0, "b"), an_item(5, 2, "c")]
    moved = [arrange(shot, Reordering("swap", 3)) for shot in pool]
    assert [shot and (shot.id, shot.gold) for shot in moved] == [("a", 3), None, ("c", 3)]


@settings(max_examples=30)
@given(st.text(max_size=8), st.integers(0, 5))
def test_drawn_orders_are_all_different_and_do_not_depend_on_how_many(name: str, seed: int) -> None:
    item = an_item(3, name=name)
    every = [option_order(item, arm.item) for arm in arms("6", 3, seed)]
    assert len(set(every)) == 6
    assert [option_order(item, arm.item) for arm in arms("3", 3, seed)] == every[:3]


def test_draws_depend_on_seed_and_item() -> None:
    move, other = arms("2", 5, seed=1)[1].item, arms("2", 5, seed=2)[1].item
    names = [f"item-{n}" for n in range(20)]
    orders = [option_order(an_item(5, name=name), move) for name in names]
    assert len(set(orders)) > 10
    assert orders != [option_order(an_item(5, name=name), other) for name in names]
    # Held fast: these orders are part of what a stored audit means.
    assert orders[:3] == GOLDEN


GOLDEN: list[tuple[int, ...]] = [(4, 3, 1, 2, 0), (2, 3, 4, 0, 1), (4, 1, 2, 0, 3)]


def test_letters_of_a_recorded_reasoning_follow_their_options() -> None:
    text = "A (a) is no letter; (C) is right, (B) is not, nor (J). The answer is (C)."
    shot = replace(an_item(4, gold=2), fields={"cot": text, "other": "(C)"})
    moved = arrange(shot, Reordering("swap", 0))
    assert moved is not None
    assert moved.fields == {
        "cot": "A (a) is no letter; (A) is right, (B) is not, nor (J). The answer is (A).",
        "other": "(C)",
    }


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("full", 6, "full permutations of 6 options are 720 arms; at most 5"),
        ("full", 10, "3,628,800 arms"),
        ("cylic", 4, "unknown permutations 'cylic'; did you mean 'cyclic'?"),
        ("", 4, "unknown permutations ''"),
        ("1", 4, "permutations: 1 of 4 options; write 2 to 24"),
        ("25", 4, "permutations: 25 of 4 options; write 2 to 24"),
        ("-3", 4, "unknown permutations '-3'"),
        ("cyclic", 1, "at least 2 options, not 1"),
    ],
)
def test_mistakes_are_reported_in_one_line(kind: str, options: int, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        arms(kind, options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_usual_options() -> None:
    assert usual_options([an_item(4), an_item(4), an_item(5)]) == 4
    assert usual_options([an_item(4), an_item(5)]) == 5
    with pytest.raises(ConfigError, match="no options"):
        usual_options([an_item(4), Item("x", "s", "?", "text")])
    with pytest.raises(ConfigError, match="no items"):
        usual_options([])
