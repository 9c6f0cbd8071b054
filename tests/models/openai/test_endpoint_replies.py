"""Replies and refusals over HTTP: filters, refusals of the model, stop strings, values that are odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import LETTER_DECODING
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Response
from pytest_llmeval.storage.response_cache import ResponseCache
from support.endpoint_bodies import LETTERS
from support.endpoint_bodies import right_letter
from support.endpoint_server import Script
from support.endpoint_server import serve

CHOICES = tuple(LETTERS)
FILTER = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content"
        " management policy.",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }
}
SORRY = "I'm sorry, but I can't help with option B."


def reply(content: Any, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **more}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def answers(model: Any, requests: list[Any]) -> list[Response]:
    responses = list(model.answer(requests))
    assert len(responses) == len(requests)
    return sorted(responses, key=lambda response: (response.id, response.sample or 0))


def scripted(opened: Any, make: Any, replies: list[Any], **options: Any) -> tuple[Response, int]:
    """The response to one request that gets these replies, and how often it was sent."""
    with serve(Script(replies={"question": replies})) as server:
        (response,) = opened(server, **options).answer(make(1))
        return response, len(server.arrivals)


# --- filters and refusals


@pytest.mark.parametrize("query", ["", "?choices=top_logprobs", "?choices=echo"])
def test_a_filter_before_the_model_ends_no_run(query: str, opened: Any, make: Any) -> None:
    choices = CHOICES if query else ()
    with serve(Script(replies={"question": [[400, FILTER]]})) as server:
        model = opened(server, query)
        for response in answers(model, make(60, choices=choices)):
            assert (response.text, response.finish_reason) == ("", "content_filter")
            assert (response.error, response.logprobs) == (None, ())
    assert len(server.arrivals) == 60 + (query == "?choices=echo")  # the probe
    assert model.usage.failed == 0


def test_filters_by_status_400_and_200_give_the_same(opened: Any, make: Any) -> None:
    filtered = {"choices": [{"message": None, "finish_reason": "content_filter"}]}
    before, _ = scripted(opened, make, [[400, FILTER]])
    after, _ = scripted(opened, make, [filtered])
    assert (before.text, before.finish_reason) == (after.text, after.finish_reason)


def test_filtered_content_is_not_cached(opened: Any, make: Any, tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "cache")
    replies = {"question 0": [[400, FILTER]], "question 1": [reply(None, refusal=SORRY)]}
    with serve(Script(replies=replies)) as server:
        for _ in range(2):
            answers(opened(server, cache=cache), make(2))
        assert len(server.arrivals) == 4
    assert cache.info().responses == {}


@pytest.mark.parametrize(
    "answer",
    [
        reply(None, refusal=SORRY),
        reply("", refusal=SORRY),
        reply([{"type": "refusal", "refusal": SORRY}]),  # OpenAI's content parts
        reply(SORRY, "refusal"),  # Anthropic's stop reason
    ],
)
def test_a_refusal_keeps_its_text(answer: Any, opened: Any, make: Any) -> None:
    response, attempts = scripted(opened, make, [answer])
    assert (response.text, response.finish_reason) == (SORRY, "refusal")
    assert (response.error, attempts) == (None, 1)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (reply(None, refusal=SORRY), SORRY),
        (reply("I", refusal=SORRY), SORRY),
        (reply("I", REFUSED), "I"),
    ],
)
def test_a_refused_letter_is_no_letter(answer: Any, text: str, opened: Any, make: Any) -> None:
    """Also if its likeliest tokens are listed."""
    listed = [{"token": letter, "logprob": -1.5, "bytes": None} for letter in CHOICES]
    answer["choices"][0]["logprobs"] = {"content": [{**listed[0], "top_logprobs": listed}]}
    with serve(Script(replies={"question": [answer]})) as server:
        (response,) = answers(opened(server, "?choices=top_logprobs"), make(1, choices=CHOICES))
    assert (response.text, response.finish_reason) == (text, REFUSED)
    assert (response.logprobs, len(server.arrivals)) == ((), 1)


@pytest.mark.parametrize("refusal", [None, "", " ", False, []])
def test_an_empty_refusal_is_ignored(refusal: Any, opened: Any, make: Any) -> None:
    response, _ = scripted(opened, make, [reply("B", refusal=refusal)])
    assert (response.text, response.finish_reason) == ("B", "stop")


def test_a_limit_that_reasoning_used_up_is_a_truncated_reply(opened: Any, make: Any) -> None:
    message = "Could not finish the message because max_tokens or model output limit was reached."
    response, attempts = scripted(opened, make, [[400, {"error": {"message": message}}]])
    assert (response.text, response.finish_reason, attempts) == ("", "length", 1)


# --- requests that can never succeed


@pytest.mark.parametrize("status", [413, 429])
def test_one_request_that_is_too_large_costs_one_request(
    status: int, opened: Any, make: Any
) -> None:
    message = "Request too large for m on tokens per min (TPM): Limit 6000, Requested 7000"
    refused = [status, {"error": {"message": message, "code": "rate_limit_exceeded"}}]
    with serve(Script(replies={"question 7\n": [refused]})) as server:
        responses = answers(opened(server), make(30))
    assert len(server.arrivals) == 30
    assert [response.id for response in responses if response.error is not None] == ["q-7"]
    assert "the request is too large" in str(responses[-3].error)


@pytest.mark.parametrize("after", ["0", "-1", "Thu, 01 Jan 2026 00:00:00 GMT"])
def test_a_wait_that_is_none_does_not_spend_the_retries(after: str, opened: Any, make: Any) -> None:
    replies = [[429, {}, {"Retry-After": after}]] * 5 + [reply("B")]
    with serve(Script(replies={"question": replies})) as server:
        list(opened(server).answer(make(1)))
    gaps = [
        later - earlier
        for earlier, later in zip(server.arrivals, server.arrivals[1:], strict=False)
    ]
    # At least half of 0.01 s, doubled every time.
    assert all(gap >= 0.005 * 2**retry for retry, gap in enumerate(gaps))
    assert len(gaps) == 5


# --- parameters


def test_a_model_of_one_temperature_is_explained_in_one_line(opened: Any, make: Any) -> None:
    error = {
        "message": "Unsupported value: 'temperature' does not support 0 with this model. Only the default"
        " (1) value is supported.",
        "type": "invalid_request_error",
        "param": "temperature",
        "code": "unsupported_value",
    }
    script = Script(refuses={"temperature": (400, {"error": error})}, accepts={"temperature": 1.0})
    with serve(script) as server:
        with pytest.raises(ModelError, match=r"use --llm-temperature 1$") as caught:
            answers(opened(server), make(60))
        assert "\n" not in str(caught.value)
        hot = make(3, decoding=Decoding(max_tokens=16, temperature=1.0))
        assert all(response.error is None for response in answers(opened(server), hot))


def test_a_reasoning_model_of_openai_is_understood_after_one_round(opened: Any, make: Any) -> None:
    """It takes no max_tokens, top_p, seed or temperature, and refuses them one by one."""

    def unsupported(name: str) -> tuple[int, Any]:
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        return 400, {"error": {"message": message, "param": name, "code": "unsupported_parameter"}}

    names = ("max_tokens", "temperature", "top_p", "seed", "n")
    hot = make(8, samples=2, decoding=Decoding(max_tokens=16, temperature=1.0))
    with serve(Script(refuses={name: unsupported(name) for name in names})) as server:
        model = opened(server)
        assert all(response.error is None for response in answers(model, hot))
        assert model.usage.retries == 0
    refused = [body for body in server.bodies if body.keys() & set(names)]
    assert len(refused) == len(names)


def test_a_refused_top_p_does_not_cost_the_samples_of_an_item(opened: Any, make: Any) -> None:
    refused = [400, {"error": {"message": "`top_p` must be below 0.9", "param": "top_p"}}]
    decoding = Decoding(max_tokens=16, temperature=0.8, top_p=0.95)
    with serve(Script(replies={"question 0": [refused]})) as server:
        model = opened(server)
        requests = make(2, samples=3, decoding=decoding)
        first, *_, last = answers(model, requests)
        assert "no top_p (here 0.95)" in str(first.error)
        assert last.error is None
    assert [body["n"] for body in server.bodies] == [3, 3]


# --- stop strings


@pytest.mark.parametrize("content", ["\n\nB", "\n\n\n\nB\n\nBecause", " \n\nB", "B\n\nC"])
def test_a_letter_behind_blank_lines_is_kept(content: str, opened: Any, make: Any) -> None:
    with serve(Script(replies={"question": [reply(content)]})) as server:
        for query in ("", "?api=completions"):
            list(opened(server, query).answer(make(1, decoding=LETTER_DECODING)))
        (response,) = opened(server).answer(make(1, decoding=LETTER_DECODING))
    assert str(response.text).strip() == "B"
    assert not any("stop" in body for body in server.bodies)


def test_stop_strings_end_no_thoughts_of_a_chat(opened: Any, make: Any) -> None:
    """vLLM looks for them in the thoughts, too: vllm-project/vllm#52393, #53066."""
    script = Script(reasoning="The user asks.\n\nQuestion: which one?\n\nSo")
    for stop in (("\n\n",), ("Question:",)):
        with serve(script) as server:
            requests = make(5, decoding=Decoding(max_tokens=64, stop=stop))
            for response in answers(opened(server), requests):
                letter = right_letter(f"question {response.id[2:]}\nAnswer:")
                assert str(response.text).strip() == f"The answer is ({letter})."
                assert response.reasoning == script.reasoning


