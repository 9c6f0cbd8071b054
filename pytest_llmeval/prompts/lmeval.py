"""Prompt formats of lm-evaluation-harness 0.4.13.

Source: its task files ``tasks/mmlu/default/*.yaml``. All 57 subjects use one text; only the
subject's name differs. The question is stripped, the options are not.
"""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import labels
from pytest_llmeval.prompts.lettered import option_lines


def _description(subject: str) -> str:
    about = subject.replace("_", " ")
    return f"The following are multiple choice questions (with answers) about {about}.\n\n"


def _question(item: Item) -> str:
    return f"{item.question.strip()}{option_lines(item)}\nAnswer:"


LMEVAL_MMLU = Template(
    name="lmeval-mmlu", description=_description, question=_question, choices=labels
)
