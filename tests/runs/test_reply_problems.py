"""One line for each kind of reply that holds no answer, from the records of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.runs.reply_problems import reply_notes

ANSWERED = Record("m", "mmlu", "choice", "i", "s", Outcome.CORRECT, "B", "B", text="B")
THOUGHT = replace(
    ANSWERED, outcome=Outcome.UNPARSED, answer=None, text="", reasoning="so B", finish_reason="stop"
)
CUT_OFF = replace(THOUGHT, finish_reason="length")
FILTERED = replace(THOUGHT, reasoning=None, finish_reason="content_filter")
REFUSED = replace(THOUGHT, text="I can't.", finish_reason="refusal")


def test_thoughts_without_an_answer_are_explained_by_the_parser() -> None:
    (line,) = reply_notes([THOUGHT] * 5)
    assert line.startswith("mmlu[choice]: all 5 replies have reasoning and no answer: the server's")
    assert "--reasoning-parser" in line
    assert "--llm-max-tokens" not in line


def test_thoughts_that_were_cut_off_are_explained_by_the_limit() -> None:
    (line,) = reply_notes([CUT_OFF] * 5)
    assert "all 5 replies have reasoning and no answer (5 of them cut off" in line
    assert "--llm-max-tokens" in line
    assert "--reasoning-parser" not in line


def test_both_reasons_are_in_one_line() -> None:
    (line,) = reply_notes([THOUGHT, CUT_OFF, CUT_OFF, ANSWERED])
    assert "3 of 4 replies have reasoning and no answer (2 of them cut off" in line
    assert line.index("--llm-max-tokens") < line.index("--reasoning-parser")


def test_filtered_and_refused_replies_are_counted() -> None:
    lines = list(reply_notes([FILTERED, REFUSED, REFUSED, ANSWERED]))
    assert lines == [
        "mmlu[choice]: 1 of 4 replies were withheld by a content filter",
        "mmlu[choice]: the model refused to answer in 2 of 4 replies",
    ]


@pytest.mark.parametrize(
    "record",
    [
        ANSWERED,
        replace(ANSWERED, reasoning="so B"),
        replace(THOUGHT, reasoning=None),
        replace(THOUGHT, reasoning="\n"),
        # Log-likelihoods are no text; an error is no answer; the others count elsewhere or nowhere.
        replace(THOUGHT, text=None),
        replace(THOUGHT, outcome=Outcome.ERROR),
        replace(THOUGHT, left_out=True),
        replace(THOUGHT, response_of="number"),
        replace(THOUGHT, arm="free@N/A", order="AB", gold=""),
    ],
)
def test_other_records_give_no_line(record: Record) -> None:
    assert list(reply_notes([record])) == []


def test_lines_name_the_model_where_there_are_several() -> None:
    lines = list(reply_notes([THOUGHT, replace(THOUGHT, model="n"), replace(ANSWERED, model="o")]))
    assert [line.split(":")[0] for line in lines] == ["m mmlu[choice]", "n mmlu[choice]"]
