"""Protocols render prompts; data sets have hashes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval import Dataset
from pytest_llmeval import Item
from pytest_llmeval import Protocol
from pytest_llmeval import Response
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.prompts import LMEVAL_MMLU

PROTOCOL = Protocol("p", LMEVAL_MMLU, scorer="letter", shots=2)
ITEM = Item("q0", "s", "What?", 1, ("x", "y"))
POOL = [replace(ITEM, id=f"q{number}", question=f"What {number}?") for number in range(4)]


def test_a_generated_letter_is_another_protocol():
    generated = PROTOCOL.with_generation()
    assert (generated.scorer, generated.name) == ("choice", "p+generate")
    assert generated.with_generation() is generated
    assert generated.render(ITEM, POOL) == PROTOCOL.render(ITEM, POOL)


def test_shots_leave_out_the_item_and_copies_of_it():
    """Case f09: neither the item nor the same question under another id."""
    copies = [POOL[0], POOL[1], POOL[2], replace(POOL[0], id="q3")]
    assert [shot.id for shot in PROTOCOL.draw_shots(POOL[0], copies)] == ["q1", "q2"]
    lenient = replace(PROTOCOL, allow_copies=True)
    assert [shot.id for shot in lenient.draw_shots(POOL[0], copies)] == ["q0", "q1"]


def test_a_prompt_drops_whole_shots_from_the_end():
    prompt = PROTOCOL.render(ITEM, POOL)
    assert len(prompt.shots) == 2
    shorter = prompt.without_last_shot()
    assert shorter.shots == prompt.shots[:1]
    assert shorter == replace(PROTOCOL, shots=1).render(ITEM, POOL)


def test_a_chat_has_a_turn_for_every_shot():
    messages = PROTOCOL.with_chat().render(ITEM, POOL).messages()
    assert [message["role"] for message in messages] == [
        "system",
        *("user", "assistant") * 2,
        "user",
    ]
    assert messages[2]["content"] == "B"  # no delimiter: the turn separates


def test_content_hash_covers_items_and_pool():
    dataset = Dataset((ITEM,), {"s": tuple(POOL)})
    assert dataset.content_hash() == Dataset((ITEM,), {"s": tuple(POOL)}).content_hash()
    assert dataset.content_hash() != Dataset((ITEM,)).content_hash()
    for change in ({"gold": 0}, {"options": ("x", "z")}, {"question": "Why?"}, {"id": "q9"}):
        changed = Dataset((replace(ITEM, **change),), {"s": tuple(POOL)})
        assert changed.content_hash() != dataset.content_hash()


def test_chance_is_the_mean_over_items_of_one_in_k():
    four = replace(ITEM, id="q1", options=("a", "b", "c", "d"))
    assert Dataset((ITEM, four)).chance() == (1 / 2 + 1 / 4) / 2
    assert Dataset((ITEM, Item("t", "s", "?", "text"))).chance() is None


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ((), "has no items"),
        ((ITEM, ITEM), "'q0' occurs twice"),
        ((replace(ITEM, gold=2),), "gold 2 is outside its 2 options"),
        ((replace(ITEM, gold=-1),), "gold -1 is outside"),
        ((replace(ITEM, id="a::b"),), "item id 'a::b' is not 1 to 100"),
        ((replace(ITEM, options=("x",) * 27),), "27 options"),
        ((replace(ITEM, gold=0, options=("x",)),), "1 options; 2 to 26 can be labelled"),
    ],
)
def test_bad_data_is_refused(items, message):
    with pytest.raises(DataError, match=message):
        check_dataset("bench", Dataset(items))


def test_lone_surrogates_are_mended_at_the_border():
    """Case g16."""
    assert Response("q", text="ok \ud83d").text == "ok ?"
    assert Response("q", text="ok 😀 é").text == "ok 😀 é"
