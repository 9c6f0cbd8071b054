"""``letter``, ``cloze`` and ``likelihood``: argmax with a fixed rule for ties, and errors instead of guesses."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.scorers import Scorer
from pytest_llmeval.scorers.likelihood import cloze
from pytest_llmeval.scorers.likelihood import letter
from pytest_llmeval.scorers.likelihood import likelihood

ALL = pytest.mark.parametrize("scorer", [letter, cloze, likelihood])
INF = math.inf


def item(gold: int = 0, options: tuple[str, ...] = ("a", "b", "c", "d")) -> Item:
    return Item("i", "s", "q", gold, options)


def test_the_highest_letter_wins() -> None:
    score = letter(item(gold=2), Response("i", logprobs=(-3.0, -2.0, -1.0, -4.0)))
    assert (score.outcome, score.answer, score.tie) == (Outcome.CORRECT, "C", False)
    assert letter(item(gold=1), Response("i", logprobs=(-3.0, -2.0, -1.0, -4.0))).outcome == "wrong"


def test_a_generated_letter_replaces_log_likelihoods() -> None:
    score = letter(item(gold=1), Response("i", text="The answer is (B)."))
    assert (score.outcome, score.answer) == (Outcome.CORRECT, "B")
    assert letter(item(), Response("i", text="")).outcome is Outcome.UNPARSED
    assert letter(item(), Response("i", text="B", error="gone")).outcome is Outcome.ERROR
    for texts in (cloze, likelihood):
        assert texts(item(), Response("i", text="The answer is (A).")).outcome is Outcome.ERROR


def test_cloze_divides_by_characters_not_bytes() -> None:
    # In all, the short option is likelier; per character (not byte) the long one is.
    options = ("ab", "ééééé")
    response = Response("i", logprobs=(-2.0, -4.0))
    assert letter(item(0, options), response).answer == "A"
    assert likelihood(item(0, options), response).outcome is Outcome.CORRECT
    assert cloze(item(1, options), response).answer == "B"
    assert cloze(item(1, options), response).outcome is Outcome.CORRECT
    assert cloze(item(1, ("ab", "é" * 3)), response).answer == "A"


@ALL
def test_no_log_probabilities_at_all_is_an_error(scorer: Scorer) -> None:
    # Argmax would credit every item whose gold is A.
    score = scorer(item(gold=0), Response("i", logprobs=(-INF,) * 4))
    assert score.outcome is Outcome.ERROR
    assert score.answer is None
    assert score.error is not None


@ALL
@pytest.mark.parametrize(
    "values",
    [(), (-1.0,), (-1.0,) * 5, (math.nan, -1.0, -1.0, -1.0), (math.nan,) * 4, (INF, -1, -1, -1)],
)
def test_scores_that_cannot_be_compared_are_errors(
    scorer: Scorer, values: tuple[float, ...]
) -> None:
    assert scorer(item(), Response("i", logprobs=values)).outcome is Outcome.ERROR


@ALL
def test_some_impossible_choices_are_no_error(scorer: Scorer) -> None:
    score = scorer(item(gold=1), Response("i", logprobs=(-INF, -5.0, -INF, -INF)))
    assert (score.outcome, score.answer) == (Outcome.CORRECT, "B")


@ALL
def test_a_tie_takes_the_first_and_is_recorded(scorer: Scorer) -> None:
    score = scorer(item(gold=1), Response("i", logprobs=(-2.5, -2.5, -3.0, -4.0)))
    assert (score.outcome, score.answer, score.tie) == (Outcome.WRONG, "A", True)


@ALL
def test_an_error_response_is_an_error_score(scorer: Scorer) -> None:
    score = scorer(item(), Response("i", logprobs=(-1.0,) * 4, error="out of memory"))
    assert (score.outcome, score.error) == (Outcome.ERROR, "out of memory")


@ALL
def test_an_item_without_options_cannot_be_scored(scorer: Scorer) -> None:
    score = scorer(Item("i", "s", "q", "text"), Response("i", logprobs=(-1.0,)))
    assert score.outcome is Outcome.ERROR


def test_an_empty_option_has_no_likelihood_per_character() -> None:
    response = Response("i", logprobs=(-1.0, -2.0))
    assert cloze(item(0, ("", "b")), response).outcome is Outcome.ERROR
    assert letter(item(0, ("", "b")), response).outcome is Outcome.CORRECT


VALUES = st.floats(max_value=0, allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(VALUES, st.text(min_size=1, max_size=9)), min_size=2, max_size=26))
def test_both_against_brute_force(pairs: list[tuple[float, str]]) -> None:
    options = tuple(text for _, text in pairs)
    response = Response("i", logprobs=tuple(value for value, _ in pairs))
    labels = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for scorer, key in (
        (letter, lambda n: pairs[n][0]),
        (cloze, lambda n: pairs[n][0] / len(pairs[n][1])),
    ):
        best = 0
        for number in range(len(pairs)):
            if key(number) > key(best):
                best = number
        score = scorer(item(best, options), response)
        assert (score.outcome, score.answer) == (Outcome.CORRECT, labels[best])
        assert score.tie == (sum(key(n) == key(best) for n in range(len(pairs))) > 1)
