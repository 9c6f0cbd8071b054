"""Formats of GSM8K, MGSM and MMLU-Pro: reasoning first, then the answer in a fixed sentence.

Prompts of lm-evaluation-harness are those of version 0.4.13, reproduced byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.multiple_choice import no_choices
from pytest_llmeval.prompts.multiple_choice import no_description
from pytest_llmeval.prompts.multiple_choice import option_lines


def _question(item: Item) -> str:
    return f"Question: {item.question}\nAnswer:"


def _q(item: Item) -> str:
    return f"Q: {item.question}\nA:"


def _q_step_by_step(item: Item) -> str:
    return f"{_q(item)} Let's think step by step."


def _reasoning(item: Item) -> str:
    """Return the complete solution, which ends with the answer in the wording of its source."""
    return item.fields["answer"]


LMEVAL_GSM8K = Template(
    name="lmeval-gsm8k",
    description=no_description,
    question=_question,
    choices=no_choices,
    answer=_reasoning,
)
"""The format of the task file ``gsm8k`` of lm-evaluation-harness.

A shot has the solution as in the data, with calculator marks and the final ``#### 18``.
"""

GSM8K_COT = Template(
    name="gsm8k-cot",
    description=no_description,
    question=_q,
    choices=no_choices,
    answer=_reasoning,
)
"""``Q:`` and ``A:``: the chain of thought of Wei et al. (2022) and of lm-eval's ``gsm8k_cot``."""

GSM8K_ZERO_SHOT = replace(GSM8K_COT, name="gsm8k-zero-shot", question=_q_step_by_step)
"""The format of lm-eval's ``gsm8k_cot_zeroshot``."""

_WEI = (
    (
        "There are 15 trees in the grove. Grove workers will plant trees in the grove today."
        " After they are done, there will be 21 trees. How many trees did the grove workers"
        " plant today?",
        "There are 15 trees originally. Then there were 21 trees after some more were planted."
        " So there must have been 21 - 15 = 6.",
        "6",
    ),
    (
        "If there are 3 cars in the parking lot and 2 more cars arrive, how many cars are in"
        " the parking lot?",
        "There are originally 3 cars. 2 more cars arrive. 3 + 2 = 5.",
        "5",
    ),
    (
        "Leah had 32 chocolates and her sister had 42. If they ate 35, how many pieces do they"
        " have left in total?",
        "Originally, Leah had 32 chocolates. Her sister had 42. So in total they had"
        " 32 + 42 = 74. After eating 35, they had 74 - 35 = 39.",
        "39",
    ),
    (
        "Jason had 20 lollipops. He gave Denny some lollipops. Now Jason has 12 lollipops. How"
        " many lollipops did Jason give to Denny?",
        "Jason started with 20 lollipops. Then he had 12 after giving some to Denny. So he gave"
        " Denny 20 - 12 = 8.",
        "8",
    ),
    (
        "Shawn has five toys. For Christmas, he got two toys each from his mom and dad. How"
        " many toys does he have now?",
        "Shawn started with 5 toys. If he got 2 toys each from his mom and dad, then that is 4"
        " more toys. 5 + 4 = 9.",
        "9",
    ),
    (
        "There were nine computers in the server room. Five more computers were installed each"
        " day, from monday to thursday. How many computers are now in the server room?",
        "There were originally 9 computers. For each of 4 days, 5 more computers were added."
        " So 5 * 4 = 20 computers were added. 9 + 20 is 29.",
        "29",
    ),
    (
        "Michael had 58 golf balls. On tuesday, he lost 23 golf balls. On wednesday, he lost 2"
        " more. How many golf balls did he have at the end of wednesday?",
        "Michael started with 58 golf balls. After losing 23 on tuesday, he had 58 - 23 = 35."
        " After losing 2 more, he had 35 - 2 = 33 golf balls.",
        "33",
    ),
    (
        "Olivia has $23. She bought five bagels for $3 each. How much money does she have left?",
        "Olivia had 23 dollars. 5 bagels for 3 dollars each will be 5 x 3 = 15 dollars. So she"
        " has 23 - 15 dollars left. 23 - 15 is 8.",
        "8",
    ),
)

COT_EXAMPLES = tuple(
    Item(
        id=f"wei-{number}",
        subject="gsm8k",
        question=question,
        gold=gold,
        fields={"answer": f"{reasoning} The answer is {gold}."},
    )
    for number, (question, reasoning, gold) in enumerate(_WEI, start=1)
)
"""The eight examples of Wei et al. (2022), in the order of the paper.

Source: table 20 of "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models".
"""


class MgsmWords(NamedTuple):
    """The labels of a question, of reasoning, and of a bare answer in one language."""

    question: str
    reasoning: str
    answer: str


