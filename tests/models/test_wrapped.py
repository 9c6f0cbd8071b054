"""Values that a user's `model` fixture may return, and the messages about those that it may not."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from pytest_llmeval import Request
from pytest_llmeval import Response
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core.usage import Usage
from pytest_llmeval.models import Model
from pytest_llmeval.models import as_model
from pytest_llmeval.models import demo
from pytest_llmeval.models import load_model
from pytest_llmeval.models.hf import HfModel
from pytest_llmeval.models.openai import EndpointModel
from pytest_llmeval.models.replay import Replay

REQUEST = Request("a", Prompt("", (), "Question?"), ("A", "B"))


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
    """An object that declares these kinds of request."""
    made = base()
    made.asks = value
    return made


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "the `model` fixture returned NoneType: return an object with answer(requests)"),
        ("demo", "the `model` fixture returned str: return an object"),
        (ask, "returned an async function: return a synchronous one, such as lambda prompt:"),
        (Right, "the `model` fixture returned the class Right: return Right(…)"),
        (Bare, "the `model` fixture returned the class Bare: return Bare(…)"),
        (Waiting(), "Waiting.answer of the `model` fixture is async: make it a synchronous method"),
        (Streaming(), "Streaming.answer of the `model` fixture is async"),
        (asking("text"), "Right.asks of the `model` fixture is 'text': write frozenset({'text'})"),
        (asking("text", Bare), "Bare.asks of the `model` fixture is 'text'"),
        (asking(frozenset()), "Right.asks of the `model` fixture is frozenset()"),
        (asking(3), "Right.asks of the `model` fixture is 3"),
        (asking({"texts"}), "Right.asks of the `model` fixture: unknown 'texts'; did you mean"),
        (asking([None]), "Right.asks of the `model` fixture: unknown None; known: choices, text"),
    ],
)
def test_an_object_that_cannot_answer_is_refused(value, line):
    with pytest.raises(ConfigError) as caught:
        as_model(value)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


class Least(Model):
    def answer(self, requests):
        return []


def test_a_model_is_used_as_it_is():
    model = Least()
    assert as_model(model) is model


def test_a_model_needs_only_answer():
    model = Least()
    assert (model.name, model.fingerprint, model.asks) == ("Least", None, {"choices", "text"})
    assert (model.prefetch, model.template_date, model.billed_prompts(REQUEST)) == (0, "", 1)
    assert (model.request_modes, model.usage_by_benchmark, model.warnings) == ({}, {}, ())
    model.close()
    with pytest.raises(TypeError, match="answer"):
        type("Nothing", (Model,), {})()


@pytest.mark.parametrize(
    "name", ["fingerprint", "prefetch", "request_modes", "template_date", "warnings"]
)
def test_a_default_is_overridden_by_an_attribute_or_a_property(name):
    computed = type("Computed", (Least,), {name: property(lambda self: "computed")})
    assert getattr(computed(), name) == "computed"
    assert getattr(type("Fixed", (Least,), {name: "fixed"})(), name) == "fixed"
    model = Least()
    setattr(model, name, "set")
    assert getattr(model, name) == "set"
    assert getattr(Least(), name) != "set"


def test_the_name_of_a_base_class_is_inherited():
    named = type("Named", (Least,), {"name": "base"})
    assert type("Derived", (named,), {})().name == "base"


def test_a_model_of_a_mistaken_kind_is_refused():
    with pytest.raises(ConfigError, match=r"Least\.asks of the `model` fixture is 'text'"):
        as_model(asking("text", Least))
    with pytest.raises(ConfigError, match="returned the class Least"):
        as_model(Least)


def test_an_object_gets_the_defaults_of_a_model():
    model = as_model(Bare())
    assert isinstance(model, Model)
    assert (model.name, model.fingerprint, model.asks) == ("Bare", None, {"choices", "text"})
    assert (model.prefetch, model.template_date, model.billed_prompts(REQUEST)) == (0, "", 1)
    assert (model.request_modes, model.usage_by_benchmark, model.warnings) == ({}, {}, ())
    model.close()
    assert as_model(asking(["choices"], Bare)).asks == {"choices"}
    assert as_model(asking(None, Bare)).asks == {"choices", "text"}


def test_the_responses_of_an_object_are_passed_on():
    value = Right()
    value.answer = lambda requests: [Response("a", text="B")]
    assert as_model(value).answer([]) == [Response("a", text="B")]


def test_an_incomplete_object_has_a_safe_name_and_a_complete_one_its_own():
    named = Bare()
    named.name = "my model/1"
    assert as_model(named).name == "my-model-1"
    named.asks, named.fingerprint = {"text"}, None
    assert as_model(named).name == "my model/1"


def test_a_fingerprint_is_read_when_it_is_needed():
    value = Right()
    model = as_model(value)
    value.fingerprint = "loaded"
    assert model.fingerprint == "loaded"


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("prefetch", "wanted"), 8),
        (("request_modes", "ways"), {"text": "chat"}),
        (("template_date",), "2024-07-26"),
        (("usage_by_benchmark",), {"mmlu": Usage(requests=3)}),
        (("warnings",), ["odd"]),
    ],
)
def test_an_object_may_have_what_a_model_may_have(names, value):
    """Also under the names that it had before there was a base class."""
    for name in names:
        given = Right()
        setattr(given, name, value)
        assert getattr(as_model(given), names[0]) == value
        # The same word for something else.
        setattr(given, name, lambda: None)
        assert not getattr(as_model(given), names[0])


def test_methods_that_an_object_may_have():
    for name in ("billed_prompts", "prompts_sent"):
        given = Right()
        setattr(given, name, lambda request: len(request.choices))
        assert as_model(given).billed_prompts(REQUEST) == 2
    closed = []
    given.close = lambda: closed.append(True)
    as_model(given).close()
    assert closed == [True]
    given.close = True
    as_model(given).close()


def test_an_object_with_every_attribute_is_not_trusted():
    model = as_model(Mock(name="m", asks=None))
    assert (model.prefetch, model.warnings, model.usage_by_benchmark) == (0, (), {})


def test_backends_give_models():
    assert isinstance(load_model("demo") if demo.weights() else Least(), Model)
    assert issubclass(HfModel, Model)
    assert issubclass(Replay, Model)
    assert issubclass(EndpointModel, Model)


def test_a_backend_may_give_any_object(monkeypatch):
    monkeypatch.setattr(demo, "open_model", lambda rest: Right())
    assert load_model("demo").name == "right"
    assert isinstance(load_model("demo"), Model)
