"""``pytest_llmeval.testing.FakeModel``: scripted responses, in process and in a session."""

from __future__ import annotations

import doctest

import pytest

import pytest_llmeval.testing
from pytest_llmeval import Request
from pytest_llmeval import Response
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Prompt
from pytest_llmeval.models import Model
from pytest_llmeval.models import as_model
from pytest_llmeval.testing import FakeModel


def request(item: str, sample: int = 0) -> Request:
    return Request(item, Prompt("", (), "Question?"), sample=sample)


def answered(model: Model, *items: str) -> list[Response]:
    return list(model.answer([request(item) for item in items]))


def test_the_example_is_executed():
    result = doctest.testmod(pytest_llmeval.testing)
    assert result.attempted >= 5
    assert result.failed == 0


def test_a_text_is_a_finished_answer():
    (response,) = answered(FakeModel({"a": "B"}), "a")
    assert response == Response("a", text="B", finish_reason="stop", sample=0)


@pytest.mark.parametrize("scores", [(-1.0, -2.0), [-1, -2]])
def test_numbers_are_log_likelihoods(scores):
    (response,) = answered(FakeModel({"a": scores}), "a")
    assert response == Response("a", logprobs=(-1.0, -2.0), sample=0)


def test_a_response_is_returned_as_it_is():
    response = Response("other", text="B", completion_tokens=3)
    assert answered(FakeModel({"a": response}), "a") == [response]


def test_a_function_has_the_request():
    model = FakeModel(lambda request: f"{request.id}{request.sample}")
    responses = list(model.answer([request("a", 1), request("b", 2)]))
    assert [(response.text, response.sample) for response in responses] == [("a1", 1), ("b2", 2)]


def test_an_item_that_is_not_scripted_is_an_error():
    (response,) = answered(FakeModel({"a": "B"}), "b")
    assert response.error == "FakeModel has no answer for item 'b'"


def test_a_text_as_error_stops_no_other_item():
    first, second = answered(FakeModel({"a": "A", "b": "B"}, errors={"a": "down"}), "a", "b")
    assert (first.error, first.text) == ("down", None)
    assert (second.error, second.text) == (None, "B")


def test_an_exception_as_error_ends_the_responses():
    model = FakeModel({"a": "A", "c": "C"}, errors={"b": ModelError("gone")})
    responses = iter(model.answer([request(item) for item in "abc"]))
    assert next(responses).text == "A"
    with pytest.raises(ModelError, match="gone"):
        next(responses)
    assert list(responses) == []


def test_delays_come_before_responses(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    by_item = FakeModel(lambda request: "B", delays={"b": 0.25}, errors={"c": "down"})
    assert [response.seconds for response in answered(by_item, "a", "b", "c")] == [None, 0.25, None]
    assert [response.seconds for response in answered(FakeModel({"a": "A"}, delays=0.5), "a")] == [
        0.5
    ]
    assert slept == [0.0, 0.25, 0.0, 0.5]


def test_requests_are_kept_and_counted_as_they_are_answered():
    model = FakeModel(lambda request: "B")
    responses = iter(model.answer([request("a"), request("a", 1), request("b")]))
    next(responses)
    next(responses)
    assert model.requested == {"a": 2}
    next(responses)
    assert [request.id for request in model.requests] == ["a", "a", "b"]


def test_fake_model_is_a_model_and_can_be_closed():
    model = FakeModel({}, name="mine", fingerprint=None, asks=["text"])
    assert as_model(model) is model
    assert (model.name, model.fingerprint, model.asks) == ("mine", None, {"text"})
    assert not model.closed
    model.close()
    assert model.closed
