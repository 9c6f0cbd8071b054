"""A response becomes a scored record, and a broken scorer is no wrong answer."""

from __future__ import annotations

import pytest

from pytest_llmeval import Item
from pytest_llmeval import Outcome
from pytest_llmeval import Response
from pytest_llmeval.core import Record
from pytest_llmeval.evaluation import scoring
from pytest_llmeval.scorers import Scorer

ITEM = Item("q0", "s", "What?", 1, ("x", "y"))
BLANK = Record("m", "b", "letter", "q0", "s", Outcome.ERROR, None, "B", dropped_shots=1)


def scored(response, scorer):
    return scoring.scored_record(BLANK, response, scoring.score_response(ITEM, response, scorer))


def test_a_response_is_scored():
    response = Response(
        "q0", logprobs=(-2.0, -1.0), dropped_shots=2, prompt_tokens=7, encoded_apart=1
    )
    record = scored(response, "letter")
    assert (record.outcome, record.answer) == (Outcome.CORRECT, "B")
    assert record.dropped_shots == 3
    assert scoring.stored_response(record, 1) == response
    assert scored(scoring.stored_response(record, 1), "letter") == record


def test_a_scorer_that_raises_is_an_error(monkeypatch):
    """A broken grader is not a weak model."""

    def broken(item, response):
        raise ImportError("no module named grader")

    monkeypatch.setattr(scoring, "get_scorer", lambda name: Scorer(name, 1, broken))
    record = scored(Response("q0", text="B"), "letter")
    assert record.outcome is Outcome.ERROR
    assert "no module named grader" in record.error
    assert record.text == "B"  # kept: it can be scored again


@pytest.mark.parametrize("scorer", ["choice", "letter", "number", "exact_match", "contains"])
def test_no_answer_is_read_from_a_refusal(scorer):
    refusal = Response("q0", text="I can't help with option B, y.", finish_reason="refusal")
    record = scored(refusal, scorer)
    assert (record.outcome, record.answer) == (Outcome.UNPARSED, None)
    assert (record.text, record.finish_reason) == ("I can't help with option B, y.", "refusal")


@pytest.mark.parametrize("scorer", ["choice", "letter", "cloze", "likelihood", "execution"])
def test_a_reply_that_was_withheld_is_unparsed_under_every_scorer(scorer):
    record = scored(Response("q0", text="", finish_reason="content_filter"), scorer)
    assert (record.outcome, record.error) == (Outcome.UNPARSED, None)


def test_partially_filtered_text_is_read():
    cut = Response("q0", text="The answer is B. Because", finish_reason="content_filter")
    assert scored(cut, "choice").answer == "B"
