"""Prompt formats of HumanEval: the code to be gone on with, or a request to write the function.

Sources: Chen et al., "Evaluating Large Language Models Trained on Code" (2021), and the task files
``humaneval`` and ``humaneval_instruct`` of lm-evaluation-harness 0.4.13, whose prompts are
reproduced byte for byte.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_choices
from pytest_llmeval.prompts.lettered import no_description

STOP = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
"""Where the function is at its end; the five strings of the paper."""


def _code(item: Item) -> str:
    return item.question


def _solution(item: Item) -> str:
    return item.fields["solution"]


def _request(item: Item) -> str:
    return (
        "Write a solution to the following problem and make sure that it passes the tests:\n"
        f"```python\n{item.question}\n```\n"
    )


def _opened(item: Item) -> str:
    """The answer up to where the body of the function begins."""
    return f"Here is the completed function:\n```python\n{item.question}\n"


def _fenced(item: Item) -> str:
    return f"```python\n{item.question}{item.fields['solution']}```"


HUMANEVAL = Template(
    name="humaneval",
    description=no_description,
    question=_code,
    choices=no_choices,
    answer=_solution,
    delimiter="",
)
"""Signature and docstring, nothing else."""

HUMANEVAL_INSTRUCT = Template(
    name="lmeval-humaneval-instruct",
    description=no_description,
    question=_request,
    choices=no_choices,
    answer=_fenced,
    delimiter="",
    prefix=_opened,
)
"""A request, and the answer begun for the model, up to the end of the docstring."""

HUMANEVAL_CHAT = replace(HUMANEVAL_INSTRUCT, name="humaneval-chat", prefix=None)
"""The same request, and the answer left to the model: for endpoints that begin no answers."""
