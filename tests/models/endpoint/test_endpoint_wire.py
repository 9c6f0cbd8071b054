"""Bodies that are sent, answers that are read: every shape that servers are known to give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models.endpoint import wire
from pytest_llmeval.models.endpoint.faults import Failed
from pytest_llmeval.models.endpoint.faults import of_status
from pytest_llmeval.models.endpoint.spec import parse_spec
from pytest_llmeval.models.endpoint.wire import Dialect
from pytest_llmeval.models.endpoint.wire import Said
from pytest_llmeval.models.endpoint.wire import Tokens

CHAT = parse_spec("m?base_url=http://h/v1")
PLAIN = parse_spec("m?base_url=http://h/v1&api=completions")
PROMPT = Prompt("Be brief.\n\n", (("1+1?", "2"),), "2+2?")
REQUEST = Request("q", PROMPT, decoding=Decoding(max_tokens=5, stop=("a", "b", "c", "d", "e")))
DRAWN = replace(
    REQUEST, decoding=Decoding(max_tokens=5, temperature=0.7, top_p=0.9, top_k=40, min_p=0.1)
)


def test_a_plain_protocol_is_what_the_user_says() -> None:
    body = wire.generation(CHAT, [REQUEST], Dialect()).body
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Be brief.\n\n1+1? 2\n\n2+2?"}],
        "max_tokens": 5,
        "temperature": 0.0,
        "stop": ["a", "b", "c", "d"],
    }


def test_a_chat_protocol_has_a_system_message_and_turns() -> None:
    body = wire.generation(CHAT, [replace(REQUEST, chat=True)], Dialect()).body
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert body["messages"][0]["content"] == "Be brief."


def test_completions_get_the_text() -> None:
    call = wire.generation(PLAIN, [REQUEST], Dialect())
    assert call.path == "/completions"
    assert call.body["prompt"] == PROMPT.text


def test_sampling_is_sent_whole_and_seeded_by_the_request() -> None:
    body = wire.generation(CHAT, [DRAWN], Dialect()).body
    assert (body["top_p"], body["top_k"], body["min_p"]) == (0.9, 40, 0.1)
    seeds = {
        wire.generation(CHAT, [replace(DRAWN, **change)], Dialect()).body["seed"]
        for change in ({}, {"sample": 1}, {"seed": 1}, {"id": "r"})
    }
    assert len(seeds) == 4
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_what_a_server_does_not_understand_is_left_out() -> None:
    spare = Dialect(tokens_field="max_completion_tokens", seed=False, stop=False, several=False)
    body = wire.generation(CHAT, [DRAWN, replace(DRAWN, sample=1)], spare).body
    assert body["max_completion_tokens"] == 5
    assert not {"max_tokens", "seed", "stop", "n"} & body.keys()
    assert wire.generation(CHAT, [DRAWN, DRAWN], Dialect()).body["n"] == 2


def test_letters_are_asked_for_in_each_api() -> None:
    chat = wire.next_letter(CHAT, REQUEST, Dialect(top=5)).body
    plain = wire.next_letter(PLAIN, REQUEST, Dialect(top=5)).body
    assert (chat["logprobs"], chat["top_logprobs"], chat["max_tokens"]) == (True, 5, 1)
    assert (plain["logprobs"], plain["max_tokens"]) == (5, 1)


def test_an_echo_asks_for_all_choices_at_once() -> None:
    request = replace(REQUEST, choices=("A", "B"))
    assert wire.echo(PLAIN, request).body["prompt"] == [f"{PROMPT.text} A", f"{PROMPT.text} B"]


def test_a_lone_surrogate_can_be_sent() -> None:
    request = Request("q", Prompt("", (), "ok \ud83d"))
    wire.generation(CHAT, [request], Dialect()).body["messages"][0]["content"].encode()


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "tokens_field"),
        ("stop: Extra inputs are not permitted", "stop"),
        ("Unsupported parameter: 'seed'", "seed"),
        ("n must be 1 when using greedy sampling", "several"),
    ],
)
def test_a_refusal_is_put_otherwise(message: str, change: str) -> None:
    request = replace(DRAWN, decoding=replace(DRAWN.decoding, stop=("x",)))
    call = wire.generation(CHAT, [request, replace(request, sample=1)], Dialect())
    other = wire.adapted(Dialect(), call, of_status(400, {"message": message}, {}))
    assert other is not None
    assert getattr(other, change) != getattr(Dialect(), change)
    assert replace(other, **{change: getattr(Dialect(), change)}) == Dialect()


def test_fewer_top_logprobs_until_none_are_left() -> None:
    dialect: Dialect | None = Dialect()
    refusal = of_status(400, {"message": "top_logprobs must be at most 5"}, {})
    tried = []
    while dialect is not None:
        tried.append(dialect.top)
        dialect = wire.adapted(dialect, wire.next_letter(CHAT, REQUEST, dialect), refusal)
    assert tried == [20, 10, 5, 3, 2]


def test_other_refusals_are_final() -> None:
    call = wire.generation(CHAT, [REQUEST], Dialect())
    assert wire.adapted(Dialect(), call, of_status(400, {"message": "no such model"}, {})) is None
    assert wire.adapted(Dialect(), call, of_status(429, {"message": "stop that"}, {})) is None
    too_long = of_status(400, {"code": "context_length_exceeded", "message": "n is …"}, {})
    many = wire.generation(CHAT, [DRAWN, DRAWN], Dialect())
    assert wire.adapted(Dialect(), many, too_long) is None


# --- answers


def one(message: Any, finish: str | None = "stop", stop: tuple[str, ...] = ()) -> Said:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    (said,) = wire.texts(CHAT, wire.check({"choices": [choice]}), stop)
    return said


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "B"}, "B", None),
        ({"content": None}, "", None),
        ({}, "", None),
        (None, "", None),
        ({"content": "B", "reasoning_content": "so B"}, "B", "so B"),
        ({"content": "B", "reasoning": "so B"}, "B", "so B"),
        ({"content": "<think>so B</think>\n\nB"}, "B", "so B"),
        ({"content": "so B\n</think> B"}, "B", "so B"),
        ({"content": "[THINK]so B[/THINK]B"}, "B", "so B"),
        ({"content": "<think>so"}, "", "so"),
        ({"content": "<mm:think>so B</mm:think>B"}, "B", "so B"),
        ({"content": "analysisSo B.assistantfinalC"}, "C", "So B."),
        ({"content": "analysisSo B."}, "", "So B."),
        ({"content": [{"type": "text", "text": "B"}, {"type": "image"}]}, "B", None),
    ],
)
def test_texts_and_thoughts(message: Any, text: str, reasoning: str | None) -> None:
    said = one(message)
    assert (said.text, said.reasoning) == (text, reasoning)


def test_an_answer_that_ends_within_reasoning_is_a_truncated_one() -> None:
    for finish in (None, "stop", "length"):
        assert one({"content": "<think>so B"}, finish) == Said("", "length", "so B")
    assert one({"content": "<think>so B"}, "content_filter").finish_reason == "content_filter"


def test_case_g06_a_budget_spent_on_thoughts_is_a_truncated_answer() -> None:
    said = one(
        {"role": "assistant", "content": None, "reasoning_content": "so the answer might be B"},
        "length",
    )
    assert said == Said("", "length", "so the answer might be B")


@pytest.mark.parametrize(
    "data",
    [{"choices": []}, {"choices": [{"message": None, "finish_reason": "content_filter"}]}],
)
def test_case_g07_a_filtered_answer_is_an_empty_one(data: dict[str, Any]) -> None:
    assert wire.texts(CHAT, wire.check(data), ()) == [Said("", "content_filter")]


def test_the_text_is_cut_before_every_stop_string_also_those_that_were_not_sent() -> None:
    assert one({"content": "B\n\nQuestion: next"}, "length", ("###", "\n\n")) == Said("B", "stop")
    assert one({"content": "B"}, "length", ("\n\n",)) == Said("B", "length")
    # A stop string within the thought stops nothing.
    assert one({"content": "a\n\nb</think>B"}, "stop", ("\n\n",)).text == "B"


def test_choices_are_put_in_order() -> None:
    choices = [{"index": 1, "text": "b"}, {"index": 0, "text": "a"}]
    assert [said.text for said in wire.texts(PLAIN, {"choices": choices}, ())] == ["a", "b"]


@pytest.mark.parametrize("data", ["<html>", None, [], {}, {"choices": None}, {"choices": ["a"]}])
def test_what_is_no_answer_is_asked_for_again(data: object) -> None:
    with pytest.raises(Failed) as caught:
        wire.check(data)
    assert caught.value.fault.retryable


def test_top_tokens_of_both_apis() -> None:
    content = [{"token": "A", "logprob": -1, "top_logprobs": [{"token": "A", "logprob": -1}]}]
    chat = {"choices": [{"logprobs": {"content": content}}]}
    plain = {"choices": [{"logprobs": {"top_logprobs": [{"A": -1}]}}]}
    assert wire.top_tokens(CHAT, chat) == wire.top_tokens(PLAIN, plain) == [("A", -1.0)]


@pytest.mark.parametrize(
    "logprobs", [None, {}, {"content": None}, {"content": []}, {"content": [{}]}, "none"]
)
def test_no_top_tokens_are_none(logprobs: object) -> None:
    assert wire.top_tokens(CHAT, {"choices": [{"logprobs": logprobs}]}) is None
    assert wire.top_tokens(PLAIN, {"choices": [{"logprobs": logprobs}]}) is None


def test_usage() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert wire.tokens({"usage": usage}) == Tokens(10, 7, reasoning=5, cached=8)
    for nothing in (None, {}, "?", {"prompt_tokens": "many", "prompt_tokens_details": None}):
        assert wire.tokens({"usage": nothing}) == Tokens()
