"""Formats for compared choices against prompts made by the published code, byte for byte.

The files were written by lm-evaluation-harness 0.4.13 from rows with these texts.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Template
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.prompts import CLOZE
from pytest_llmeval.prompts import INCLUDE
from pytest_llmeval.prompts import LMEVAL_CMMLU
from pytest_llmeval.prompts import LMEVAL_COMMONSENSEQA
from pytest_llmeval.prompts import LMEVAL_HELLASWAG
from pytest_llmeval.prompts import LMEVAL_INCLUDE
from pytest_llmeval.prompts import LMEVAL_TRUTHFULQA
from pytest_llmeval.prompts import LMEVAL_WINOGRANDE
from pytest_llmeval.prompts.continuations import clean
from pytest_llmeval.prompts.continuations import context
from support.paths import GOLDEN_FILES

GOLDEN = GOLDEN_FILES
LETTERS = ("A", "B", "C", "D")

RED = " Which card is red?\n(one of them) "
TRUMP = Item("i", "cards", "What is “trump”? ", 0, ("a suit ", "NA", "[a card]", "a rule"))
LAST = Item("s", "cards", RED, 2, ("5", "four ", "Queen of hearts"))
FIVE = replace(TRUMP, options=(*TRUMP.options, " a game"))
FIVE_SHOT = replace(LAST, options=("5", "four ", "3", "2", "Queen of hearts"), gold=4)
DEALING = Item(
    "s",
    "hellaswag",
    context("Playing cards", "[header] How to deal [title] Take the pack.", ""),
    0,
    tuple(map(clean, ("Shuffle  it. [step] Deal.", "Eat it.", "b", "c"))),
)
BOWING = Item(
    "i",
    "hellaswag",
    context("Playing cards", " Ann holds the ace.", "the King of NASA"),
    1,
    tuple(map(clean, ("bows [title] and leaves. ", "wins", "loses [substeps] all", "sleeps"))),
)
DEALT = Item("s", "winogrande", "Ann dealt to Bo because _ had the pack.", 0, ("Ann", "Bo"))
ACE = Item(
    "i",
    "winogrande",
    "The ace did not fit on the table because the _ was  too large .",
    1,
    ("ace", "the table"),
)
CHINESE = Item("i", "logical", "一副牌有多少张？", 0, ("52 ", "40", "32", "60"))
CHINESE_SHOT = Item("s", "logical", " 哪张牌是红的？ ", 1, ("黑桃", " 红心", "梅花", "无"))
ALBANIAN = Item(
    "i",
    "Albanian",
    " What is “trump”? ",
    0,
    ("a suit ", "NA", " [a card]", "a rule"),
    {"domain": "STEM"},
)


@pytest.mark.parametrize(
    ("template", "item", "pool", "file", "choices"),
    [
        (CLOZE, TRUMP, (LAST,), "arc_lmeval_1shot.txt", TRUMP.options),
        (
            LMEVAL_COMMONSENSEQA,
            FIVE,
            (FIVE_SHOT,),
            "commonsenseqa_lmeval_1shot.txt",
            (*LETTERS, "E"),
        ),
        (
            LMEVAL_HELLASWAG,
            BOWING,
            (DEALING,),
            "hellaswag_lmeval_1shot.txt",
            ("bows. and leaves.", "wins", "loses all", "sleeps"),
        ),
        (
            LMEVAL_WINOGRANDE,
            ACE,
            (DEALT,),
            "winogrande_lmeval_1shot.txt",
            ("was  too large .",) * 2,
        ),
        (LMEVAL_TRUTHFULQA, TRUMP, (), "truthfulqa_lmeval.txt", TRUMP.options),
        (LMEVAL_CMMLU, CHINESE, (CHINESE_SHOT,), "cmmlu_lmeval_1shot.txt", LETTERS),
        (LMEVAL_INCLUDE, ALBANIAN, (), "include_lmeval.txt", LETTERS),
    ],
    ids=lambda value: value.name if isinstance(value, Template) else "",
)
def test_prompt_is_the_golden_one_byte_for_byte(
    template: Template, item: Item, pool: tuple[Item, ...], file: str, choices: tuple[str, ...]
) -> None:
    request = Protocol("p", template, scorer="letter", shots=len(pool)).request(item, pool)
    # Where every choice has a context of its own, the file has one after the other.
    texts = dict.fromkeys(prompt.text for prompt in request.prompts)
    assert "\n=====\n".join(texts).encode() == (GOLDEN / file).read_bytes()
    assert request.choices == choices
    assert request.prompt.delimiter == " "


def test_the_clean_format_of_include_has_neither_slip() -> None:
    protocol = Protocol("p", INCLUDE, scorer="letter", shots=1)
    shot = replace(ALBANIAN, id="s", question="Who deals?", gold=3, subject="North_Macedonian")
    item = replace(ALBANIAN, subject="North_Macedonian")
    assert protocol.render(item, (shot,)).text == (
        "The following are multiple choice questions (with answers) in North Macedonian.\n\n"
        "Who deals?\nA. a suit \nB. NA\nC.  [a card]\nD. a rule\nAnswer: D\n\n"
        "What is “trump”?\nA. a suit \nB. NA\nC.  [a card]\nD. a rule\nAnswer:"
    )


def test_one_file_of_lm_eval_writes_a_domain_otherwise() -> None:
    item = replace(ALBANIAN, fields={"domain": "Driving License"})
    assert "about Driving License.What" in LMEVAL_INCLUDE.question(item)
    hebrew = replace(item, subject="Hebrew")
    assert "about Driving license.What" in LMEVAL_INCLUDE.question(hebrew)


def test_letters_follow_the_number_of_options() -> None:
    assert LMEVAL_COMMONSENSEQA.choices(LAST) == ("A", "B", "C")
    assert LMEVAL_COMMONSENSEQA.question(LAST).endswith("\nC. Queen of hearts\nAnswer:")


def test_a_blank_is_filled_in_the_question_of_a_chat_and_of_a_shot() -> None:
    protocol = Protocol("p", LMEVAL_WINOGRANDE, scorer="likelihood", shots=1).with_chat()
    request = protocol.request(ACE, (DEALT,))
    assert [prompt.messages()[-1]["content"] for prompt in request.prompts] == [
        "The ace did not fit on the table because the ace",
        "The ace did not fit on the table because the the table",
    ]
    assert request.prompts[1].messages()[:2] == [
        {"role": "user", "content": "Ann dealt to Bo because Ann"},
        {"role": "assistant", "content": "had the pack."},
    ]


def test_the_formats_have_different_fingerprints() -> None:
    templates = (
        CLOZE,
        INCLUDE,
        LMEVAL_CMMLU,
        LMEVAL_COMMONSENSEQA,
        LMEVAL_HELLASWAG,
        LMEVAL_INCLUDE,
        LMEVAL_TRUTHFULQA,
        LMEVAL_WINOGRANDE,
        # What a choice adds to the question is part of the format.
        replace(LMEVAL_WINOGRANDE, given=None),
        replace(LMEVAL_WINOGRANDE, given=lambda item: item.options[::-1]),
    )
    prints = {fingerprint(Protocol("p", template, scorer="letter")) for template in templates}
    assert len(prints) == len(templates)
