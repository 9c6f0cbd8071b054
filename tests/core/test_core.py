"""Protocols render prompts; data sets have hashes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pytest_llmeval import Dataset
from pytest_llmeval import Decoding
from pytest_llmeval import Item
from pytest_llmeval import Protocol
from pytest_llmeval import Response
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.evaluation.fingerprint import fingerprint
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
    """Neither the item nor the same question under another id."""
    copies = [POOL[0], POOL[1], POOL[2], replace(POOL[0], id="q3")]
    assert [shot.id for shot in PROTOCOL.select_shots(POOL[0], copies)] == ["q1", "q2"]
    lenient = replace(PROTOCOL, allow_copies=True)
    assert [shot.id for shot in lenient.select_shots(POOL[0], copies)] == ["q0", "q1"]


def test_examples_of_its_own_take_the_place_of_the_pool():
    own = tuple(replace(ITEM, id=f"own{number}", question=f"Own {number}?") for number in (1, 2, 3))
    protocol = replace(PROTOCOL, examples=own)
    assert [shot.id for shot in protocol.select_shots(ITEM, POOL)] == ["own1", "own2"]
    assert [shot.id for shot in protocol.select_shots(own[0], ())] == ["own2", "own3"]
    assert replace(protocol, shots=0).select_shots(ITEM, POOL) == ()


LMEVAL = replace(PROTOCOL, draw="lmeval")
POOLS = {
    subject: tuple(replace(ITEM, id=f"{subject}{n}", question=f"{n}?") for n in range(100))
    for subject in "st"
}


def drawn(items, protocol=LMEVAL):
    """Item id → ids of its shots, under the protocol bound to these items."""
    bound = protocol.bound_to(Dataset(tuple(items), POOLS))
    return {
        item.id: [shot.id for shot in bound.select_shots(item, POOLS[item.subject])]
        for item in items
    }


def test_lmeval_draws_by_the_place_in_the_data_set():
    """Neither selection nor order of asking enter: the whole set is what a protocol is bound to."""
    items = [replace(ITEM, id=f"i{n}") for n in range(20)]
    bound = LMEVAL.bound_to(Dataset(tuple(items), POOLS))
    generator = random.Random(1234)
    for item in items:
        expected = [POOLS["s"][n] for n in generator.sample(range(100), 2)]
        assert list(bound.select_shots(item, POOLS["s"])) == expected
    again = {item.id: bound.select_shots(item, POOLS["s"]) for item in reversed(items[5:])}
    assert again["i7"] == bound.select_shots(items[7], POOLS["s"])


def test_lmeval_has_a_generator_for_every_subject():
    items = [
        replace(ITEM, id=f"{subject}-{n}", subject=subject) for n in (0, 1) for subject in "st"
    ]
    shots = drawn(items)
    for n in (0, 1):
        assert [name[1:] for name in shots[f"s-{n}"]] == [name[1:] for name in shots[f"t-{n}"]]
    assert shots["s-0"] != shots["s-1"]


def test_lmeval_takes_a_small_pool_whole():
    bound = replace(LMEVAL, shots=9).bound_to(Dataset((ITEM,), {"s": tuple(POOL)}))
    assert {shot.id for shot in bound.select_shots(ITEM, POOL)} == {"q0", "q1", "q2", "q3"}


def test_lmeval_shots_of_an_item_that_has_no_place_are_refused():
    with pytest.raises(ConfigError, match=r"'p' selects 2 shots by the item's place.* with 'q0'"):
        LMEVAL.select_shots(ITEM, POOL)
    other = LMEVAL.bound_to(Dataset((replace(ITEM, id="other"),), POOLS))
    # What was drawn for another number of shots is not a part of what this one draws.
    changed = replace(LMEVAL.bound_to(Dataset((ITEM,), POOLS)), shots=3)
    for protocol in (other, changed):
        with pytest.raises(ConfigError, match="not bound to a data set with 'q0'"):
            protocol.select_shots(ITEM, POOLS["s"])
    assert replace(LMEVAL, shots=0).select_shots(ITEM, POOL) == ()


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


def test_shots_may_be_text_in_a_chat():
    protocol = replace(PROTOCOL.with_chat(), shots_as_text=True)
    prompt = protocol.render(ITEM, POOL)
    plain = PROTOCOL.render(ITEM, POOL)
    system, user = prompt.messages()
    assert system == {"role": "system", "content": plain.description.rstrip()}
    assert user == {"role": "user", "content": plain.text.removeprefix(plain.description)}
    # The letter that is compared stands alone in the turn; in the shots it does not.
    assert prompt.delimiter == ""
    assert prompt.without_last_shot().messages()[1]["content"].count("Answer: B") == 1
    started = replace(protocol, prefix="The answer is").render(ITEM, POOL)
    assert started.messages() == prompt.messages()
    assert started.text == f"{plain.text} The answer is"


def test_warnings_about_the_data_are_not_the_data():
    dataset = Dataset((ITEM,), warnings=("q0: doubtful",))
    assert dataset.content_hash() == Dataset((ITEM,)).content_hash()


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
        ((replace(ITEM, gold=0, options=("x",)),), "one option; at least two were expected"),
        ((replace(ITEM, subject="s" * 201),), "has 201 characters; a subject's name has 200"),
        ((replace(ITEM, subject="s\ud800"),), "'s.ud800' holds half of a surrogate pair"),
    ],
)
def test_bad_data_is_refused(items, message):
    with pytest.raises(DataError, match=message):
        check_dataset("bench", Dataset(items))


def test_lone_surrogates_are_mended_at_the_border():
    assert Response("q", text="ok \ud83d").text == "ok ?"
    assert Response("q", text="ok 😀 é").text == "ok 😀 é"


def test_a_chat_may_have_its_shots_as_text():
    turns, text = PROTOCOL.with_chat(), PROTOCOL.with_chat(shots_as_text=True)
    assert (turns.name, text.name) == ("p+chat", "p+chat-text")
    messages = text.render(ITEM, POOL).messages()
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"].count("Answer:") == 3  # two shots, and the question
    assert len(turns.render(ITEM, POOL).messages()) == 6
    assert fingerprint(turns) != fingerprint(text)


def test_lmeval_draws_one_more_where_a_task_has_no_test_split():
    """As many are shown; what the next item gets shows that one more was drawn."""
    items = [replace(ITEM, id=f"i{n}") for n in range(3)]
    generator = random.Random(1234)
    expected = {item.id: [f"s{n}" for n in generator.sample(range(100), 3)[:2]] for item in items}
    spare = replace(LMEVAL, draw="lmeval_spare")
    assert drawn(items, spare) == expected
    plain = drawn(items)
    assert plain["i0"] == expected["i0"]
    assert plain["i1"] != expected["i1"]


def test_text_added_to_the_question_precedes_each_choice():
    template = replace(
        LMEVAL_MMLU,
        question=lambda item: "The ",
        choices=lambda item: ("sat.", "sat."),
        given=lambda item: ("cat", "mat"),
    )
    protocol = Protocol("p", template, scorer="likelihood", shots=1)
    request = protocol.request(ITEM, [replace(ITEM, id="s", question="S")])
    assert [prompt.question for prompt in request.prompts] == ["The cat", "The mat"]
    # A shot shows the right one.
    assert request.prompt.shots == (("The mat", "sat."),)
    assert [prompt.shots for prompt in request.prompts] == [request.prompt.shots] * 2
    text = replace(protocol, ask="text").request(ITEM, ())
    assert (text.given, text.choices, text.prompts) == ((), (), ())


def test_without_such_texts_every_choice_has_the_same_prompt():
    request = PROTOCOL.request(ITEM, POOL)
    assert request.given == ()
    assert request.prompts == (request.prompt, request.prompt)


def test_every_choice_has_a_text_of_its_own_or_none_has():
    with pytest.raises(ValueError, match="given has 1 texts for 2 choices"):
        replace(PROTOCOL.request(ITEM, POOL), given=("x",))


@pytest.mark.parametrize("wrong", [{"top_p": 1.5}, {"min_p": -0.1}, {"max_tokens": 0}])
def test_decoding_that_cannot_be_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=rf"^decoding: {name} = "):
        Decoding(**wrong)
