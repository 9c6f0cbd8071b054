"""Body fields, headers and neutral values that are added to requests, and mistakes in them."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import ModelError
from pytest_llmeval.models.openai import open_model
from pytest_llmeval.models.openai.spec import parse_spec
from pytest_llmeval.storage.response_cache import ResponseCache
from support.endpoint_bodies import error
from support.endpoint_server import Script
from support.endpoint_server import serve

URL = "http://127.0.0.1:8000/v1"
THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
QUERY = '?reasoning_effort=low&chat_template_kwargs={"enable_thinking":false}'
SECRET = "team-secret-0815"
LETTERS = tuple("ABCD")


@pytest.mark.parametrize(
    ("query", "choices", "requests"),
    [("", (), 2), ("&choices=top_logprobs", LETTERS, 2), ("&choices=echo", (" x", " y"), 3)],
)
def test_fields_are_in_every_request(opened, make, query, choices, requests):
    """Also in the one that verifies the echoes of a server."""
    fields = {"provider": {"order": ["a"]}, "reasoning_effort": "high"}
    with serve() as server:
        model = opened(server, QUERY + query, extra_body=fields)
        assert all(response.error is None for response in model.answer(make(2, choices=choices)))
    assert len(server.bodies) == requests
    for body in server.bodies:
        # The field of the spec replaces that of the option.
        assert body["reasoning_effort"] == "low"
        assert body["provider"] == fields["provider"]
        assert body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("low", "low"),
        ("none", "none"),
        ('"1"', "1"),
        ("-1", -1),
        ("1.5e0", 1.5),
        ("true", True),
        ("null", None),
        ("[1,2]", [1, 2]),
        ('{"a":{"b":"c%26d"}}', {"a": {"b": "c&d"}}),
    ],
)
def test_a_value_in_a_spec_is_json_or_a_word(text, value):
    assert parse_spec(f"m?reasoning={text}", URL).added.body == {"reasoning": value}


def test_fields_servers_and_names_of_headers_change_the_fingerprint(monkeypatch):
    monkeypatch.setenv("TEAM", "a")
    headers = {"X-Team": "TEAM"}
    models = [
        open_model("m", base_url=URL),
        open_model("m", base_url=URL, extra_body={"verbosity": "low"}),
        open_model("m", base_url=URL, extra_body={"verbosity": "high"}),
        open_model("m", base_url=URL, extra_body={"verbosity": None}),
        open_model("m?server=vllm", base_url=URL),
        open_model("m", base_url=URL, header=headers),
    ]
    prints = [model.fingerprint for model in models]
    assert len(set(prints)) == len(models)
    same = open_model("m?verbosity=low", base_url=URL)
    assert (same.fingerprint, same.request_modes) == (prints[1], models[1].request_modes)
    assert same.request_modes == {"text": 'chat, with {"verbosity":"low"}'}
    # The value of a header is stored nowhere.
    monkeypatch.setenv("TEAM", "b")
    assert open_model("m", base_url=URL, header=headers).fingerprint == prints[-1]
    assert models[-1].additions == {"headers": ["X-Team"]}


def test_a_cache_never_returns_the_answer_to_another_body(opened, make, tmp_path):
    cache = ResponseCache(tmp_path / "cache")
    queries = ("", "?verbosity=low", "?verbosity=high", '?verbosity="low"&top_k=1', "?server=vllm")
    with serve() as server:
        for _ in range(2):
            for query in queries:
                model = opened(server, query, cache=cache)
                assert [r.error for r in model.answer(make(1))] == [None]
    assert len(server.bodies) == len(queries)
    cache.close()


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_neutral_values_are_sent_to_a_server_that_has_defaults_of_its_own(
    opened, make, temperature
):
    neutral = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    decoding = Decoding(max_tokens=4, temperature=temperature)
    with serve() as server:
        for query in ("?server=vllm", "?server=sglang&repetition_penalty=1.1", ""):
            assert [r.error for r in opened(server, query).answer(make(1, decoding=decoding))]
    vllm, sglang, other = ({k: v for k, v in b.items() if k in neutral} for b in server.bodies)
    assert vllm == neutral
    assert sglang == {**neutral, "repetition_penalty": 1.1}
    assert other == ({"top_p": 1.0} if temperature else {})


def test_the_decoding_of_the_protocol_is_not_neutral(opened, make):
    decoding = Decoding(max_tokens=4, temperature=1.0, top_k=7, min_p=0.1, top_p=0.9)
    with serve() as server:
        list(opened(server, "?server=vllm").answer(make(1, decoding=decoding)))
        body = server.bodies[0]
        assert (body["top_k"], body["min_p"], body["top_p"]) == (7, 0.1, 0.9)
        with pytest.raises(ConfigError, match="the protocol's decoding has top_k"):
            opened(server, "?top_k=5").answer(make(1, decoding=decoding))


@pytest.mark.parametrize(
    ("query", "fields", "name", "remedy"),
    [
        ("", THINKING, "chat_template_kwargs", "remove chat_template_kwargs from --llm-extra-body"),
        ("?verbosity=low", {}, "verbosity", "remove verbosity from --llm-extra-body or from the"),
        ("?server=vllm", {}, "repetition_penalty", "remove server=vllm from the spec"),
    ],
)
@pytest.mark.parametrize("worded", ["code", "text"])
def test_a_refused_field_is_one_line_with_the_remedy(
    opened, make, query, fields, name, remedy, worded
):
    refusal = error(f"Unknown parameter: '{name}'.", "unknown_parameter")
    if worded == "code":
        refusal["error"] |= {"param": f"{name}.deeper", "message": "Invalid request"}
    with serve(Script(refuses={name: (400, refusal)})) as server:
        model = opened(server, query, extra_body=fields)
        with pytest.raises(ModelError) as caught:
            list(model.answer(make(30)))
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)
    assert all(name in body for body in server.bodies), "a field is never left out silently"


def test_headers_are_sent_and_redacted(opened, make, monkeypatch):
    monkeypatch.setenv("TEAM", f" {SECRET}\n")
    monkeypatch.setenv("AUTH", "Basic dXNlcjpwYXNzd29yZA==")
    headers = {"X-Team": "TEAM", "Authorization": "AUTH"}
    refusal = [403, error(f"no team {SECRET}", None)]
    with serve(Script(replies={"question 1": [refusal]})) as server:
        model = opened(server, header=headers)
        first, second = sorted(model.answer(make(2)), key=lambda response: response.id)
    assert first.error is None
    assert "no team ***" in second.error
    for lines in server.headers:
        pairs = [line.split(": ", 1) for line in lines.splitlines() if ": " in line]
        sent = [(name.lower(), value) for name, value in pairs]
        assert [value for name, value in sent if name == "x-team"] == [SECRET]
        authorization = [value for name, value in sent if name == "authorization"]
        assert authorization == ["Basic dXNlcjpwYXNzd29yZA=="]


@pytest.mark.parametrize(
    ("rest", "options", "message"),
    [
        ("m?reasoning_efort=low", {}, "unknown option 'reasoning_efort'; did you mean 'reasoning_"),
        ("m?lora=x", {}, "'lora'; --llm-extra-body sends any field of the request body"),
        ("m?reasoning={low", {}, "openai:m: reasoning: malformed JSON: Expecting property name"),
        ("m?enable_thinking=False", {}, "enable_thinking=False: write false, as in JSON"),
        ('m?reasoning={"a":NaN}', {}, "malformed JSON: NaN is not a number of JSON"),
        ('m?reasoning={"a":1,"a":2}', {}, "malformed JSON: key 'a' is given twice"),
        ("m?verbosity=", {}, "option 'verbosity' has no value"),
        ("m?verbosity=a&verbosity=b", {}, "option 'verbosity' is given twice"),
        ("m?temperature=1", {}, "'temperature' is not a field to add: use --llm-temperature"),
        ("m?server=vlm", {}, "server=vlm: unknown; did you mean 'vllm'?"),
        *(
            ("m", {"extra_body": {name: 1}}, f"'{name}' is not a field to add: {remedy}")
            for name, remedy in (
                ("model", "write openai:NAME"),
                ("messages", "the protocol renders the prompt"),
                ("n", "use --llm-samples"),
                ("max_completion_tokens", "use --llm-max-tokens"),
                ("seed", "use --llm-seed"),
                ("top_p", "set it in the decoding of a protocol"),
                ("stream", "replies are read as a whole"),
                ("logprobs", "use choices= in the spec"),
            )
        ),
        ("m", {"extra_body": {"api_key": SECRET}}, "'api_key' looks like a credential"),
        ("m", {"extra_body": {"a": [{"Authorization": SECRET}]}}, "'Authorization' looks like"),
        ("m?token=" + SECRET, {}, "'token' looks like a credential"),
        (
            "m",
            {"extra_body": {"user": f"x{SECRET}"}},
            "a body field contains a key or the value of",
        ),
        ("m", {"base_url": f"http://h/{SECRET}/v1"}, "the base URL contains a key or the value"),
        (SECRET, {}, "openai:***: the name of the model contains a key"),
        ("m", {"header": {"X-Team": "NOT_SET"}}, "header X-Team: no value: set the environment"),
        ("m", {"header": {"X Team": "TEAM"}}, "header 'X Team': not the name of a header"),
        ("m", {"header": {"Content-Type": "TEAM"}}, "header Content-Type: set by the HTTP client"),
        ("m", {"header": {"X-Team": "LINES"}}, "the value of LINES has characters other than"),
    ],
)
def test_mistakes_are_one_line_without_a_secret(
    rest: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", SECRET)
    monkeypatch.setenv("LINES", f"a\n{SECRET}")
    options = {"base_url": URL, "header": {"X-Own": "TEAM"}, **options}
    with pytest.raises(ConfigError) as caught:
        open_model(rest, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
