"""Echoed prompts: right values from every server that echoes, one refusal from one that does not."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.openai.echo_logprobs import PROBE
from pytest_llmeval.models.openai.echo_logprobs import check_probe
from pytest_llmeval.models.openai.echo_logprobs import echo_prompts
from pytest_llmeval.models.openai.echo_logprobs import read_echoes
from pytest_llmeval.storage.response_cache import ResponseCache
from support.echo_forms import FORMS
from support.echo_forms import likelihood
from support.endpoint_server import Script
from support.endpoint_server import serve

RIGHT = (
    "openai",
    "vllm",
    "vllm_fragments",
    "vllm_vocabulary",
    "vllm_sentencepiece",
    "sglang",
    "llama_cpp_python",
    "objects",
)
REFUSED = {
    "vllm_token_ids": r"the server returned ids in place of the tokens' texts \('token_id:",
    "sglang_without_texts": "the server returned tokens that are not texts",
    "llama_cpp": "the server returned 1 token in place of the prompt's: ','",
    "llama_cpp_refuses": "the server answered 500.*: Only no echo is supported",
    "llama_cpp_python_without_bos": "each token has the log-probability of the position after it",
    "generated_only": "the server returned 1 token in place of the prompt's: ','",
    "none": r"the server returned no log-probabilities \(logprobs: None\)",
    "lmdeploy_refuses": "the server answered 400.*: logprobs.1. requested but not enabled",
    "transformers_refuses": "the server answered 400.*: prompt must be a string",
    "refuses": "the server answered 400.*: echo is not supported",
    "nulls": "the server returned no log-probability of the choice's token ' Wednesday'",
    "constant": "the same log-likelihood, 0, of 'Wednesday' and 'Wednesday, Thursday, Friday'",
    "cut_at_the_left": "token 1 of .* is ' Tuesday' where the prompt continues with 'Monday, Tues",
    "another_order": "the server returned prompt 1 echoed in the place of prompt",
}

QUESTIONS = ("Größe von 日本 \U0001f600?\nAnswer:", "2 + 2 = ?\nA. 3\nB. 4\nAnswer:", "“é” ⅓ <s>:")
CHOICES = ("A", "B", "blue sky", "(C)")


def requests(choices: tuple[str, ...] = CHOICES) -> list[Request]:
    return [
        Request(f"q{number}", Prompt("", (), text), choices=choices)
        for number, text in enumerate(QUESTIONS)
    ]


def test_every_form_is_tried() -> None:
    assert {*RIGHT, *REFUSED} >= {*FORMS}


@pytest.mark.parametrize("form", RIGHT)
def test_the_values_are_right_whatever_the_form(form: str, opened: Any) -> None:
    with serve(Script(echo=form)) as server:
        model = opened(server, "?choices=echo")
        responses = {response.id: response for response in model.answer(requests())}
    # One request more than items: the probe.
    assert len(server.arrivals) == len(QUESTIONS) + 1
    for number, text in enumerate(QUESTIONS):
        response = responses[f"q{number}"]
        assert response.error is None
        expected = [likelihood(f"{text} {choice}", len(text)) for choice in CHOICES]
        assert response.logprobs == pytest.approx(expected, abs=1e-9)
        assert len(set(response.logprobs)) == len(CHOICES)


@pytest.mark.parametrize("form", sorted({*RIGHT} - {"vllm_sentencepiece"}))
def test_choices_of_characters_that_fall_apart(form: str, opened: Any) -> None:
    choices = ("日本", "東", "\U0001f600 x")
    with serve(Script(echo=form)) as server:
        responses = list(opened(server, "?choices=echo").answer(requests(choices)))
    for response in responses:
        text = QUESTIONS[int(response.id[1:])]
        expected = [likelihood(f"{text} {choice}", len(text)) for choice in choices]
        if response.error is None:
            assert response.logprobs == pytest.approx(expected, abs=1e-9)
        else:
            # One token too many or too few may have been generated.
            assert form == "llama_cpp_python"
            assert "leave open which tokens belong" in response.error


@pytest.mark.parametrize("form", sorted(REFUSED))
def test_a_server_that_does_not_echo_is_refused_once_before_anything_is_scored(
    form: str, opened: Any, make: Any
) -> None:
    seen: list[Response] = []
    with serve(Script(echo=form)) as server:
        model = opened(server, "?choices=echo", max_concurrency=8)
        with pytest.raises(ModelError, match=f"^choices=echo cannot be used: .*{REFUSED[form]}"):
            seen.extend(model.answer(make(400, choices=CHOICES)))
        with pytest.raises(ModelError, match="choices=echo cannot be used"):
            list(model.answer(make(1, choices=CHOICES)))
    assert seen == []
    assert len(server.arrivals) == 1


def test_a_probe_that_is_not_answered_ends_the_run(opened: Any, make: Any) -> None:
    # llama-cpp-python takes one prompt a request, and has no word for others.
    with serve(Script(replies={"Monday": [[500, {"error": {"message": ""}}]]})) as server:
        model = opened(server, "?choices=echo", max_retries=2)
        with pytest.raises(ModelError) as caught:
            list(model.answer(make(60, choices=CHOICES)))
    assert str(caught.value) == (
        "the probe for choices=echo (3 prompts in one request): the server answered 500"
        " (after 3 attempts)"
    )
    assert len(server.arrivals) == 3


def test_a_probe_is_sent_again_as_other_requests_are(opened: Any, make: Any) -> None:
    with serve(Script(replies={"Monday": ["500", "429", {"choices": []}]})) as server:
        model = opened(server, "?choices=echo")
        with pytest.raises(ModelError, match="0 choices returned for 3 prompts"):
            list(model.answer(make(1, choices=CHOICES)))
    assert len(server.arrivals) == 3


def test_bos_in_the_offsets_does_not_move_the_choice() -> None:
    """The values that vLLM's offsets gave were those of one earlier token, for both choices."""
    request = Request("q", Prompt("", (), "The Answer:"), choices=("A", "B"))
    echoes = [
        {
            "index": index,
            "logprobs": {
                "tokens": ["<s>", "The", " Answer", ":", f" {letter}", "\n"],
                "token_logprobs": [None, -7.0, -5.0, -2.39, value, -0.1],
                "text_offset": [0, 3, 6, 13, 14, 16],
            },
        }
        for index, (letter, value) in enumerate({"A": -3.0, "B": -0.2}.items())
    ]
    assert [reading.logprob for reading in read_echoes(request, {"choices": echoes})] == [
        -3.0,
        -0.2,
    ]


