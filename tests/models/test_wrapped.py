"""What a user's `model` fixture may return, and how it is told what may not."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.models import as_model


async def ask(prompt):
    return "B"


class Right:
    name = "right"
    fingerprint = None
    asks = frozenset({"text"})

    def answer(self, requests):
        yield from ()


class Bare:
    def answer(self, requests):
        yield from ()


class Waiting:
    async def answer(self, requests):
        return []


class Streaming:
    async def answer(self, requests):
        for request in requests:
            yield request


def asking(value, base=Right):
    """An object that says it answers these kinds of request."""
    made = base()
    made.asks = value
    return made


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "the `model` fixture returned NoneType: return an object with answer(requests)"),
        ("demo", "the `model` fixture returned str: return an object"),
        (ask, "returned an async function: return one that waits for it, such as lambda prompt:"),
        (Right, "the `model` fixture returned the class Right: return Right(…)"),
        (Bare, "the `model` fixture returned the class Bare: return Bare(…)"),
        (Waiting(), "Waiting.answer of the `model` fixture is async: it has to return an iterator"),
        (Streaming(), "Streaming.answer of the `model` fixture is async"),
        (asking("text"), "Right.asks of the `model` fixture is 'text': write frozenset({'text'})"),
        (asking("text", Bare), "Bare.asks of the `model` fixture is 'text'"),
        (asking(frozenset()), "Right.asks of the `model` fixture is frozenset()"),
        (asking(3), "Right.asks of the `model` fixture is 3"),
        (asking({"texts"}), "Right.asks of the `model` fixture: unknown 'texts'; did you mean"),
        (asking([None]), "Right.asks of the `model` fixture: unknown None; known: choices, text"),
    ],
)
def test_what_could_answer_nothing_is_refused(value, line):
    with pytest.raises(ConfigError) as told:
        as_model(value)
    assert line in str(told.value)
    assert "\n" not in str(told.value)


def test_what_is_a_model_is_used_as_it_is():
    model = Right()
    assert as_model(model) is model
    assert as_model(asking(["choices"], Bare)).asks == {"choices"}
    assert as_model(Bare()).asks == {"choices", "text"}
