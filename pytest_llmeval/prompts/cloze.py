"""The cloze format: the options are not shown, the likelihood of each option's text is compared.

Source: the format of ARC in the GPT-3 paper and in lm-evaluation-harness. A small model that
cannot yet use letters can be measured with it.
"""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_description
from pytest_llmeval.prompts.lettered import whole_options


def _question(item: Item) -> str:
    return f"Question: {item.question}\nAnswer:"


CLOZE = Template(
    name="cloze", description=no_description, question=_question, choices=whole_options
)
