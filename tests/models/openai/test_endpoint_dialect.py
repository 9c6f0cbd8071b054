"""Refused requests: what is put otherwise because no score depends on it, and what is explained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models.openai import payloads
from pytest_llmeval.models.openai.dialect import Dialect
from pytest_llmeval.models.openai.dialect import adapt_dialect
from pytest_llmeval.models.openai.dialect import suggest_fix
from pytest_llmeval.models.openai.faults import status_fault
from pytest_llmeval.models.openai.spec import parse_spec

CHAT = parse_spec("m?base_url=http://h/v1")
PLAIN = parse_spec("m?base_url=http://h/v1&api=completions")
GREEDY = Request("q", Prompt("", (), "2+2?"), decoding=Decoding(max_tokens=5, stop=("x",)))
SAMPLED = replace(GREEDY, decoding=Decoding(max_tokens=5, temperature=1.0, stop=("x",)))
NARROW = replace(
    GREEDY, decoding=Decoding(max_tokens=5, temperature=0.7, top_p=0.9, top_k=40, min_p=0.1)
)


def body_of(*group: Request, spec: Any = PLAIN, dialect: Dialect | None = None) -> dict[str, Any]:
    return payloads.generation_call(spec, group, dialect or Dialect()).body


def refusal(message: str, status: int = 400, **fields: Any) -> Any:
    return status_fault(status, {"message": message, **fields}, {})


def unsupported(name: str) -> Any:
    """As OpenAI refuses a parameter (kd-research/Techies#42, tgpt#333)."""
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return refusal(message, param=name, code="unsupported_parameter")


def test_refused_parameters_are_left_out_only_where_no_score_moves() -> None:
    dialect = Dialect(omitted=frozenset({"seed", "stop", "top_p", "temperature"}))
    assert dialect.filter_body(body_of(SAMPLED)).keys() == {"model", "prompt", "max_tokens"}
    spoken = dialect.filter_body(body_of(NARROW))
    assert (spoken["temperature"], spoken["top_p"]) == (0.7, 0.9)
    assert "seed" not in spoken
    assert dialect.filter_body(body_of(GREEDY))["temperature"] == 0.0


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        (unsupported("max_tokens"), {"tokens_field": "max_completion_tokens"}),
        (
            refusal("'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
            {"tokens_field": "max_completion_tokens"},
        ),
        (unsupported("stop"), {"omitted": frozenset({"stop"})}),
        (refusal("stop: Extra inputs are not permitted"), {"omitted": frozenset({"stop"})}),
        (unsupported("seed"), {"omitted": frozenset({"seed"})}),
        (unsupported("top_p"), {"omitted": frozenset({"top_p"})}),
        (unsupported("temperature"), {"omitted": frozenset({"temperature"})}),
        # TGI takes no top_p of 1 (huggingface/text-generation-inference#2222).
        (
            status_fault(422, "Input validation error: `top_p` must be > 0.0 and < 1.0", {}),
            {"omitted": frozenset({"top_p"})},
        ),
        (refusal("n must be 1 when using greedy sampling"), {"supports_n": False}),
        (refusal("Only one completion choice is allowed", status=500), {"supports_n": False}),
        (refusal("bad request"), {"supports_n": False}),
        (
            refusal("`temperature` and `top_p` cannot both be specified for this model"),
            {"omitted": frozenset({"temperature"})},
        ),
    ],
)
def test_a_refusal_is_put_otherwise(fault: Any, change: dict[str, Any]) -> None:
    body = body_of(SAMPLED, replace(SAMPLED, sample=1))
    assert adapt_dialect(Dialect(), body, fault) == replace(Dialect(), **change)


def test_a_refusal_about_another_parameter_is_not_one_of_several_samples() -> None:
    body = body_of(NARROW, replace(NARROW, sample=1))
    assert adapt_dialect(Dialect(), body, unsupported("top_p")) is None
    assert (
        adapt_dialect(Dialect(), body, refusal("Unrecognized request argument supplied: top_k"))
        is None
    )


