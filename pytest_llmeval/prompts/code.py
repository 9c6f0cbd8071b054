"""Formats of HumanEval and MBPP: code to be continued, or a task and the tests that its code must pass.

Prompt formats of HumanEval: the code to be gone on with, or a request to write the function.

Sources: Chen et al., "Evaluating Large Language Models Trained on Code" (2021), and the task files
``humaneval`` and ``humaneval_instruct`` of lm-evaluation-harness 0.4.13, whose prompts are
reproduced byte for byte.

Prompt formats of MBPP: a task in words and the tests that the code is to pass.

Sources: Austin et al., "Program Synthesis with Large Language Models" (2021) and the notes beside
its data (``mbpp`` in google-research), and the task files ``mbpp`` and ``mbpp_instruct`` of
lm-evaluation-harness 0.4.13, whose prompts are reproduced byte for byte, carriage returns of the
data included. There they show the first three tests; all items of the full set have three.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.multiple_choice import no_choices
from pytest_llmeval.prompts.multiple_choice import no_description

HUMANEVAL_STOP = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
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


MBPP_STOP = ("[DONE]",)

_OPENED = "\n```python\n"


def _task(item: Item) -> str:
    return (
        f"You are an expert Python programmer, and here is your task: {item.question}"
        f" Your code should pass these tests:\n\n{item.fields['test_list']}\n[BEGIN]\n"
    )


def _done(item: Item) -> str:
    return f"{item.fields['solution']}\n[DONE]"


def _mbpp_request(item: Item) -> str:
    return (
        f"You are an expert Python programmer, and here is your task:\n{item.question}\n"
        f"Your code should pass these tests:\n{item.fields['test_list']}"
    )


def _mbpp_fenced(item: Item) -> str:
    return f"{_OPENED}{item.fields['solution']}\n```"


def _mbpp_opened(_item: Item) -> str:
    return _OPENED


MBPP = Template(
    name="mbpp",
    description=no_description,
    question=_task,
    choices=no_choices,
    answer=_done,
    delimiter="",
)
"""The format of the paper: the code stands between ``[BEGIN]`` and ``[DONE]``."""

MBPP_INSTRUCT = Template(
    name="lmeval-mbpp-instruct",
    description=no_description,
    question=_mbpp_request,
    choices=no_choices,
    answer=_mbpp_fenced,
    delimiter="",
    prefix=_mbpp_opened,
)
"""The task, and a fence that is opened for the model."""

MBPP_CHAT = replace(MBPP_INSTRUCT, name="mbpp-chat", prefix=None)
"""The same task, and the answer left to the model: for endpoints that begin no answers."""
