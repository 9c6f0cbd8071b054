"""Prompts of SWE-bench: an issue whose patch is wanted, or the published text of its row.

The published prompts (``SWE-bench_oracle``, ``SWE-bench_bm25_13K`` and ``_27K``; Jimenez et al.,
"SWE-bench: Can Language Models Resolve Real-World GitHub Issues?", 2024) hold the issue and files of
the repository, and request a patch in the format of a diff.
"""

from __future__ import annotations

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.multiple_choice import no_choices
from pytest_llmeval.prompts.multiple_choice import no_description


def _issue(item: Item) -> str:
    return (
        f"Resolve the following issue of the repository {item.subject} with a patch.\n\n"
        f"<issue>\n{item.question}\n</issue>\n\n"
        "Reply with one patch in unified diff format, as `git diff` writes it, between <patch> and"
        " </patch>."
    )


def _text(item: Item) -> str:
    return item.fields["text"]


def _gold(item: Item) -> str:
    return f"<patch>\n{item.fields['solution']}</patch>"


ISSUE = Template(
    name="swebench_issue",
    description=no_description,
    question=_issue,
    choices=no_choices,
    answer=_gold,
    delimiter="\n\n",
)

TEXT = Template(
    name="swebench_text",
    description=no_description,
    question=_text,
    choices=no_choices,
    answer=_gold,
    delimiter="\n\n",
)
