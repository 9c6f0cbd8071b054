"""``choice``, ``exact_match``, ``extract_choice`` and the registry."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.scorers import SCORERS
from pytest_llmeval.scorers import extract_choice
from pytest_llmeval.scorers import get_scorer

OPTIONS = ("iron", "iron oxide", "copper", "zinc")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        # alone
        ("B", "B"),
        (" B\n", "B"),
        ("B.", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("b", "B"),
        ("B) copper", "B"),
        ("B. because of the colour", "B"),
        ("B\n\nIt is the only oxide.", "B"),
        ("It rusts.\n\nB", "B"),
        # stated
        ("The answer is (B).", "B"),
        ("The answer is b.", "B"),
        ("Answer: B", "B"),
        ("Answer:\n\n**B) iron oxide**", "B"),
        ("$\\boxed{\\text{B}}$", "B"),
        ("The answer is A. No: the answer is B.", "B"),
        ("Answer: A\nwait\nAnswer: B", "B"),
        ("The answer is B, certainly not A or C.", "B"),
        ("A and C are wrong, so the correct option is B", "B"),
        # reasoning
        ("<think>The answer is A.</think>The answer is B.", "B"),
        ("<think>A</think>\nB", "B"),
        ("the answer is A</think>B", "B"),
        ("<THINK>the answer is A", None),
        ("B <think>", None),
        # text of an option
        ("iron oxide", "B"),
        ("Iron oxide.", "B"),
        ("The answer is iron oxide.", "B"),
        # nothing is settled
        ("", None),
        ("[Invalid] : CS", None),
        ("[Invalid] : Navy", None),
        ("ANSWER: Don't know", None),
        ("The answer is A or B.", None),
        ("Answer: A metal is asked for.", None),
        ("A metal is asked for.", None),
        ("A) iron\nB) iron oxide\nC) copper\nD) zinc", None),
        ("The answer is E.", None),
        ("E", None),
        ("Actually, both are plausible.", None),
    ],
)
def test_extract_choice(text: str, label: str | None) -> None:
    assert extract_choice(text, OPTIONS) == label


def test_labels_may_be_given() -> None:
    assert extract_choice("The answer is (G).", ["x"] * 12) == "G"
    assert extract_choice("Answer: W", ["x", "y"], labels="VW") == "W"
    assert extract_choice("Answer: B", ["x", "y"], labels="VW") is None


def test_equal_options_cannot_be_told_apart_by_their_text() -> None:
    assert extract_choice("same", ["same", "Same ", "other"]) is None


@given(st.text(), st.lists(st.text(), max_size=30))
def test_extract_choice_never_raises(text: str, options: list[str]) -> None:
    label = extract_choice(text, options)
    assert label is None or label in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options)]


PIECES = st.sampled_from(
    ["<think>", "</think>", "answer is", "Answer:", " ", "\n", "A", "b", "(", ")", "or", "$", "*"]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_extract_choice_never_raises_on_what_looks_like_answers(text: str) -> None:
    assert extract_choice(text, OPTIONS) in (None, "A", "B", "C", "D")


@pytest.mark.parametrize(
    "piece", ["answer ", "Answer: A or ", "<think>", "</think>", "(", "\n", " ", "A)\n", "\\boxed{"]
)
def test_extract_choice_takes_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = time.perf_counter()
        extract_choice(text, OPTIONS)
        return time.perf_counter() - start

    seconds(1000)
    # Quadratic time would be minutes here.
    assert seconds(1_000_000) < 5


ITEM = Item("i", "s", "q", 1, OPTIONS)


@pytest.mark.parametrize(
    ("text", "outcome", "answer"),
    [("B", "correct", "B"), ("Answer: C", "wrong", "C"), ("dunno", "unparsed", None)],
)
def test_choice(text: str, outcome: str, answer: str | None) -> None:
    score = get_scorer("choice")(ITEM, Response("i", text=text))
    assert (score.outcome, score.answer) == (outcome, answer)


@pytest.mark.parametrize(
    ("gold", "text", "outcome"),
    [
        ("1,000", " 1,000\n", "correct"),  # case f13: not split at the comma
        ("1,000", "1", "wrong"),
        ("x", "X", "wrong"),
        ("x", "  ", "unparsed"),
    ],
)
def test_exact_match_of_texts(gold: str, text: str, outcome: str) -> None:
    score = get_scorer("exact_match")(Item("i", "s", "q", gold), Response("i", text=text))
    assert score.outcome == outcome


@pytest.mark.parametrize(
    ("text", "outcome"), [(" B\n", "correct"), ("A", "wrong"), ("B.", "unparsed")]
)
def test_exact_match_of_letters(text: str, outcome: str) -> None:
    assert get_scorer("exact_match")(ITEM, Response("i", text=text)).outcome == outcome


@pytest.mark.parametrize("name", sorted(SCORERS))
def test_an_error_is_never_an_answer(name: str) -> None:
    response = Response("i", logprobs=(0.0, -1.0, -1.0, -1.0), text="B", error="timed out")
    score = get_scorer(name)(ITEM, response)
    assert (score.outcome, score.answer, score.error) == (Outcome.ERROR, None, "timed out")


@pytest.mark.parametrize("name", sorted(SCORERS))
def test_a_response_of_the_wrong_kind_is_an_error(name: str) -> None:
    assert get_scorer(name)(ITEM, Response("i")).outcome is Outcome.ERROR


def test_unknown_scorer_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"unknown scorer 'exact-match'; did you mean 'exact_m"):
        get_scorer("exact-match")