def test_of_two_exclusive_parameters_the_neutral_one_is_left_out() -> None:
    fault = refusal("`temperature` and `top_p` cannot both be specified for this model")
    cool = replace(SAMPLED, decoding=replace(SAMPLED.decoding, temperature=0.6))
    assert adapt_dialect(Dialect(), body_of(cool), fault) == Dialect(omitted=frozenset({"top_p"}))
    assert adapt_dialect(Dialect(), body_of(NARROW), fault) is None


def test_the_temperature_of_an_echo_is_left_out() -> None:
    request = replace(GREEDY, choices=("A", "B"))
    body = payloads.echo_call(parse_spec("m?base_url=http://h/v1&choices=echo"), request).body
    other = adapt_dialect(Dialect(), body, unsupported("temperature"))
    assert other is not None
    assert "temperature" not in other.filter_body(body)


def test_fewer_top_logprobs_until_none_are_left() -> None:
    dialect: Dialect | None = Dialect()
    fault = refusal("top_logprobs must be at most 5")
    tried = []
    while dialect is not None:
        tried.append(dialect.top)
        dialect = adapt_dialect(dialect, payloads.letter_call(CHAT, GREEDY, dialect).body, fault)
    assert tried == [20, 10, 5, 3, 2]


def test_a_server_without_log_probabilities_gets_no_second_request() -> None:
    body = payloads.letter_call(CHAT, GREEDY, Dialect()).body
    for fault in (unsupported("logprobs"), refusal("Gaudi doesn't support logprobs.")):
        assert adapt_dialect(Dialect(), body, fault) is None
        assert suggest_fix(body, fault).startswith("remove choices=top_logprobs")


def test_other_refusals_are_final() -> None:
    many = body_of(NARROW, NARROW)
    for fault in (
        refusal("stop that", status=429),
        refusal("n is too much", code="context_length_exceeded"),
        refusal("no such key: n", status=401),
        refusal("out of order", status=500),
    ):
        assert adapt_dialect(Dialect(), many, fault) is None
    assert adapt_dialect(Dialect(), body_of(GREEDY), refusal("no such model")) is None


@pytest.mark.parametrize(
    ("fault", "request_", "advice"),
    [
        # gabrii/Cursor-Azure-GPT-5#33
        (
            refusal(
                "Unsupported value: 'temperature' does not support 0 with this model. Only the default"
                " (1) value is supported.",
                param="temperature",
                code="unsupported_value",
            ),
            GREEDY,
            "use --llm-temperature 1",
        ),
        (
            status_fault(422, "`temperature` must be strictly positive", {}),
            GREEDY,
            "--llm-temperature 1",
        ),
        (unsupported("temperature"), NARROW, "--llm-temperature 1"),
        (unsupported("top_p"), NARROW, "no top_p (here 0.9)"),
        (refusal("Unrecognized request argument supplied: top_k"), NARROW, "no top_k (here 40)"),
        (refusal("min_p: Extra inputs are not permitted"), NARROW, "no min_p (here 0.1)"),
        (refusal("max_tokens is too large: 5. The model supports 4"), GREEDY, "--llm-max-tokens"),
        (
            refusal("'max_tokens' is too large: the model's maximum context length is 4"),
            GREEDY,
            "--llm-max-tokens",
        ),
    ],
)
def test_a_permanent_refusal_names_the_remedy(fault: Any, request_: Request, advice: str) -> None:
    body = body_of(request_)
    assert adapt_dialect(Dialect(), body, fault) is None
    assert advice in suggest_fix(body, fault)


def test_there_is_no_advice_on_what_is_not_about_a_parameter() -> None:
    for fault in (
        refusal("no such model", status=404),
        refusal("temperature sensor", status=401),
        refusal("out of order", status=503),
        refusal("'temperature' limit", status=429),
    ):
        assert suggest_fix(body_of(GREEDY), fault) == ""
