"""Prompt formats of MMLU-Pro: the official script's, and lm-evaluation-harness's.

Sources: ``evaluate_from_local.py`` with ``cot_prompt_lib/initial_prompt.txt`` of
TIGER-AI-Lab/MMLU-Pro; the task files ``mmlu_pro/*`` of lm-evaluation-harness 0.4.13. They differ in
the line breaks after the header (four and one), in white space around options (kept, stripped) and
in the padding of the few-shot examples, which lm-eval shows as options ``N/A``.

A shot's answer is its recorded reasoning; the words it starts with stand in the question.
"""

from __future__ import annotations

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_choices
from pytest_llmeval.prompts.lettered import option_lines

PADDING = "N/A"
"""What fills the lists of options of the validation split up to ten."""

_START = "A: Let's think step by step. "


def _header(subject: str) -> str:
    about = subject.replace("_", " ")
    return (
        f"The following are multiple choice questions (with answers) about {about}. Think step by"
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
    shown = [*item.options, *[PADDING] * int(item.fields.get("padding", "0"))]
    options = "".join(
        f"{label}. {option.strip()}\n" for label, option in zip(LABELS[:10], shown, strict=False)
    )
    return f"Question:\n{item.question}\nOptions:\n{options}Answer: Let's think step by step."


def _reasoning(item: Item) -> str:
    return item.fields["cot"].replace(_START, "")


MMLU_PRO = Template(
    name="mmlu-pro",
    description=_official_description,
    question=_official_question,
    choices=no_choices,
    answer=_reasoning,
)

LMEVAL_MMLU_PRO = Template(
    name="lmeval-mmlu-pro",
    description=_lmeval_description,
    question=_lmeval_question,
    choices=no_choices,
    answer=_reasoning,
)
