"""Uniform labels and their lettered counterpart, written down by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.bias.arms import arms
from pytest_llmeval.bias.arms import arrange
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Template
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.prompts.uniform_labels import DASHED
from pytest_llmeval.prompts.uniform_labels import DASHED_COT
from pytest_llmeval.prompts.uniform_labels import LETTERED
from pytest_llmeval.prompts.uniform_labels import LETTERED_COT
from pytest_llmeval.prompts.uniform_labels import dashed
from pytest_llmeval.prompts.uniform_labels import randomly_labelled

COT = "A: Let's think step by step. Water boils at sea level, so (B) is right. The answer is (B)."
SHOT = Item("s", "high_school_physics", "Boils at?", 1, ("0°C", "100°C", "50°C."), {"cot": COT})
PLAIN = Item("t", "high_school_physics", "Freezes at?", 0, ("0°C.", "100°C"))
ITEM = Item("i", "high_school_physics", "Melts at?", 2, ("-1°C", "3 or 4", "0°C"))

HEADER = (
    "The following are multiple choice questions (with answers) about high school physics."
    " {how} your answer with {what}.\n\n"
)
TEXT = (
    '"the answer is $OPTION" where $OPTION is the correct option, repeated exactly as it is written'
)
LETTER = '"the answer is (X)" where X is the correct letter choice'
STEPS = "Think step by step and then finish"


def shown(template: Template, *shots: Item) -> str:
    return Protocol("p", template, scorer="choice", shots=len(shots)).render(ITEM, shots).text


def test_dashed_with_reasoning() -> None:
    assert shown(DASHED_COT, SHOT) == HEADER.format(how=STEPS, what=TEXT) + (
        "Question:\nBoils at?\nOptions:\n- 0°C\n- 100°C\n- 50°C.\n"
        "Answer: Let's think step by step."
        ' Water boils at sea level, so "100°C" is right. The answer is 100°C.\n\n'
        "Question:\nMelts at?\nOptions:\n- -1°C\n- 3 or 4\n- 0°C\n"
        "Answer: Let's think step by step."
    )


def test_lettered_with_reasoning_differs_in_three_things() -> None:
    assert shown(LETTERED_COT, SHOT) == HEADER.format(how=STEPS, what=LETTER) + (
        "Question:\nBoils at?\nOptions:\nA. 0°C\nB. 100°C\nC. 50°C.\n"
        "Answer: Let's think step by step."
        " Water boils at sea level, so (B) is right. The answer is (B).\n\n"
        "Question:\nMelts at?\nOptions:\nA. -1°C\nB. 3 or 4\nC. 0°C\n"
        "Answer: Let's think step by step."
    )


def test_without_reasoning() -> None:
    assert shown(DASHED, SHOT, PLAIN) == HEADER.format(how="Finish", what=TEXT) + (
        "Question:\nBoils at?\nOptions:\n- 0°C\n- 100°C\n- 50°C.\nAnswer: The answer is 100°C.\n\n"
        "Question:\nFreezes at?\nOptions:\n- 0°C.\n- 100°C\nAnswer: The answer is 0°C.\n\n"
        "Question:\nMelts at?\nOptions:\n- -1°C\n- 3 or 4\n- 0°C\nAnswer:"
    )
    assert shown(LETTERED, PLAIN).endswith(
        "A. 0°C.\nB. 100°C\nAnswer: The answer is (A).\n\n"
        "Question:\nMelts at?\nOptions:\nA. -1°C\nB. 3 or 4\nC. 0°C\nAnswer:"
    )


def test_a_shot_without_recorded_reasoning_states_its_answer() -> None:
    assert "step by step. The answer is 0°C.\n\nQuestion" in shown(DASHED_COT, PLAIN)


def test_any_symbol() -> None:
    assert "Options:\n* -1°C\n* 3 or 4\n* 0°C\n" in shown(dashed("*"))
    names = {dashed("*").name, dashed("X").name, DASHED.name, DASHED_COT.name, LETTERED.name}
    assert len(names) == 5
    for blank in ("", " "):
        with pytest.raises(ValueError, match="must not be blank"):
            dashed(blank)


def test_random_labels_are_the_items_own() -> None:
    template = randomly_labelled(reasoning=False)
    lines = template.question(ITEM).split("\n")[3:6]
    labels = [line.split(". ")[0] for line in lines]
    assert len(set(labels)) == 3
    assert [line.split(". ", 1)[1] for line in lines] == list(ITEM.options)
    others = {template.question(replace(ITEM, id=f"i{n}")) for n in range(10)}
    assert len(others) == 10
    assert template.question(ITEM) == randomly_labelled(reasoning=False).question(ITEM)
    assert template.question(ITEM) != randomly_labelled(reasoning=False, seed=1).question(ITEM)


def test_moved_shots_state_the_moved_answer() -> None:
    both = next(arm for arm in arms("attack", 3) if arm.name == "both@A")
    shot, item = arrange(SHOT, both.shots), arrange(ITEM, both.item)
    assert shot is not None
    assert item is not None
    lettered = Protocol("p", LETTERED_COT, scorer="choice", shots=1).render(item, [shot]).text
    assert "A. 100°C\nB. 0°C\nC. 50°C." in lettered
    assert "so (A) is right. The answer is (A).\n\n" in lettered
    matched = Protocol("p", DASHED_COT, scorer="choice", shots=1).render(item, [shot]).text
    assert 'so "100°C" is right. The answer is 100°C.\n\n' in matched


def test_every_template_has_a_fingerprint_of_its_own() -> None:
    templates = [DASHED, DASHED_COT, LETTERED, LETTERED_COT, dashed("*"), randomly_labelled()]
    prints = {
        fingerprint(Protocol("p", template, scorer="choice", ask="text")) for template in templates
    }
    assert len(prints) == len(templates)