MGSM_WORDS = {
    "bn": MgsmWords("প্রশ্ন:", "ধাপে ধাপে উত্তর:", "Answer:"),
    "de": MgsmWords("Frage:", "Schritt-für-Schritt-Antwort:", "Antwort:"),
    "en": MgsmWords("Question:", "Step-by-Step Answer:", "Answer:"),
    "es": MgsmWords("Pregunta:", "Respuesta paso a paso:", "Respuesta:"),
    "fr": MgsmWords("Question :", "Réponse étape par étape :", "Réponse :"),
    "ja": MgsmWords("問題：", "ステップごとの答え:", "Answer:"),
    "ru": MgsmWords("Задача:", "Пошаговоерешение:", "Answer:"),
    "sw": MgsmWords("Swali:", "Jibu la Hatua kwa Hatua:", "Answer:"),
    "te": MgsmWords("ప్రశ్న:", "దశలవారీగా సమాధానం:", "Answer:"),
    "th": MgsmWords("โจทย์:", "คำตอบทีละขั้นตอน:", "Answer:"),
    "zh": MgsmWords("问题：", "逐步解答:", "Answer:"),
}

"""Language → labels in the MGSM formats of lm-evaluation-harness.

Source: the task files ``mgsm/direct`` and ``mgsm/native_cot``. The direct format has ``Answer:``
for languages without a label of their own.
"""

MGSM_STOP = tuple(dict.fromkeys(words.question for words in MGSM_WORDS.values()))
"""Stop strings at another question; lm-eval uses only the label of the item's language."""


def _words(item: Item) -> MgsmWords:
    # The fingerprint of a template is computed from a probe item without a language. It gets the
    # labels of all languages, so that a change of any label changes the fingerprint.
    words = MGSM_WORDS.get(item.fields["language"])
    return words or MgsmWords(
        *(" ".join(column) for column in zip(*MGSM_WORDS.values(), strict=True))
    )


def _format(name: str, word: Callable[[MgsmWords], str], delimiter: str) -> Template:
    def question(item: Item) -> str:
        # An exemplar already begins with the label of the question.
        start = "" if "answer" in item.fields else f"{_words(item).question} "
        return f"{start}{item.question}\n{word(_words(item))}"

    return Template(
        name=name,
        description=no_description,
        question=question,
        choices=no_choices,
        answer=_mgsm_reasoning if word is _before_reasoning else None,
        delimiter=delimiter,
    )


def _before_reasoning(words: MgsmWords) -> str:
    return words.reasoning


def _before_answer(words: MgsmWords) -> str:
    return words.answer


def _mgsm_reasoning(item: Item) -> str:
    """Return an exemplar's reasoning without its label, cut by length as in lm-eval."""
    return item.fields["answer"][len(_words(item).reasoning) + 1 :]


MGSM_DIRECT = _format("lmeval-mgsm-direct", _before_answer, "")
"""The format of lm-eval's ``mgsm/direct``: question and label of the answer, in one language.

Shots are the exemplars of Shi et al. (2022), which include the labels.
"""

MGSM_NATIVE_COT = _format("lmeval-mgsm-native-cot", _before_reasoning, " ")
"""The format of lm-eval's ``mgsm/native_cot``, as ``MGSM_DIRECT`` but with reasoning."""


MMLU_PRO_PADDING = "N/A"
"""The padding of the lists of options in the validation split, up to ten options."""

_START = "A: Let's think step by step. "


def _header(subject: str) -> str:
    topic = subject.replace("_", " ")
    return (
        f"The following are multiple choice questions (with answers) about {topic}. Think step by"
        ' step and then finish your answer with "the answer is (X)" where X is the correct letter'
        " choice."
    )


def _official_description(subject: str) -> str:
    return f"{_header(subject)}\n\n\n\n"


def _lmeval_description(subject: str) -> str:
    return f"{_header(subject)}\n"


def _official_question(item: Item) -> str:
    options = option_lines(item)
    return f"Question:\n{item.question}\nOptions:{options}\nAnswer: Let's think step by step."


def _lmeval_question(item: Item) -> str:
    padded = [*item.options, *[MMLU_PRO_PADDING] * int(item.fields.get("padding", "0"))]
    options = "".join(
        f"{label}. {option.strip()}\n" for label, option in zip(LABELS[:10], padded, strict=False)
    )
    return f"Question:\n{item.question}\nOptions:\n{options}Answer: Let's think step by step."


def _mmlu_pro_reasoning(item: Item) -> str:
    # The question already contains the beginning of the reasoning.
    return item.fields["cot"].replace(_START, "")


MMLU_PRO = Template(
    name="mmlu-pro",
    description=_official_description,
    question=_official_question,
    choices=no_choices,
    answer=_mmlu_pro_reasoning,
)
"""The format of the official script; a shot's answer is its recorded reasoning.

Source: ``evaluate_from_local.py`` and ``cot_prompt_lib/initial_prompt.txt`` of
TIGER-AI-Lab/MMLU-Pro.
"""

LMEVAL_MMLU_PRO = Template(
    name="lmeval-mmlu-pro",
    description=_lmeval_description,
    question=_lmeval_question,
    choices=no_choices,
    answer=_mmlu_pro_reasoning,
)
"""The format of lm-eval's task files ``mmlu_pro/*``.

It differs from ``MMLU_PRO`` in the line breaks after the header (one instead of four), in white
space around options (stripped instead of kept) and in the padding of few-shot examples, which is
shown as options ``N/A``.
"""
