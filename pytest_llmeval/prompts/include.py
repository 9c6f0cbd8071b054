"""INCLUDE: our own lettered format, and lm-evaluation-harness's with its two slips.

Source of the second: the task files ``tasks/include/default`` of lm-evaluation-harness 0.4.13. In
all of them a folded line of YAML leaves a space before ``D.``, and the description has no line
break, so that the question is glued to it. The words differ with the domain, which is a field of
the item here, so the description is part of the question (in a chat lm-eval sends it as system
message). Its few-shot variants are not reproduced: they take shots from the scored split.
"""

from __future__ import annotations

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import labels
from pytest_llmeval.prompts.lettered import no_description
from pytest_llmeval.prompts.lettered import option_lines


def _description(subject: str) -> str:
    language = subject.replace("_", " ")
    return f"The following are multiple choice questions (with answers) in {language}.\n\n"


def _question(item: Item) -> str:
    return f"{item.question.strip()}{option_lines(item)}\nAnswer:"


def _lmeval_question(item: Item) -> str:
    domain = item.fields["domain"]
    if (item.subject, domain) == ("Hebrew", "Driving License"):
        domain = "Driving license"  # the one file that writes it so
    options = "".join(
        f"\n{' ' * (label == 'D')}{label}. {option}"
        for label, option in zip(LABELS, item.options, strict=False)
    )
    return (
        f"The following is multiple-choice question about {domain}."
        f"{item.question.strip()}{options}\nAnswer:"
    )


INCLUDE = Template(name="include", description=_description, question=_question, choices=labels)

LMEVAL_INCLUDE = Template(
    name="lmeval-include", description=no_description, question=_lmeval_question, choices=labels
)
