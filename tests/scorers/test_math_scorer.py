"""``math``: equal expressions, by the math-verify library."""

from __future__ import annotations

import threading

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import get_scorer

pytest.importorskip("math_verify", reason="math-verify (extra `math`) is not installed")


def scored(text: str, gold: str) -> Score:
    return get_scorer("math")(Item("i", "s", "q", gold), Response("i", text=text))


@pytest.mark.parametrize(
    ("text", "gold", "outcome"),
    [
        (r"So it is $\boxed{\frac{1}{2}}$.", "0.5", "correct"),
        (r"$\boxed{x^2 + 2x + 1}$", "(x+1)^2", "correct"),
        (r"$\boxed{x^2 + 1}$", "(x+1)^2", "wrong"),
        (r"<think>$\boxed{3}$</think>$\boxed{4}$", "4", "correct"),
        (r"<think>$\boxed{3}$", "3", "unparsed"),
        ("I do not know.", "3", "unparsed"),
        ("x " * 10_000 + r"$\boxed{7}$", "7", "correct"),
    ],
)
def test_math(text: str, gold: str, outcome: str) -> None:
    assert scored(text, gold).outcome == outcome


def test_a_gold_answer_that_cannot_be_read_is_an_error() -> None:
    assert scored("3", "").outcome == "error"


def test_expressions_are_compared_in_another_thread() -> None:
    scores: list[Score] = []
    thread = threading.Thread(target=lambda: scores.append(scored("$3$", "3")))
    thread.start()
    thread.join()
    assert scores[0].outcome == "correct"
