"""An endpoint model against the stand-in server: methods, retries, requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.openai import client
from support.endpoint_bodies import LETTERS
from support.endpoint_bodies import right_letter
from support.endpoint_server import HANG
from support.endpoint_server import Script
from support.endpoint_server import serve

CHOICES = tuple(LETTERS)


def ask(model: Any, requests: list[Request]) -> dict[tuple[str, int | None], Response]:
    responses = list(model.answer(requests))
    by_id = {(response.id, response.sample): response for response in responses}
    assert len(by_id) == len(responses) == len(requests)
    return by_id


def best(response: Response) -> str:
    return LETTERS[response.logprobs.index(max(response.logprobs))]


@pytest.mark.parametrize("query", ["", "?api=completions"])
def test_text(query: str, opened: Any, make: Any) -> None:
    with serve() as server:
        model = opened(server, query)
        assert model.asks == {"text"}
        for (name, _), response in ask(model, make(20)).items():
            letter = right_letter(f"question {name[2:]}\nAnswer:")
            assert response.text == f"The answer is ({letter})."
            assert (response.finish_reason, response.prompt_tokens) == ("stop", 4)
            assert response.seconds is not None
            assert response.seconds > 0
    assert model.usage.requests == len(server.arrivals) == 20
    assert model.usage.completion_tokens == 80
    assert model.usage.cached_tokens > 0


@pytest.mark.parametrize(
    "query", ["?choices=top_logprobs", "?choices=top_logprobs&api=completions"]
)
def test_letters_take_one_request_an_item(query: str, opened: Any, make: Any) -> None:
    with serve() as server:
        model = opened(server, query)
        assert model.asks == {"choices", "text"}
        for (name, _), response in ask(model, make(20, choices=CHOICES)).items():
            assert best(response) == right_letter(f"question {name[2:]}\nAnswer:")
            assert response.text is None
    assert len(server.arrivals) == 20


def test_an_echo_takes_one_request_an_item(opened: Any, make: Any) -> None:
    with serve() as server:
        model = opened(server, "?choices=echo")
        answers = ask(model, make(20, choices=("one", "two", "three four")))
        assert all(len(response.logprobs) == 3 for response in answers.values())
        assert len({response.logprobs for response in answers.values()}) == 20
    # And one to verify, once, what the server echoes.
    assert len(server.arrivals) == 21


def test_an_echo_counts_from_where_the_own_context_of_a_choice_ends(opened: Any, make: Any) -> None:
    with serve() as server:
        model = opened(server, "?choices=echo")
        (plain,) = make(1, choices=("behind it", "behind it"))
        given = replace(plain, given=(" one", " one two three"))
        (response,) = ask(model, [given]).values()
        alone = [
            replace(plain, id=f"alone{n}", prompt=prompt) for n, prompt in enumerate(given.prompts)
        ]
        expected = [response.logprobs[0] for response in ask(model, alone).values()]
        assert list(response.logprobs) == expected
        assert expected[0] != expected[1]
    assert server.bodies[1]["prompt"] == [f"{prompt.text} behind it" for prompt in given.prompts]


def test_the_most_top_logprobs_are_found_once(opened: Any, make: Any) -> None:
    with serve(Script(top_logprobs=5)) as server:
        model = opened(server, "?choices=top_logprobs", max_concurrency=16)
        answers = ask(model, make(20, choices=CHOICES))
        assert all(response.error is None for response in answers.values())
    # 20, 10 and 5 by the first request; all others knew.
    assert [body["top_logprobs"] for body in server.bodies] == [20, 10] + 20 * [5]
    assert model.usage.retries == 0


def test_a_letter_that_may_be_missing_is_generated(opened: Any, make: Any) -> None:
    # The chat begins with words; one of the letters' eight spellings is listed.
    with serve(Script(top_logprobs=2, opening="Well, ")) as server:
        model = opened(server, "?choices=top_logprobs")
        answers = ask(model, make(5, choices=CHOICES))
        for (name, _), response in answers.items():
            letter = right_letter(f"question {name[2:]}\nAnswer:")
            assert (response.logprobs, response.text) == ((), f"Well, The answer is ({letter}).")


def test_a_server_without_top_logprobs_is_reported_once(opened: Any, make: Any) -> None:
    answer = {"choices": [{"message": {"content": "A"}, "logprobs": None}]}
    with serve(Script(replies={"question": [answer]})) as server:
        model = opened(server, "?choices=top_logprobs")
        with pytest.raises(ModelError, match=r"20 consecutive requests .* returns no top_logprobs"):
            ask(model, make(60, choices=CHOICES))


def test_texts_cannot_be_read_from_letters(opened: Any, make: Any) -> None:
    with serve() as server:
        model = opened(server, "?choices=top_logprobs")
        (response,) = ask(model, make(1, choices=("yes", "no"))).values()
        assert "use choices=echo" in str(response.error)
    assert server.arrivals == []


def test_chats_are_not_put_to_completions(opened: Any, make: Any) -> None:
    model = opened("http://127.0.0.1:9/v1", "?api=completions")
    with pytest.raises(ConfigError, match="api=completions takes plain text"):
        model.answer(make(1, chat=True))
    model = opened("http://127.0.0.1:9/v1")
    prompt = Prompt("", (), "q", prefix="The answer is (")
    with pytest.raises(ConfigError, match=r"begins the answer \('The answer is \('\)"):
        model.answer([Request("q", prompt, chat=True)])


# --- what servers differ in


def test_max_completion_tokens_is_found_once(opened: Any, make: Any) -> None:
    with serve(Script(tokens_field="max_completion_tokens")) as server:
        answers = ask(opened(server, max_concurrency=16), make(20))
        assert all(response.error is None for response in answers.values())
    assert ["max_tokens" in body for body in server.bodies] == [True] + 20 * [False]


def drawn(make: Any, items: int, samples: int) -> list[Request]:
    requests: list[Request] = make(
        items, samples=samples, decoding=Decoding(max_tokens=16, temperature=0.8)
    )
    return requests


def test_samples_of_an_item_are_one_request_where_the_server_can(opened: Any, make: Any) -> None:
    with serve() as server:
        answers = ask(opened(server), drawn(make, 6, 5))
        for name in range(6):
            texts = [answers[f"q-{name}", sample].text for sample in range(5)]
            assert len(set(texts)) > 1
    assert [body["n"] for body in server.bodies] == 6 * [5]
    assert len({body["seed"] for body in server.bodies}) == 6


@pytest.mark.parametrize("silently", [True, False])
def test_samples_are_requested_one_by_one_where_n_is_refused(
    silently: bool, opened: Any, make: Any
) -> None:
    refusal = [400, {"error": {"message": "n must be 1", "param": "n"}}]
    script = Script(several=False) if silently else Script(replies={"question 0": [refusal]})
    with serve(script) as server:
        model = opened(server)
        if silently:
            ask(model, drawn(make, 6, 5))
            seeds = [body["seed"] for body in server.bodies if "n" not in body]
            # All but the first of the first item's, which came as the only one of five.
            assert len(seeds) == len(set(seeds)) == 29
            assert [body for body in server.bodies[1:] if "n" in body] == []
            before = len(server.bodies)
            ask(model, drawn(make, 3, 2))
            assert len(server.bodies) == before + 6
        else:
            first = next(iter(model.answer(drawn(make, 1, 2))))
            assert "n must be 1" in str(first.error)
            assert ["n" in body for body in server.bodies] == [True, False]


def test_greedy_samples_are_requested_one_by_one(opened: Any, make: Any) -> None:
    # vLLM refuses several of what can only be the same.
    with serve() as server:
        ask(opened(server), make(2, samples=3))
    assert len(server.bodies) == 6
    assert not any("n" in body or "seed" in body for body in server.bodies)


# --- faults


def scripted(opened: Any, make: Any, replies: list[Any], **options: Any) -> tuple[Any, Any]:
    """The response to one request that gets these replies, and how often it was sent."""
    with serve(Script(replies={"question": replies})) as server:
        (response,) = opened(server, **options).answer(make(1))
        return response, len(server.arrivals)


def reply_of(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **more}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def test_null_content_counts_as_truncated(opened: Any, make: Any) -> None:
    answer = reply_of(None, "length", reasoning_content="so the answer might be B")
    response, attempts = scripted(opened, make, [answer])
    assert (response.text, response.finish_reason, attempts) == ("", "length", 1)
    assert (response.error, response.reasoning) == (None, "so the answer might be B")


@pytest.mark.parametrize(
    "answer",
    [{"choices": []}, {"choices": [{"message": None, "finish_reason": "content_filter"}]}],
)
def test_a_filtered_answer_counts_as_an_answer(answer: Any, opened: Any, make: Any) -> None:
    response, attempts = scripted(opened, make, [answer])
    assert (response.text, response.finish_reason, attempts) == ("", "content_filter", 1)
    assert response.error is None


@pytest.mark.parametrize(
    ("replies", "options", "attempts", "message"),
    [
        (["500"], {"max_retries": 3}, 4, r"answered 500 .*: try again \(after 4 attempts\)"),
        (
            [[429, {"error": {"message": "pay", "code": "insufficient_quota"}}]],
            {},
            1,
            "quota exhausted",
        ),
        (
            [[400, {"error": {"message": "long", "code": "context_length_exceeded"}}]],
            {},
            1,
            "the prompt is too long",
        ),
        ([HANG], {"timeout": 0.3, "max_retries": 1}, 2, "no answer within 0.3 s"),
    ],
)
def test_retries_end(
    replies: Any, options: Any, attempts: int, message: str, opened: Any, make: Any
) -> None:
    response, sent = scripted(opened, make, replies, **options)
    assert sent == attempts
    assert response.text is None
    with pytest.raises(ValueError, match=message):
        raise ValueError(response.error)


@pytest.mark.parametrize("fault", ["429", "500", "408", "409", "reset", "garbage", "torn", "hang"])
def test_a_passing_fault_is_retried(fault: str, opened: Any, make: Any) -> None:
    response, attempts = scripted(opened, make, [fault, reply_of("B")], timeout=0.5)
    assert (response.text, attempts) == ("B", 2)


@pytest.mark.parametrize(
    "answer",
    [
        [200, {"error": {"message": "overloaded", "code": 502}}],
        [200, {"choices": None}],
        [200, "a text"],
        [200, None],
    ],
)
def test_a_successful_response_without_content_is_requested_again(
    answer: Any, opened: Any, make: Any
) -> None:
    response, attempts = scripted(opened, make, [answer, reply_of("B")])
    assert (response.text, attempts) == ("B", 2)


def test_retry_after_is_kept(opened: Any, make: Any) -> None:
    replies = {"question": [[429, {}, {"Retry-After": "0.4"}], reply_of("B")]}
    with serve(Script(replies=replies)) as server:
        list(opened(server).answer(make(1)))
    first, second = server.arrivals
    assert second - first >= 0.4


def test_a_slow_response_times_out(opened: Any, make: Any) -> None:
    # Every piece that arrives starts the SDK's own time-out anew.
    import socket
    import threading

    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def trickle() -> None:
        connection, _ = listening.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 -\r\nContent-Length: 1000\r\n\r\n")
        while not ended.wait(0.05):
            try:
                connection.sendall(b" ")
            except OSError:
                return

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    (response,) = opened(url, timeout=0.4, max_retries=0).answer(make(1))
    ended.set()
    thread.join()
    listening.close()
    assert "no answer within 0.4 s" in str(response.error)


def test_a_server_that_is_not_there(opened: Any, make: Any) -> None:
    model = opened("http://127.0.0.1:9/v1", max_retries=1)
    with pytest.raises(ModelError, match=r"20 consecutive requests .*connection failed"):
        list(model.answer(make(40)))


def test_equal_failures_in_a_row_end_everything_also_later_calls(opened: Any, make: Any) -> None:
    with serve(Script(key="right")) as server:
        model = opened(server)
        seen: list[Response] = []
        with pytest.raises(
            ModelError, match=r"20 consecutive requests failed in the same way.* 401"
        ):
            seen.extend(model.answer(make(400)))
        assert len(server.arrivals) < 60
        with pytest.raises(ModelError, match="401"):
            list(model.answer(make(1)))


def test_one_bad_item_does_not_stop_the_others(opened: Any, make: Any) -> None:
    refusal = [400, {"error": {"message": "bad item", "code": "invalid"}}]
    with serve(Script(replies={"question 3\n": [refusal]})) as server:
        answers = ask(opened(server), make(30))
    failed = [name for (name, _), response in answers.items() if response.error is not None]
    assert failed == ["q-3"]


# --- flow


def test_no_more_are_in_flight_than_allowed_and_no_fewer(opened: Any, make: Any) -> None:
    with serve(Script(latency=0.02)) as server:
        ask(opened(server, max_concurrency=6), make(60))
    assert server.most_at_once == 6


def test_a_server_that_takes_more_is_given_more(opened: Any, make: Any) -> None:
    with serve(Script(latency=0.02)) as server:
        ask(opened(server), make(300))
    assert server.most_at_once > 16


def test_a_later_call_fills_what_an_earlier_one_leaves(opened: Any, make: Any) -> None:
    with serve(Script(latency=0.05)) as server:
        model = opened(server, max_concurrency=8)
        first, second = model.answer(make(4)), model.answer(make(4, text="other {}"))
        assert len(list(first)) == len(list(second)) == 4
    # The first goes alone; then the seven others together.
    assert server.most_at_once == 7


def test_a_slow_answer_delays_no_other(opened: Any, make: Any) -> None:
    with serve(Script(replies={"question 1\n": [HANG]})) as server:
        responses = iter(opened(server, max_concurrency=4).answer(make(12)))
        names = [next(responses).id for _ in range(11)]
    assert "q-1" not in names


def test_no_request_is_sent_after_iteration_stops(opened: Any, make: Any) -> None:
    with serve(Script(latency=0.02)) as server:
        model = opened(server, max_concurrency=2)
        responses = model.answer(make(200))
        next(responses)
        responses.close()
        list(model.answer(make(4, text="other {}")))
    assert len(server.arrivals) < 20


def test_the_model_is_opened_without_a_request_and_closed_twice(opened: Any, make: Any) -> None:
    with serve() as server:
        model = opened(server)
        assert model.fingerprint == opened(server).fingerprint
        assert server.arrivals == []
        assert list(model.answer([])) == []
        ask(model, make(2))
        model.close()
        model.close()


def test_tokens_a_minute_are_kept(opened: Any, make: Any) -> None:
    # 500 a second; all but the last request have to be paid for before it is sent.
    with serve() as server:
        model = opened(server, tokens_per_minute=30000)
        ask(model, make(40, text="question {} " + "word " * 16))
        used = model.usage.prompt_tokens + model.usage.completion_tokens
        took = server.arrivals[-1] - server.arrivals[0]
    assert took >= (used - 100) / 500


def test_a_first_request_that_hangs_does_not_keep_the_others_waiting(
    opened: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes alone, for what it finds out, but not for as long as a request may take."""
    monkeypatch.setattr(client, "_FIRST_SECONDS", 0.05)
    first, *others = make(8)
    with serve(Script(replies={first.prompt.question: [HANG]})) as server:
        batch = opened(server).answer([first, *others])
        assert {next(batch).id for _ in others} == {request.id for request in others}
        batch.close()
