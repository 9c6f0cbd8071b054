"""An answer on disk is used again for the same prompt, model and data, and for nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.evaluation.answers import ReusableAnswers

ANSWER = Record(
    "m",
    "b",
    "letter",
    "q0",
    "s",
    Outcome.WRONG,
    "A",
    "B",
    text="A",
    protocol="p",
    prompt_sha256="h",
    model_fingerprint="f",
    data="d",
)
PLANNED = replace(ANSWER, text=None, answer=None, outcome=Outcome.ERROR)


def stored(*records, own_model=False):
    answers = ReusableAnswers(own_model)
    answers.add(records)
    return answers


def test_an_answer_is_given_once():
    answers = stored(ANSWER)
    assert answers.pop_matching(PLANNED) is ANSWER
    assert answers.pop_matching(PLANNED) is None


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_sha256": "x"},
        {"model_fingerprint": "x"},
        {"data": "x"},
        {"protocol": "x"},
        {"sample": 1},
        {"arm": "cyclic@1"},
        {"text": None},
    ],
)
def test_a_reused_record_has_the_same_fields(change):
    assert stored(replace(ANSWER, **change)).pop_matching(PLANNED) is None


def test_a_later_error_keeps_the_answer_and_decides_the_outcome():
    error = replace(PLANNED, error="the server was gone")
    answers = stored(ANSWER, error)
    assert answers.pop_matching(PLANNED) is ANSWER
    assert not answers.is_latest(ANSWER)
    assert stored(ANSWER).is_latest(ANSWER)


def test_scores_of_other_scorers_do_not_replace_the_first():
    again = replace(PLANNED, scorer="number", protocol="q", response_of="letter")
    assert stored(ANSWER, again).is_latest(ANSWER)


def test_a_projects_own_model_is_one_whatever_it_was_called():
    lost = replace(PLANNED, model="model", error="a worker died")
    assert stored(ANSWER, lost).is_latest(ANSWER)
    assert not stored(ANSWER, lost, own_model=True).is_latest(ANSWER)
