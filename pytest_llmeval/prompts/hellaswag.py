"""HellaSwag as lm-evaluation-harness asks it: which ending is likeliest after the context.

Source: ``tasks/hellaswag`` of lm-evaluation-harness 0.4.13. The data's own text is not what is
asked: activity and context are joined, and marks that WikiHow left behind are taken out of
contexts and endings. Items hold the cleaned texts, so that lengths are those of what is scored.
"""

from __future__ import annotations

import re

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_description
from pytest_llmeval.prompts.lettered import whole_options

_MARK = re.compile(r"\[.*?\]")


def context(activity: str, first: str, second: str) -> str:
    """What the ending follows: the activity, the context's full sentences, and its begun one.

    The begun sentence gets a capital and loses all others, as there ("a man in NASA" becomes
    "A man in nasa").
    """
    return clean(f"{activity}: {first} {second.capitalize()}")


def clean(text: str) -> str:
    """A text without WikiHow's marks; two spaces in a row become one, in a single pass."""
    text = _MARK.sub("", text.strip().replace(" [title]", ". "))
    return text.replace("  ", " ")


def _question(item: Item) -> str:
    return item.question


LMEVAL_HELLASWAG = Template(
    name="lmeval-hellaswag", description=no_description, question=_question, choices=whole_options
)