# --- one item


def answer(*values: Any, texts: tuple[str, ...] = ("Q", ":", " A", "x"), **more: Any) -> Any:
    return {"logprobs": {"tokens": list(texts), "token_logprobs": list(values)}, **more}


ASKED = Request("q", Prompt("", (), "Q:"), choices=("A",))


def logprob(choice: Any, request: Request = ASKED) -> float:
    return read_echoes(request, {"choices": [choice]})[0].logprob


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no log-probability of the choice's token ' A'"),
        (math.nan, "' A' has nan in place of a log-probability"),
        (-math.inf, "' A' has -inf in place of a log-probability"),
        (math.inf, r"above 0 \(inf\)"),
        (-9999.0, "' A' has -9999.0 in place of a log-probability"),
        (-9999, "has -9999 in place"),
        (-100, "has -100 in place"),
        (-3.4028234663852886e38, "in place of a log-probability"),
        (0.7, r"' A' has a log-probability above 0 \(0.7\)"),
        ("-1.0", "'-1.0' in place of a log-probability"),
        (True, "True in place of a log-probability"),
        ([], r"\[\] in place of a log-probability"),
    ],
)
def test_a_value_that_is_no_log_probability_is_an_error(value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        logprob(answer(None, -1.0, value, -1.0))


def test_values_of_other_tokens_may_be_anything() -> None:
    assert logprob(answer("None", -9999.0, -0.25, math.nan)) == -0.25
    # Rounding is no error.
    assert logprob(answer(None, -1.0, 1e-7, -1.0)) == 0.0
    assert logprob(answer(None, -1.0, -101.5, -1.0)) == -101.5


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ({"text": "Q: Ax"}, "no log-probabilities"),
        ({"logprobs": {}}, "no log-probabilities of the prompt's tokens"),
        ({"logprobs": [1, 2]}, r"no log-probabilities \(logprobs: \[1, 2\]\)"),
        (answer(None, -1.0), "2 log-probabilities of 4 tokens"),
        ({"logprobs": {"content": [{"logprob": -1.0}]}}, "tokens that are not texts"),
        ({"logprobs": {"content": []}}, "0 tokens in place of the prompt's"),
    ],
)
def test_a_shape_that_is_no_echo_is_an_error(choice: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        logprob(choice)


def test_as_many_choices_as_prompts() -> None:
    with pytest.raises(ValueError, match="2 choices returned for 1 prompts"):
        read_echoes(ASKED, {"choices": [answer(), answer()]})


def test_the_order_is_that_of_the_indices_where_they_are_one() -> None:
    request = replace(ASKED, choices=("A", "B"))
    first = answer(None, -1.0, -2.0, -1.0, index=0)
    second = answer(None, -1.0, -3.0, -1.0, texts=("Q", ":", " B", "x"), index=1)

    def values(*choices: Any) -> list[float]:
        return [reading.logprob for reading in read_echoes(request, {"choices": choices})]

    assert values(second, first) == values(first, second) == [-2.0, -3.0]
    for index in (0, None, "0"):
        same = [{**choice, "index": index} for choice in (first, second)]
        assert values(*same) == [-2.0, -3.0]
        with pytest.raises(ValueError, match="prompt 1 echoed in the place of prompt 2"):
            values(*reversed(same))


def test_blanks_at_the_end_of_a_prompt_belong_to_the_choice() -> None:
    request = Request("q", Prompt("", (), "Q: ", delimiter=""), choices=("A",))
    assert echo_prompts(request) == [("Q: A", 2)]
    assert logprob(answer(None, -1.0, -0.5, -1.0), request) == -0.5
    split = answer(None, -1.0, -0.5, -0.25, -1.0, texts=("Q", ":", " ", "A", "x"))
    assert logprob(split, request) == -0.75


def test_one_item_that_is_not_reproduced_is_an_error_of_that_item(opened: Any, make: Any) -> None:
    other = {"choices": [answer(None, -1.0, -1.0, -1.0, index=n) for n in range(4)]}
    with serve(Script(replies={"question 3\n": [other]})) as server:
        model = opened(server, "?choices=echo")
        responses = {response.id: response for response in model.answer(make(30, choices=CHOICES))}
    failed = {
        name: response.error for name, response in responses.items() if response.error is not None
    }
    assert failed == {
        "q-3": "choices=echo: token 1 of 4 is 'Q' where the prompt continues with"
        " 'question 3\\nAnswer: A'"
    }


def test_items_that_are_not_reproduced_end_the_run_soon(opened: Any, make: Any) -> None:
    other = {"choices": [answer(None, -1.0, -1.0, -1.0, index=n) for n in range(4)]}
    with serve(Script(replies={"question": [other]})) as server:
        model = opened(server, "?choices=echo")
        with pytest.raises(
            ModelError, match=r"20 consecutive requests .*choices=echo: token 1 of 4"
        ):
            list(model.answer(make(400, choices=CHOICES)))
    assert len(server.arrivals) < 100


# --- the probe


def probed(**changes: Any) -> Any:
    """An answer to the probe with values of its own: ``short``, ``long``, ``generated``."""
    days = ["Monday", ",", " Tuesday", ","]
    short = [*days, " Wednesday"]
    long = [*short, ",", " Thursday", ",", " Friday"]
    text, start = echo_prompts(PROBE)[2]
    values = {"day": -2.2, "generated": -0.4, "echoed": -0.4} | changes
    return {
        "choices": [
            answer(None, -9, -3, -1, values["day"], values["generated"], texts=(*short, ",")),
            answer(None, -9, -3, -1, -2.2, values["echoed"], -1, -1, -1, texts=(*long,)),
            answer(None, -4.0, texts=(text[:start], text[start:])),
        ]
    }


def test_a_value_must_be_the_same_when_generated_and_when_echoed() -> None:
    check_probe(probed())
    check_probe(probed(generated=-0.9))
    with pytest.raises(ValueError, match=r"',' has -11 when echoed and -0.4 when generated"):
        check_probe(probed(echoed=-11))
    # Greedy sampling leaves 0 or nothing of it in servers that report what they sampled from.
    for value in (0.0, 0, None, -9999.0):
        check_probe(probed(generated=value, echoed=-3.0))


def test_a_value_must_be_the_same_in_two_prompts() -> None:
    with pytest.raises(ValueError, match=r"' Wednesday' has -2.2 when echoed and -7 in another"):
        check_probe(probed(day=-7))


def test_values_read_before_are_not_used_again(
    opened: Any, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ResponseCache(tmp_path / "cache")
    (request,) = make(1, choices=CHOICES)
    with serve(Script(echo="generated_only")) as server:
        model = opened(server, "?choices=echo", cache=cache)
        with monkeypatch.context() as patch:
            patch.setattr("pytest_llmeval.models.openai.spec._READING", 1)
            cache.put(model.fingerprint, [(request, Response(request.id, logprobs=(-1.0,) * 4))])
            assert [response.logprobs for response in model.answer([request])] == [(-1.0,) * 4]
        with pytest.raises(ModelError, match="choices=echo cannot be used"):
            list(model.answer([request]))
