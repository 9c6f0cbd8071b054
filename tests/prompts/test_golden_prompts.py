"""Every published format against a prompt written down by hand, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Template
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.prompts import CLOZE
from pytest_llmeval.prompts import HENDRYCKS
from pytest_llmeval.prompts import LMEVAL_MMLU
from support.paths import GOLDEN_FILES

GOLDEN = GOLDEN_FILES
SUBJECT = "college_card_games"

POOL = (
    Item("s0", SUBJECT, "How many suits are there?", 2, ("Two", " Three", "Four", "None")),
    Item(
        "s1", SUBJECT, " Which card is red? \n(one of them)", 3, ("5", "4", "3", "Queen of hearts")
    ),
    Item("s2", SUBJECT, "Not among the first two", 0, ("a", "b", "c", "d")),
)
ITEM = Item("i", SUBJECT, "What is “trump”? ", 0, ("a suit ", "NA", "[a card]", "a rule"))


@pytest.mark.parametrize(
    ("template", "file"),
    [
        pytest.param(LMEVAL_MMLU, "lmeval_2shot.txt", id="lmeval"),
        pytest.param(HENDRYCKS, "hendrycks_2shot.txt", id="hendrycks"),
        pytest.param(CLOZE, "cloze_2shot.txt", id="cloze"),
    ],
)
def test_prompt_is_the_golden_one_byte_for_byte(template: Template, file: str) -> None:
    protocol = Protocol("p", template, scorer="letter", shots=2)
    expected = (GOLDEN / file).read_bytes()
    assert protocol.render(ITEM, POOL).text.encode() == expected


def test_letters_are_scored_with_the_space_before_them() -> None:
    # The context ends at "Answer:" and the space belongs to the continuation.
    protocol = Protocol("p", LMEVAL_MMLU, scorer="letter")
    request = protocol.request(Item("i", "s", "2+2?", 1, ("3", "4")), ())
    assert request.prompt.text.endswith("2+2?\nA. 3\nB. 4\nAnswer:")
    assert request.prompt.delimiter == " "
    assert request.choices == ("A", "B")


def test_cloze_compares_the_texts_of_the_options() -> None:
    request = Protocol("p", CLOZE, scorer="cloze").request(ITEM, ())
    assert request.choices == ITEM.options
    assert request.prompt.delimiter == " "


def test_letters_follow_the_number_of_options() -> None:
    item = replace(ITEM, options=tuple("uvwxyz"))
    assert LMEVAL_MMLU.choices(item) == ("A", "B", "C", "D", "E", "F")
    assert LMEVAL_MMLU.question(item).endswith("\nF. z\nAnswer:")


def test_square_brackets_in_options_are_kept() -> None:
    # Removing [...] as a citation mark made four options equal.
    options = (
        "ln(2) = [(T1 - T2)/(T1*T2)]",
        "ln(2) = [(T1 + T2)/(T1*T2)]",
        "[Fe/H] = 0.5",
        "cyclopenta[c]pyridine",
    )
    text = LMEVAL_MMLU.question(replace(ITEM, options=options))
    assert all(f". {option}\n" in text for option in options)


def test_the_formats_have_different_fingerprints() -> None:
    prints = {
        fingerprint(Protocol("p", template, scorer="letter", shots=5))
        for template in (LMEVAL_MMLU, HENDRYCKS, CLOZE)
    }
    assert len(prints) == 3


def test_the_item_and_its_copy_are_not_among_the_shots() -> None:
    # The item q3 is a copy of q0 under another id.
    pool = [Item(f"q{n}", "s", text, 0, ("x", "y")) for n, text in enumerate("abca")]
    drawn = Protocol("p", LMEVAL_MMLU, scorer="letter", shots=2).select_shots(pool[0], pool)
    assert [shot.id for shot in drawn] == ["q1", "q2"]
