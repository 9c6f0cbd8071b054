"""Prompt formats of MGSM: a question and the word for "answer", in the language of the item.

Source: the task files ``mgsm/direct`` and ``mgsm/native_cot`` of lm-evaluation-harness 0.4.13,
whose prompts are reproduced byte for byte, with and without shots. Its direct format says
``Answer:`` where it has no word of the language. Shots are the exemplars of Shi et al. (2022),
which carry the words themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_choices
from pytest_llmeval.prompts.lettered import no_description


class Words(NamedTuple):
    """What stands before a question, before reasoning, and before a bare answer."""

    question: str
    reasoning: str
    answer: str


WORDS = {
    "bn": Words("প্রশ্ন:", "ধাপে ধাপে উত্তর:", "Answer:"),
    "de": Words("Frage:", "Schritt-für-Schritt-Antwort:", "Antwort:"),
    "en": Words("Question:", "Step-by-Step Answer:", "Answer:"),
    "es": Words("Pregunta:", "Respuesta paso a paso:", "Respuesta:"),
    "fr": Words("Question :", "Réponse étape par étape :", "Réponse :"),
    "ja": Words("問題：", "ステップごとの答え:", "Answer:"),
    "ru": Words("Задача:", "Пошаговоерешение:", "Answer:"),
    "sw": Words("Swali:", "Jibu la Hatua kwa Hatua:", "Answer:"),
    "te": Words("ప్రశ్న:", "దశలవారీగా సమాధానం:", "Answer:"),
    "th": Words("โจทย์:", "คำตอบทีละขั้นตอน:", "Answer:"),
    "zh": Words("问题：", "逐步解答:", "Answer:"),
}

STOP = tuple(dict.fromkeys(words.question for words in WORDS.values()))
"""Where a model goes on to another question. lm-eval stops at the word of the item's language."""


def _words(item: Item) -> Words:
    # A template is known by what it makes of a probe, an item of no language: it shows the words
    # of all, so that a change of any is another template.
    known = WORDS.get(item.fields["language"])
    return known or Words(*(" ".join(column) for column in zip(*WORDS.values(), strict=True)))


def _format(name: str, word: Callable[[Words], str], delimiter: str) -> Template:
    def question(item: Item) -> str:
        # An exemplar begins with the word for "question" already.
        start = "" if "answer" in item.fields else f"{_words(item).question} "
        return f"{start}{item.question}\n{word(_words(item))}"

    return Template(
        name=name,
        description=no_description,
        question=question,
        choices=no_choices,
        answer=_reasoning if word is _before_reasoning else None,
        delimiter=delimiter,
    )


def _before_reasoning(words: Words) -> str:
    return words.reasoning


def _before_answer(words: Words) -> str:
    return words.answer


def _reasoning(item: Item) -> str:
    """An exemplar's reasoning without the words that it begins with (cut by length, as there)."""
    return item.fields["answer"][len(_words(item).reasoning) + 1 :]


MGSM_DIRECT = _format("lmeval-mgsm-direct", _before_answer, "")
MGSM_NATIVE_COT = _format("lmeval-mgsm-native-cot", _before_reasoning, " ")
