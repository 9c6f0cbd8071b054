"""Scorers of executed code: programs from responses, and scores from executions.

This module runs nothing; the recorder gives the programs to a sandbox. An item has in its
``fields``: ``tests`` (trusted code that raises if the answer is wrong), ``entry_point`` (the
function that the tests call), ``prompt`` (code that the model continues, if any), ``context`` (code
that the tests need, by default the prompt) and ``solution`` (passes the tests, after the prompt).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.scorers.code.extract import extract_code
from pytest_llmeval.scorers.response_text import scoring_fault

_FENCE = "```"
_LANGUAGE = re.compile(r"\w*\n?")


def execution(item: Item, response: Response) -> Program | Score:
    """Build the program that ``extract_code`` finds in any reply; unparsed if it finds none."""
    fields = item.fields
    return _build(
        item,
        response,
        lambda text: extract_code(
            text, prompt=fields.get("prompt", ""), entry_point=fields.get("entry_point")
        ),
    )


def execution_raw(item: Item, response: Response) -> Program | Score:
    """Build the program from the prompt, if it is code, and the whole completion.

    As openai/human-eval and lm-eval's ``humaneval`` and ``mbpp`` do.
    """
    return _build(item, response, lambda text: item.fields.get("prompt", "") + text)


def execution_until_fence(item: Item, response: Response) -> Program | Score:
    """Build the program from the prompt and the completion up to its first fence.

    That fence closes the one in the prompt; as lm-eval's ``humaneval_instruct`` does.
    """
    return _build(
        item, response, lambda text: item.fields.get("prompt", "") + text.partition(_FENCE)[0]
    )


def execution_first_block(item: Item, response: Response) -> Program | Score:
    """Build the program from the first block of a reply that begins inside it.

    As lm-eval's ``mbpp_instruct`` does; a block without an end gives no program.
    """
    return _build(item, response, _first_block)


def execution_score(execution: Execution) -> Score:
    """Return the score of an execution, with its status as the answer.

    Every failure of the candidate is wrong; a failure of the sandbox is an error.
    """
    match execution.status:
        case "passed":
            return Score(Outcome.CORRECT, answer="passed")
        case "error":
            return Score(Outcome.ERROR, error=execution.detail or "the sandbox failed")
        case status:
            detail = execution.detail
            return Score(Outcome.WRONG, answer=f"{status}: {detail}" if detail else status)


def reference_program(item: Item) -> Program:
    """Return the item's solution as a program, which must pass, to check a sandbox.

    Raises ConfigError for an item without a solution.
    """
    solution = item.fields.get("solution")
    if solution is None:
        raise ConfigError(f"item {item.id!r} has no field 'solution' to run")
    return _program(item, item.id, item.fields.get("prompt", "") + solution)


def _build(item: Item, response: Response, read: Callable[[str], str]) -> Program | Score:
    fault = scoring_fault(item, response)
    if fault is None and "tests" not in item.fields:
        fault = "the item has no tests to run"
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    source = read(response.text or "")
    if not source.strip():
        return Score(Outcome.UNPARSED)
    return _program(item, f"{item.id}/{response.sample or 0}", source)


def _program(item: Item, name: str, source: str) -> Program:
    fields = item.fields
    return Program(
        id=name,
        source=source,
        tests=fields["tests"],
        context=fields.get("context", fields.get("prompt", "")),
        entry_point=fields.get("entry_point"),
    )


def _first_block(text: str) -> str:
    """Return the text up to the next fence, without line breaks at its ends, as lm-eval does.

    lm-eval puts the opening fence before the reply and searches for the closing one.
    """
    inside, mark, _ = text.partition(_FENCE)
    if not mark:
        return ""
    # A word at the beginning is read as the language, as in lm-eval.
    inside = inside[_LANGUAGE.match(inside).end() :]  # type: ignore[union-attr]
    return inside.removesuffix("\n")
