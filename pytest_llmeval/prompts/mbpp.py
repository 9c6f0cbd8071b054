"""Prompt formats of MBPP: a task in words and the tests that the code is to pass.

Sources: Austin et al., "Program Synthesis with Large Language Models" (2021) and the notes beside
its data (``mbpp`` in google-research), and the task files ``mbpp`` and ``mbpp_instruct`` of
lm-evaluation-harness 0.4.13, whose prompts are reproduced byte for byte, carriage returns of the
data included. There they show the first three tests; all items of the full set have three.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_choices
from pytest_llmeval.prompts.lettered import no_description

STOP = ("[DONE]",)

_OPENED = "\n```python\n"


def _task(item: Item) -> str:
    return (
        f"You are an expert Python programmer, and here is your task: {item.question}"
        f" Your code should pass these tests:\n\n{item.fields['test_list']}\n[BEGIN]\n"
    )


def _done(item: Item) -> str:
    return f"{item.fields['solution']}\n[DONE]"


def _request(item: Item) -> str:
    return (
        f"You are an expert Python programmer, and here is your task:\n{item.question}\n"
        f"Your code should pass these tests:\n{item.fields['test_list']}"
    )


def _fenced(item: Item) -> str:
    return f"{_OPENED}{item.fields['solution']}\n```"


def _opened(_item: Item) -> str:
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
    question=_request,
    choices=no_choices,
    answer=_fenced,
    delimiter="",
    prefix=_opened,
)
"""The task, and a fence that is opened for the model."""

MBPP_CHAT = replace(MBPP_INSTRUCT, name="mbpp-chat", prefix=None)
"""The same task, and the answer left to the model: for endpoints that begin no answers."""