def test_a_completion_stopped_within_a_thought_is_repeated_without_stop(
    opened: Any, make: Any
) -> None:
    cut = {"choices": [{"text": "<think>Which ", "finish_reason": "stop"}]}
    whole = {"choices": [{"text": "<think>Which Q: one?</think>B Q: C", "finish_reason": "stop"}]}
    decoding = Decoding(max_tokens=64, stop=("Q:", "\n\n"))
    with serve(Script(replies={"question": [cut, whole]})) as server:
        (response,) = opened(server, "?api=completions").answer(make(1, decoding=decoding))
    assert (response.text, response.reasoning) == ("B ", "Which Q: one?")
    assert [body.get("stop") for body in server.bodies] == [["Q:"], None]


def test_a_thought_without_an_answer_is_put_again_once(opened: Any, make: Any) -> None:
    cut = {"choices": [{"text": "<think>Which ", "finish_reason": "stop"}]}
    decoding = Decoding(max_tokens=64, stop=("Q:",))
    with serve(Script(replies={"question": [cut]})) as server:
        responses = answers(opened(server, "?api=completions"), make(4, decoding=decoding))
    assert {response.text for response in responses} == {""}
    assert len(server.bodies) == 5


# --- values that are odd


@pytest.mark.parametrize(
    ("finish", "read"),
    [
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("STOP", "stop"),
        ("eos_token", "stop"),
        ("SAFETY", "content_filter"),
        ("sensitive", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("a new one", "a new one"),
        (None, None),
    ],
)
def test_reasons_in_other_words(finish: Any, read: Any, opened: Any, make: Any) -> None:
    response, _ = scripted(opened, make, [reply("B", finish)])
    assert (response.text, response.finish_reason) == ("B", read)


@pytest.mark.parametrize(
    "broken",
    [
        reply("The answer is", "abort"),
        reply("The answer is", "error"),
        reply("The answer is", "insufficient_system_resource"),
        {"choices": [{"error": {"code": 502, "message": "Provider disconnected"}}]},  # OpenRouter
        {"choices": [{"index": 0, "delta": {"content": "B"}}]},
        {"choices": [{}]},
        {"choices": [{"message": "B", "finish_reason": "stop"}]},
        reply(7),
        reply({"text": "B"}),
    ],
)
def test_a_reply_that_was_broken_off_is_no_answer(broken: Any, opened: Any, make: Any) -> None:
    response, attempts = scripted(opened, make, [broken, reply("B")])
    assert (response.text, attempts) == ("B", 2)
    response, _ = scripted(opened, make, [broken], max_retries=1)
    assert response.text is None
    assert response.error is not None


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ([{"type": "text", "text": "B"}, {"text": "!"}, "no part", None], "B!", None),
        (
            # Mistral's magistral models: docs.mistral.ai/capabilities/reasoning
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "A? No."}]},
                {"type": "text", "text": "B"},
            ],
            "B",
            "A? No.",
        ),
        (
            [{"type": "thinking", "thinking": "A? No."}, {"type": "text", "text": "B"}],
            "B",
            "A? No.",
        ),
        (
            [{"type": "reasoning", "text": "A? No."}, {"type": "output_text", "text": "B"}],
            "B",
            "A? No.",
        ),
        ([], "", None),
    ],
)
def test_contents_of_several_parts(
    content: Any, text: str, reasoning: Any, opened: Any, make: Any
) -> None:
    response, attempts = scripted(opened, make, [reply(content)])
    assert (response.text, response.reasoning, attempts) == (text, reasoning, 1)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": -1},
        {"prompt_tokens": True, "completion_tokens": "9"},
        {"prompt_tokens": None},
        {},
        None,
        7,
    ],
)
def test_usage_that_cannot_be_is_not_counted(usage: Any, opened: Any, make: Any) -> None:
    with serve(Script(replies={"question": [{**reply("B"), "usage": usage}]})) as server:
        model = opened(server)
        (response,) = model.answer(make(1))
    assert (response.prompt_tokens, response.completion_tokens) == (None, None)
    assert (model.usage.prompt_tokens, model.usage.completion_tokens) == (0, 0)


