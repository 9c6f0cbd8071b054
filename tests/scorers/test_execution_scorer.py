"""From a response to a program, and from what became of it to a score."""

from __future__ import annotations

import re

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.scorers import SCORERS
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers.execution import execution
from pytest_llmeval.scorers.execution import execution_first_block
from pytest_llmeval.scorers.execution import execution_raw
from pytest_llmeval.scorers.execution import execution_score
from pytest_llmeval.scorers.execution import execution_until_fence
from pytest_llmeval.scorers.execution import reference_program

PROMPT = 'def area(w, h):\n    """Area."""\n'
COMPLETED = Item(
    "HumanEval_0",
    "humaneval",
    PROMPT,
    "area",
    fields={
        "prompt": PROMPT,
        "entry_point": "area",
        "tests": "check(area)",
        "solution": "    return w * h\n",
    },
)
ASKED = Item(
    "mbpp-0011",
    "mbpp",
    "Write it.",
    "area",
    fields={
        "entry_point": "area",
        "tests": "assert area(1, 2) == 2",
        "context": "import math",
        "solution": "def area(w, h):\r\n  return w * h",
    },
)
WHOLE = "def area(w, h):\n    return w * h\n"
RUNNING = ["execution", "execution_raw", "execution_until_fence", "execution_first_block"]


def program(made: Program | Score) -> Program:
    assert isinstance(made, Program)
    return made


def test_a_program_consists_of_the_fields_of_the_item() -> None:
    made = program(execution(ASKED, Response("mbpp-0011", text=f"```python\n{WHOLE}```")))
    assert made == Program(
        id="mbpp-0011/0",
        source=WHOLE,
        tests="assert area(1, 2) == 2",
        context="import math",
        entry_point="area",
    )


def test_the_prompt_is_the_context_of_tests_unless_the_item_has_one() -> None:
    made = program(execution(COMPLETED, Response("HumanEval_0", text="    return 1\n", sample=3)))
    assert (made.id, made.context) == ("HumanEval_0/3", PROMPT)
    assert made.source == f"{PROMPT}    return 1\n"


def test_raw_is_prompt_and_completion_whatever_they_are() -> None:
    for text in ("    return w * h", "", f"```python\n{WHOLE}```", "Sorry."):
        made = program(execution_raw(COMPLETED, Response("HumanEval_0", text=text)))
        assert made.source == PROMPT + text
    assert program(execution_raw(ASKED, Response("mbpp-0011", text=WHOLE))).source == WHOLE


def test_until_the_fence_that_ends_the_begun_answer() -> None:
    reply = "    return w * h\n```\nThat is it.\n```python\nmore\n```"
    made = program(execution_until_fence(COMPLETED, Response("HumanEval_0", text=reply)))
    assert made.source == f"{PROMPT}    return w * h\n"


# What lm-eval's own pattern takes, once it has put the opening marks before the reply.
PATTERN = re.compile(r"```(?:\w+)?\n?(.*?)\n?```", re.DOTALL)


@pytest.mark.parametrize(
    "reply",
    [
        f"\n{WHOLE}```\nDone.",
        f"{WHOLE}```",
        f"python\n{WHOLE}```",
        f"  {WHOLE}\n\n```python\nother\n```",
        "import math\nx = 1\n```",
    ],
)
def test_first_block_reads_what_lm_eval_reads(reply: str) -> None:
    expected = PATTERN.findall("```" + reply)[0]
    made = program(execution_first_block(ASKED, Response("mbpp-0011", text=reply)))
    assert made.source == expected


def test_first_block_takes_the_first_word_for_the_language() -> None:
    """A fault of that tool: an answer that begins with ``def`` at once never runs there."""
    made = program(execution_first_block(ASKED, Response("mbpp-0011", text=f"{WHOLE}```")))
    assert made.source.startswith(" area(w, h):")


def test_nothing_to_run_is_unparsed() -> None:
    assert execution(ASKED, Response("mbpp-0011", text="I cannot.")).outcome is Outcome.UNPARSED  # type: ignore[union-attr]
    for scorer, text in ((execution_first_block, WHOLE), (execution_raw, "  ")):
        made = scorer(ASKED, Response("mbpp-0011", text=text))
        assert isinstance(made, Score)
        assert made.outcome is Outcome.UNPARSED


@pytest.mark.parametrize("name", RUNNING)
def test_an_error_is_an_error(name: str) -> None:
    scorer = SCORERS[name]
    assert scorer.jobs is not None
    broken = Response("mbpp-0011", error="connection lost")
    no_tests = Item("x", "x", "q", "g")
    for item, response in (
        (ASKED, broken),
        (ASKED, Response("mbpp-0011")),
        (no_tests, Response("x", text=WHOLE)),
    ):
        made = scorer.jobs.job(item, response)
        assert isinstance(made, Score)
        assert made.outcome is Outcome.ERROR
        assert made.error
        assert scorer(item, response) == made


@pytest.mark.parametrize("name", RUNNING)
def test_a_program_that_was_not_run_is_never_an_answer(name: str) -> None:
    score = get_scorer(name)(ASKED, Response("mbpp-0011", text=f"\n{WHOLE}```"))
    assert score.outcome is Outcome.ERROR
    assert "sandbox" in str(score.error)


def test_other_scorers_have_no_program() -> None:
    kinds = {name: scorer.jobs.kind for name, scorer in SCORERS.items() if scorer.jobs is not None}
    assert [name for name, kind in kinds.items() if kind == "program"] == RUNNING


@pytest.mark.parametrize(
    ("status", "detail", "outcome", "answer", "error"),
    [
        ("passed", "", "correct", "passed", None),
        ("failed", "AssertionError", "wrong", "failed: AssertionError", None),
        ("failed", "", "wrong", "failed", None),
        ("timeout", "", "wrong", "timeout", None),
        ("memory", "MemoryError", "wrong", "memory: MemoryError", None),
        ("error", "container lost", "error", None, "container lost"),
        ("error", "", "error", None, "the sandbox failed"),
    ],
)
def test_scores_by_the_end_of_the_program(
    status: str, detail: str, outcome: str, answer: str | None, error: str | None
) -> None:
    score = execution_score(Execution("x", status, detail, 0.1))  # type: ignore[arg-type]
    assert (score.outcome, score.answer, score.error) == (outcome, answer, error)


def test_the_reference_solution_is_a_program() -> None:
    assert reference_program(COMPLETED).source == f"{PROMPT}    return w * h\n"
    assert reference_program(ASKED).source == ASKED.fields["solution"]
    assert reference_program(ASKED).context == "import math"
    with pytest.raises(ConfigError, match="'x' has no field 'solution'"):
        reference_program(Item("x", "x", "q", "g", fields={"tests": ""}))
