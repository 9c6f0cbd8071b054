"""The request that a response answers: by its own fields and, without them, by its place."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Record
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.awaited import AwaitedAnswers

ARMS = ("", "cyclic@1", "cyclic@2")


def blank(item: str, arm: str = "", sample: int = 0) -> Record:
    return Record("m", "b", "s", item, "t", Outcome.ERROR, None, "A", sample=sample, arm=arm)


def awaited(*blanks: Record) -> AwaitedAnswers[Record]:
    prompt = Prompt("", (), "q")
    return AwaitedAnswers(
        (Request(expected.item, prompt, arm=expected.arm, sample=expected.sample), expected)
        for expected in blanks
    )


AUDIT = [blank(item, arm) for item in "pq" for arm in ARMS]


def test_responses_that_name_their_arm_come_in_any_order() -> None:
    waiting = awaited(*AUDIT)
    for expected in reversed(AUDIT):
        assert waiting.pop(Response(expected.item, sample=0, arm=expected.arm)) is expected
    assert not waiting


@pytest.mark.parametrize("sample", [None, 0])
def test_responses_without_an_arm_are_taken_in_the_order_of_the_requests(sample) -> None:
    waiting = awaited(*AUDIT)
    assert [waiting.pop(Response(expected.item, sample=sample)) for expected in AUDIT] == AUDIT
    assert not waiting


@pytest.mark.parametrize("sample", [None, 0])
def test_no_arm_is_guessed(sample) -> None:
    with pytest.raises(ValueError, match="set the arm of each"):
        awaited(*AUDIT).pop(Response("q", sample=sample))
    # The first that is awaited needs none, whatever has been answered before it.
    waiting = awaited(*AUDIT)
    waiting.pop(Response("p", arm="cyclic@1"))
    assert waiting.pop(Response("p", sample=sample)) is AUDIT[0]
    assert waiting.pop(Response("p", sample=sample)) is AUDIT[2]


def test_one_arm_alone_needs_no_name() -> None:
    """As where the answers to the others are on disk already."""
    blanks = [blank("p", "cyclic@1"), blank("q", "free@"), blank("r")]
    waiting = awaited(*blanks)
    for expected in reversed(blanks):
        assert waiting.pop(Response(expected.item, sample=0)) is expected


def test_samples_are_distinguished_by_number_or_by_their_order() -> None:
    blanks = [blank("p", sample=number) for number in range(3)]
    waiting = awaited(*blanks)
    assert waiting.pop(Response("p", sample=2)) is blanks[2]
    assert waiting.pop(Response("p")) is blanks[0]
    assert list(waiting) == [blanks[1]]


def test_unrequested_and_repeated_answers_are_ignored() -> None:
    waiting = awaited(*AUDIT)
    assert waiting.pop(Response("x")) is None
    assert waiting.pop(Response("p", arm="full@BACD")) is None
    assert waiting.pop(Response("p", sample=1)) is None
    assert waiting.pop(Response("p", arm="")) is AUDIT[0]
    assert waiting.pop(Response("p", arm="")) is None
    assert list(waiting) == AUDIT[1:]