def test_cached_tokens_do_not_exceed_the_prompt(opened: Any, make: Any) -> None:
    usage = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 99}}
    with serve(Script(replies={"question": [{**reply("B"), "usage": usage}]})) as server:
        model = opened(server)
        list(model.answer(make(1)))
    assert model.usage.cached_tokens == 10


def test_more_choices_than_wanted_and_equal_indices(opened: Any, make: Any) -> None:
    texts = [{"index": 0, "message": {"content": text}} for text in "ABC"]
    decoding = Decoding(max_tokens=16, temperature=0.8)
    with serve(Script(replies={"question": [{"choices": texts}]})) as server:
        requests = make(1, samples=2, decoding=decoding)
        assert [response.text for response in answers(opened(server), requests)] == ["A", "B"]
        assert [response.text for response in answers(opened(server), make(1))] == ["A"]


def test_a_refusal_among_several_samples_is_its_own(opened: Any, make: Any) -> None:
    choices = [
        {"index": 0, "message": {"content": "B"}, "finish_reason": "stop"},
        {"index": 1, "message": {"content": None, "refusal": SORRY}, "finish_reason": "stop"},
    ]
    decoding = Decoding(max_tokens=16, temperature=0.8)
    with serve(Script(replies={"question": [{"choices": choices}]})) as server:
        first, two = answers(opened(server), make(1, samples=2, decoding=decoding))
    assert (first.text, first.finish_reason) == ("B", "stop")
    assert (two.text, two.finish_reason) == (SORRY, "refusal")


def test_another_name_of_the_model_is_no_warning_but_two_are(opened: Any, make: Any) -> None:
    dated = {**reply("B"), "model": "stand-in-2026-01-01"}
    other = {**reply("B"), "model": "a-smaller-one"}
    with serve(Script(replies={"question 0": [dated], "question 1": [dated, other]})) as server:
        model = opened(server)
        answers(model, make(2))
        assert model.warnings == []
        answers(model, make(2))
        (line,) = model.warnings
    assert "several models (a-smaller-one, stand-in-2026-01-01)" in line
