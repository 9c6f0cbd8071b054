"""Formats with uniform labels: every option has the same label, and the answer is its whole text.

Source: Nowak et al. 2026 (arXiv:2602.17445), whose "Matched-and-Dashed" prompt differs from that of
MMLU-Pro in three points: all letters are replaced by a dash, the instruction requests a literal
copy of the option, and the shots answer with one. The wording of the instruction is ours; the rest
of the layout is MMLU-Pro's. ``lettered`` is the same format with letters.

With ``reasoning`` the prompt requests reasoning before the answer, and a shot has the reasoning
that its benchmark recorded (``cot``), if any.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Sequence

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.core import option_labels
from pytest_llmeval.core.seeded_random import SeededRandom
from pytest_llmeval.prompts.multiple_choice import no_choices

Marks = Callable[[Item], Sequence[str]]

_STEPS = "Let's think step by step."
_OPENING = re.compile(r"^A: Let's think step by step\.\s*")
_STATEMENT = re.compile(r"\s*(?:[Tt]he )?answer is \(?[A-Z]\)?\.?\s*$", re.IGNORECASE)
_BRACKETED = re.compile(r"\(([A-Z])\)")


def dashed(symbol: str = "-", *, reasoning: bool = True) -> Template:
    """Return a template with ``symbol`` before every option; the answer is a text.

    Raises ValueError for a blank symbol.
    """
    if not symbol.strip():
        raise ValueError("the symbol before options must not be blank")
    name = "dashed" if symbol == "-" else f"dashed-{symbol}"
    return _text_answer_template(name, lambda item: [symbol] * len(item.options), reasoning)


def randomly_labelled(*, reasoning: bool = True, seed: int = 0) -> Template:
    """Return a template with random letters before the options; the answer is a text.

    The letters of an item are distinct, and a pure function of ``seed`` and the item's id.
    """

    def marks(item: Item) -> list[str]:
        sample = SeededRandom("labels", seed, item.id).sample(LABELS, len(item.options))
        return [f"{label}." for label in sample]

    return _text_answer_template("random-labels", marks, reasoning)


def lettered(*, reasoning: bool = True) -> Template:
    """Return a template with A., B., C. … before the options; the answer is a letter."""

    def letters(item: Item) -> list[str]:
        return [f"{label}." for label in option_labels(len(item.options))]

    return Template(
        name=_template_name("lettered", reasoning),
        description=_header('"the answer is (X)" where X is the correct letter choice', reasoning),
        question=_question(letters, reasoning),
        choices=no_choices,
        answer=_shot(lambda item: f"({item.gold_label})", lambda text, _item: text, reasoning),
    )


def _text_answer_template(name: str, marks: Marks, reasoning: bool) -> Template:
    return Template(
        name=_template_name(name, reasoning),
        description=_header(
            '"the answer is $OPTION" where $OPTION is the correct option, repeated exactly as it'
            " is written",
            reasoning,
        ),
        question=_question(marks, reasoning),
        choices=no_choices,
        answer=_shot(lambda item: item.gold_text, _without_letters, reasoning),
    )


def _template_name(name: str, reasoning: bool) -> str:
    return f"{name}-cot" if reasoning else name


def _header(ending: str, reasoning: bool) -> Callable[[str], str]:
    request = "Think step by step and then finish" if reasoning else "Finish"

    def header(subject: str) -> str:
        topic = subject.replace("_", " ")
        return (
            f"The following are multiple choice questions (with answers) about {topic}."
            f" {request} your answer with {ending}.\n\n"
        )

    return header


def _question(marks: Marks, reasoning: bool) -> Callable[[Item], str]:
    start = f"Answer: {_STEPS}" if reasoning else "Answer:"

    def question(item: Item) -> str:
        options = "".join(
            f"{mark} {option}\n" for mark, option in zip(marks(item), item.options, strict=True)
        )
        return f"Question:\n{item.question}\nOptions:\n{options}{start}"

    return question


def _shot(
    gold: Callable[[Item], str], rewrite: Callable[[str, Item], str], reasoning: bool
) -> Callable[[Item], str]:
    def answer(item: Item) -> str:
        gold_text = gold(item)
        full_stop = "" if gold_text.endswith((".", "!", "?")) else "."
        statement = f"The answer is {gold_text}{full_stop}"
        recorded = item.fields.get("cot", "") if reasoning else ""
        thought = _STATEMENT.sub("", _OPENING.sub("", recorded)).strip()
        return f"{rewrite(thought, item)} {statement}" if thought else statement

    return answer


def _without_letters(text: str, item: Item) -> str:
    """Replace letters in brackets by the texts of their options, as the prompt has no letters."""

    def option(match: re.Match[str]) -> str:
        index = LABELS.index(match[1])
        return f'"{item.options[index]}"' if index < len(item.options) else match[0]

    return _BRACKETED.sub(option, text)


DASHED_COT = dashed()
DASHED = dashed(reasoning=False)
LETTERED_COT = lettered()
LETTERED = lettered(reasoning=False)
