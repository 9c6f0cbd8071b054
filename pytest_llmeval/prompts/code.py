"""Formats of HumanEval and MBPP: code to continue, or a task and the tests that its code must pass.

Prompts of lm-evaluation-harness are those of version 0.4.13, reproduced byte for byte.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.multiple_choice import no_choices
from pytest_llmeval.prompts.multiple_choice import no_description

HUMANEVAL_STOP = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
"""Stop strings at the end of the function: the five of Chen et al. (2021)."""


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
    """Return the beginning of the answer, up to the body of the function."""
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
"""Signature and docstring only, as in the paper and in lm-eval's task ``humaneval``.

Source: Chen et al., "Evaluating Large Language Models Trained on Code" (2021).
"""

HUMANEVAL_INSTRUCT = Template(
    name="lmeval-humaneval-instruct",
    description=no_description,
    question=_request,
    choices=no_choices,
    answer=_fenced,
    delimiter="",
    prefix=_opened,
)
"""The format of lm-eval's ``humaneval_instruct``: a request, and a prefix of the answer.

The prefix ends with the docstring of the function.
"""

HUMANEVAL_CHAT = replace(HUMANEVAL_INSTRUCT, name="humaneval-chat", prefix=None)
"""The same request without a prefix, for endpoints that do not support one."""


MBPP_STOP = ("[DONE]",)
"""The stop string of the paper."""

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
"""The format of the paper and of lm-eval's ``mbpp``: code between ``[BEGIN]`` and ``[DONE]``.

Sources: Austin et al., "Program Synthesis with Large Language Models" (2021), and the notes on its
data (``mbpp`` in google-research). lm-eval shows the first three tests; all items of the full set
have three. Carriage returns of the data are kept.
"""

MBPP_INSTRUCT = Template(
    name="lmeval-mbpp-instruct",
    description=no_description,
    question=_mbpp_request,
    choices=no_choices,
    answer=_mbpp_fenced,
    delimiter="",
    prefix=_mbpp_opened,
)
"""The format of lm-eval's ``mbpp_instruct``: the task, and an opened code fence as prefix."""

MBPP_CHAT = replace(MBPP_INSTRUCT, name="mbpp-chat", prefix=None)
"""The same task without a prefix, for endpoints that do not support one."""
