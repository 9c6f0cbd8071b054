"""What a failed request means: try again or not, how long to wait, when to give up."""

from __future__ import annotations

from datetime import UTC
from datetime import datetime
from typing import Any

import pytest

from pytest_llmeval.models.openai import faults
from pytest_llmeval.models.openai.faults import Fault
from pytest_llmeval.models.openai.faults import StopRule
from pytest_llmeval.models.openai.spec import Secret

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def of(status: int, body: Any = None, **headers: str) -> Fault:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return faults.status_fault(status, body, named, NOW)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_passing_faults_are_retried(status: int) -> None:
    assert of(status).retryable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 422])
def test_permanent_faults_are_not_retried(status: int) -> None:
    fault = of(status, {"message": "no\n  way", "code": "because"})
    assert not fault.retryable
    assert fault.message == f"the server answered {status} because: no way"


def test_an_exhausted_quota_is_not_a_rate_limit() -> None:
    fault = of(429, {"error": {"message": "You exceeded…", "code": "insufficient_quota"}})
    assert not fault.retryable
    assert fault.message.startswith("quota exhausted: ")
    assert not of(429, {"message": "You exceeded your current quota, …"}).retryable
    assert of(429, {"message": "Rate limit reached", "code": "rate_limit_exceeded"}).retryable


@pytest.mark.parametrize(
    "body",
    [
        {"message": "too much", "code": "context_length_exceeded"},
        {"message": "This model's maximum context length is 4096 tokens. However, …"},
        {"object": "error", "message": "The prompt is longer than max_model_len", "code": 400},
        {"error": "Input validation error: `inputs` must have less than 1024 tokens."},
        {"error": {"code": 400, "message": "exceeds the available context size"}},
    ],
)
def test_a_prompt_that_is_too_long_is_the_items_own(body: Any) -> None:
    fault = of(400, body)
    assert fault.item_specific
    assert not fault.retryable
    assert fault.message.startswith("the prompt is too long: ")


def test_every_shape_of_an_error_is_read() -> None:
    assert "gone" in of(404, {"detail": "gone"}).message
    assert "gone" in of(404, {"error": "gone"}).message
    assert "gone" in of(404, "<h1>gone</h1>").message
    assert of(404, None).message == "the server answered 404"
    assert len(of(404, "long " * 1000).message) < 400


def test_an_error_under_a_status_of_success() -> None:
    assert faults.body_fault({"message": "overloaded", "code": 502}).retryable
    assert faults.body_fault("no reason").retryable
    assert not faults.body_fault({"message": "no such model", "code": 404}).retryable


def test_giving_up_takes_a_row_of_equal_failures() -> None:
    rule = StopRule(3)
    no_key, no_model = of(401), of(404)
    assert [rule.failed(no_key) for _ in range(2)] == [False, False]
    assert not rule.failed(no_model)
    assert [rule.failed(no_key) for _ in range(3)] == [False, False, True]


def test_an_answer_begins_the_row_anew() -> None:
    rule = StopRule(2)
    assert not rule.failed(of(401))
    rule.succeeded()
    assert not rule.failed(of(401))
    assert rule.failed(of(401))


def test_long_prompts_stop_a_run_only_if_nothing_else_was_answered() -> None:
    too_long = of(400, {"code": "context_length_exceeded", "message": ""})
    rule = StopRule(2)
    assert [rule.failed(too_long) for _ in range(2)] == [False, True]
    rule = StopRule(2)
    rule.succeeded()
    assert [rule.failed(too_long) for _ in range(9)] == [False] * 9


def test_no_part_of_a_fault_holds_the_key() -> None:
    key = "sk-very-secret-4711"
    fault = of(401, {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"})
    assert key not in repr(fault.redacted(Secret(key)))
    assert "***" in fault.redacted(Secret(key)).message
