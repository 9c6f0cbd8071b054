"""Bodies that are sent, answers that are read: every shape that servers are known to give."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core.usage import TokenUsage
from pytest_llmeval.models.openai import payloads
from pytest_llmeval.models.openai.dialect import Dialect
from pytest_llmeval.models.openai.faults import RequestFailedError
from pytest_llmeval.models.openai.payloads import Completion
from pytest_llmeval.models.openai.spec import parse_spec
from pytest_llmeval.models.openai.top_logprobs import TopTokens

CHAT = parse_spec("m?base_url=http://h/v1")
PLAIN = parse_spec("m?base_url=http://h/v1&api=completions")
PROMPT = Prompt("Be brief.\n\n", (("1+1?", "2"),), "2+2?")
REQUEST = Request("q", PROMPT, decoding=Decoding(max_tokens=5, stop=("a", "b", "c", "d", "e")))
DRAWN = replace(
    REQUEST, decoding=Decoding(max_tokens=5, temperature=0.7, top_p=0.9, top_k=40, min_p=0.1)
)


def test_a_plain_protocol_sends_the_users_settings() -> None:
    body = payloads.generation_call(CHAT, [REQUEST], Dialect()).body
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Be brief.\n\n1+1? 2\n\n2+2?"}],
        "max_tokens": 5,
        "temperature": 0.0,
    }


def test_a_chat_protocol_has_a_system_message_and_turns() -> None:
    body = payloads.generation_call(CHAT, [replace(REQUEST, chat=True)], Dialect()).body
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert body["messages"][0]["content"] == "Be brief."


def test_completions_get_the_text() -> None:
    call = payloads.generation_call(PLAIN, [REQUEST], Dialect())
    assert call.path == "/completions"
    assert call.body["prompt"] == PROMPT.text
    assert call.body["stop"] == ["a", "b", "c", "d"]


def test_sampling_is_sent_whole_and_seeded_by_the_request() -> None:
    body = payloads.generation_call(CHAT, [DRAWN], Dialect()).body
    assert (body["top_p"], body["top_k"], body["min_p"]) == (0.9, 40, 0.1)
    seeds = {
        payloads.generation_call(CHAT, [replace(DRAWN, **change)], Dialect()).body["seed"]
        for change in ({}, {"sample": 1}, {"seed": 1}, {"id": "r"}, {"arm": "cyclic@1"})
    }
    assert len(seeds) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_letters_are_requested_in_each_api() -> None:
    chat = payloads.letter_call(CHAT, REQUEST, Dialect(top=5)).body
    plain = payloads.letter_call(PLAIN, REQUEST, Dialect(top=5)).body
    assert (chat["logprobs"], chat["top_logprobs"], chat["max_tokens"]) == (True, 5, 1)
    assert (plain["logprobs"], plain["max_tokens"]) == (5, 1)


def test_an_echo_requests_all_choices_at_once() -> None:
    request = replace(REQUEST, choices=("A", "B"))
    assert payloads.echo_call(PLAIN, request).body["prompt"] == [
        f"{PROMPT.text} A",
        f"{PROMPT.text} B",
    ]


def test_a_lone_surrogate_can_be_sent() -> None:
    request = Request("q", Prompt("", (), "ok \ud83d"))
    payloads.generation_call(CHAT, [request], Dialect()).body["messages"][0]["content"].encode()


# --- answers


def completion_of(
    message: Any, finish: str | None = "stop", stop: tuple[str, ...] = ()
) -> Completion:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    (completion,) = payloads.read_completions(
        CHAT, payloads.check_reply({"choices": [choice]}), stop
    )
    return completion


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
    completion = completion_of(message)
    assert (completion.text, completion.reasoning) == (text, reasoning)


def test_an_answer_that_ends_within_reasoning_is_a_truncated_one() -> None:
    for finish in (None, "stop", "length"):
        assert completion_of({"content": "<think>so B"}, finish) == Completion("", "length", "so B")
    assert (
        completion_of({"content": "<think>so B"}, "content_filter").finish_reason
        == "content_filter"
    )


def test_a_budget_spent_on_thoughts_counts_as_truncated() -> None:
    completion = completion_of(
        {"role": "assistant", "content": None, "reasoning_content": "so the answer might be B"},
        "length",
    )
    assert completion == Completion("", "length", "so the answer might be B")


@pytest.mark.parametrize(
    "data",
    [{"choices": []}, {"choices": [{"message": None, "finish_reason": "content_filter"}]}],
)
def test_a_filtered_answer_is_empty(data: dict[str, Any]) -> None:
    assert payloads.read_completions(CHAT, payloads.check_reply(data), ()) == [
        Completion("", "content_filter")
    ]


def test_the_text_is_cut_before_stop_strings_that_were_not_sent() -> None:
    assert completion_of(
        {"content": "B\n\nQuestion: next"}, "length", ("###", "\n\n")
    ) == Completion("B", "stop")
    assert completion_of({"content": "B"}, "length", ("\n\n",)) == Completion("B", "length")
    # A stop string within the thought stops nothing.
    assert completion_of({"content": "a\n\nb</think>B"}, "stop", ("\n\n",)).text == "B"


def test_choices_are_put_in_order() -> None:
    choices = [{"index": 1, "text": "b"}, {"index": 0, "text": "a"}]
    assert [
        completion.text for completion in payloads.read_completions(PLAIN, {"choices": choices}, ())
    ] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("data", ["<html>", None, [], {}, {"choices": None}, {"choices": ["a"]}])
def test_a_response_without_an_answer_is_requested_again(data: object) -> None:
    with pytest.raises(RequestFailedError) as caught:
        payloads.check_reply(data)
    assert caught.value.fault.retryable


def first_of(*listed: Any, sampled: str = "A") -> Any:
    """An answer of the chat API with these tokens as the likeliest."""
    top = [{"token": token, "logprob": logprob, **more} for token, logprob, more in listed]
    return {"choices": [{"logprobs": {"content": [{"token": sampled, "top_logprobs": top}]}}]}


def by_text(top: Any, *sampled: str) -> Any:
    """The same of the completions API."""
    return {"choices": [{"logprobs": {"tokens": list(sampled), "top_logprobs": [top]}}]}


def test_top_tokens_of_both_apis() -> None:
    chat = first_of(("A", -1, {}), ("B", -2.0, {}))
    plain = by_text({"A": -1, "B": -2.0}, "A")
    expected = TopTokens((("A", -1.0), ("B", -2.0)), math.exp(-2.0))
    assert payloads.read_top_tokens(chat, 20) == payloads.read_top_tokens(plain, 2) == expected
    # llama.cpp has the chat's form for both.
    assert payloads.read_top_tokens(first_of(("A", -1, {"id": 7, "bytes": [65]})), 1) is not None


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": [{}]},
        {"content": [{"top_logprobs": []}]},
        {"content": [{"top_logprobs": None}]},
        {"top_logprobs": []},
        {"top_logprobs": [None]},
        {"top_logprobs": [{}]},
        "none",
        [1],
    ],
)
def test_a_response_without_top_tokens(logprobs: object) -> None:
    assert payloads.read_top_tokens({"choices": [{"logprobs": logprobs}]}, 20) is None


def test_repeated_tokens_count_once_and_similar_tokens_twice() -> None:
    def letters(data: Any) -> Any:
        top = payloads.read_top_tokens(data, 3)
        assert top is not None
        return sorted(top.tokens)

    twice = ("A", -1.0), ("A", -3.0), ("B", -2.0)
    assert letters(first_of(*((*token, {}) for token in twice))) == sorted(twice)
    assert letters(first_of(*[("A", -1.0, {})] * 2, ("B", -2.0, {}))) == [("A", -1.0), ("B", -2.0)]
    # Ids and bytes distinguish tokens of one value.
    for more in ({"id": 1}, {"id": 2}), ({"bytes": [65]}, {"bytes": [32, 65]}):
        alike = [("A", -1.0, extra) for extra in more]
        assert letters(first_of(*alike)) == [("A", -1.0)] * 2


def test_a_list_by_text_lacks_tokens_where_it_is_shorter_than_requested() -> None:
    def bound(data: Any, requested: int) -> float:
        top = payloads.read_top_tokens(data, requested)
        assert top is not None
        return top.unlisted

    assert bound(by_text({"A": -1.0, "B": -2.0, "C": -3.0}, "B"), 3) == math.exp(-3.0)
    # SGLang keeps one of several tokens with the same text.
    assert bound(by_text({"A": -1.0, "B": -2.0, "C": -3.0}, "B"), 4) == 1.0
    # The generated token is listed also where it is not among the likeliest.
    assert bound(by_text({"A": -1.0, "B": -2.0, "C": -9.0}, "C"), 2) == math.exp(-2.0)
    assert bound(by_text({"A": -1.0, "B": -2.0, "C": -9.0}, "C"), 3) == 1.0
    assert bound(first_of(("A", -1.0, {}), ("C", -9.0, {}), sampled="C"), 2) == math.exp(-1.0)
    assert bound(first_of(("C", -9.0, {}), sampled="C"), 2) == 1.0


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ([("A", 0.6), ("B", 0.3)], r"'A' has a log-probability above 0 \(0.6\)"),
        ([("A", -1.0), ("B", math.nan)], "'B' has nan in place of a log-probability"),
        ([("A", -1.0), ("B", "-2")], "'B' has '-2' in place of a log-probability"),
        ([("A", -1.0), ("B", True)], "'B' has True in place"),
        ([("A", -0.1), ("B", -0.2)], "probabilities of the likeliest tokens sum to 1.72"),
        ([("A", -9999.0), ("B", -math.inf)], "no log-probability in the list"),
        ([("A", None)], "no log-probability in the list"),
    ],
)
def test_values_that_are_no_log_probabilities_are_refused(listed: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        payloads.read_top_tokens(first_of(*((*token, {}) for token in listed)), 5)
    with pytest.raises(ValueError, match=reason):
        payloads.read_top_tokens(by_text(dict(listed), "A"), 5)


@pytest.mark.parametrize("placeholder", [-9999.0, -9999, -100.0, -math.inf, None, -3.4e38])
def test_a_placeholder_is_a_token_that_is_not_listed(placeholder: Any) -> None:
    top = payloads.read_top_tokens(first_of(("A", -1e-7, {}), ("B", placeholder, {})), 2)
    assert top == TopTokens((("A", -1e-7),))


def test_usage() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert payloads.read_usage({"usage": usage}) == TokenUsage(10, 7, reasoning=5, cached=8)
    for nothing in (None, {}, "?", {"prompt_tokens": "many", "prompt_tokens_details": None}):
        assert payloads.read_usage({"usage": nothing}) == TokenUsage()
