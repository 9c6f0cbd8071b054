"""The prompt of the MMLU paper's own script (hendrycks/test, ``evaluate.py``).

The script puts a space before every word of the subject, so that two spaces stand between
"about" and the subject; it strips nothing. Scores published with it were measured on that text.
"""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import labels
from pytest_llmeval.prompts.lettered import option_lines


def _description(subject: str) -> str:
    about = "".join(f" {word}" for word in subject.split("_"))
    return f"The following are multiple choice questions (with answers) about {about}.\n\n"


def _question(item: Item) -> str:
    return f"{item.question}{option_lines(item)}\nAnswer:"


HENDRYCKS = Template(name="hendrycks", description=_description, question=_question, choices=labels)
