"""Uniform labels: every option has the same mark, and the answer is the option's whole text.

Source: Nowak et al. 2026 (arXiv:2602.17445), whose "Matched-and-Dashed" prompt differs from
MMLU-Pro's in three ways: each letter is one and the same dash, the instruction asks for the option
repeated as it stands, and so do the shots. The words of the instruction are ours; the rest of the
layout is MMLU-Pro's. ``lettered`` is its counterpart: the same but for letters.

With ``reasoning`` the model is asked to think first, and a shot shows the reasoning that its
benchmark recorded (``cot``), if any; without it the answer comes at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Sequence

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.core.seeded_random import Draws
from pytest_llmeval.prompts.multiple_choice import no_choices

Marks = Callable[[Item], Sequence[str]]

_STEPS = "Let's think step by step."
_OPENING = re.compile(r"^A: Let's think step by step\.\s*")
_STATEMENT = re.compile(r"\s*(?:[Tt]he )?answer is \(?[A-Z]\)?\.?\s*$", re.IGNORECASE)
_BRACKETED = re.compile(r"\(([A-Z])\)")


def dashed(symbol: str = "-", *, reasoning: bool = True) -> Template:
    """Options after the same ``symbol``, which must not be empty; the answer is a text."""
    if not symbol.strip():
        raise ValueError("the symbol before options must not be blank")
    name = "dashed" if symbol == "-" else f"dashed-{symbol}"
    return _of_texts(name, lambda item: [symbol] * len(item.options), reasoning)


def randomly_labelled(*, reasoning: bool = True, seed: int = 0) -> Template:
    """Different letters drawn for every item, which say nothing; the answer is a text."""

    def marks(item: Item) -> list[str]:
        drawn = Draws("labels", seed, item.id).some_of(LABELS, len(item.options))
        return [f"{label}." for label in drawn]

    return _of_texts("random-labels", marks, reasoning)


def lettered(*, reasoning: bool = True) -> Template:
    """The counterpart: options after A., B., C. …; the answer is a letter."""

    def letters(item: Item) -> list[str]:
        return [f"{label}." for label in LABELS[: len(item.options)]]

    return Template(
        name=_named("lettered", reasoning),
        description=_header('"the answer is (X)" where X is the correct letter choice', reasoning),
        question=_question(letters, reasoning),
        choices=no_choices,
        answer=_shot(lambda item: f"({item.gold_label})", lambda text, _item: text, reasoning),
    )


def _of_texts(name: str, marks: Marks, reasoning: bool) -> Template:
    return Template(
        name=_named(name, reasoning),
        description=_header(
            '"the answer is $OPTION" where $OPTION is the correct option, repeated exactly as it'
            " is written",
            reasoning,
        ),
        question=_question(marks, reasoning),
        choices=no_choices,
        answer=_shot(lambda item: item.gold_text, _without_letters, reasoning),
    )


def _named(name: str, reasoning: bool) -> str:
    return f"{name}-cot" if reasoning else name


def _header(ending: str, reasoning: bool) -> Callable[[str], str]:
    how = "Think step by step and then finish" if reasoning else "Finish"

    def header(subject: str) -> str:
        about = subject.replace("_", " ")
        return (
            f"The following are multiple choice questions (with answers) about {about}."
            f" {how} your answer with {ending}.\n\n"
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
        said = gold(item)
        statement = f"The answer is {said}" + ("" if said.endswith((".", "!", "?")) else ".")
        recorded = item.fields.get("cot", "") if reasoning else ""
        thought = _STATEMENT.sub("", _OPENING.sub("", recorded)).strip()
        return f"{rewrite(thought, item)} {statement}" if thought else statement

    return answer


def _without_letters(text: str, item: Item) -> str:
    """Letters in brackets as the text of their options, since no letters are shown."""

    def option(match: re.Match[str]) -> str:
        index = LABELS.index(match[1])
        return f'"{item.options[index]}"' if index < len(item.options) else match[0]

    return _BRACKETED.sub(option, text)


DASHED_COT = dashed()
DASHED = dashed(reasoning=False)
LETTERED_COT = lettered()
LETTERED = lettered(reasoning=False)
