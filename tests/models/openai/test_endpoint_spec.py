"""``openai:`` specs: their meaning, and mistakes in one line without a credential."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.models.openai import open_model
from pytest_llmeval.models.openai.spec import Secret
from pytest_llmeval.models.openai.spec import parse_spec
from pytest_llmeval.models.openai.spec import read_key

URL = "http://127.0.0.1:8000/v1"


def test_a_chat_gives_text_unless_the_spec_differs() -> None:
    spec = parse_spec(f"Qwen/Qwen3-8B?base_url={URL}/")
    assert (spec.model, spec.name, spec.base_url) == ("Qwen/Qwen3-8B", "Qwen3-8B", URL)
    assert spec.request_modes == {"text": "chat"}
    assert parse_spec("m?choices=top_logprobs").request_modes["choices"] == "chat, top_logprobs"
    assert parse_spec("m?choices=echo").request_modes == {
        "text": "completions",
        "choices": "completions, echo",
    }


def test_the_address_comes_from_the_spec_then_the_option_then_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert parse_spec("m").base_url == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://c/v1")
    assert parse_spec("m").base_url == "http://c/v1"
    assert parse_spec("m", "http://b/v1").base_url == "http://b/v1"
    assert parse_spec("m?base_url=http://a/v1", "http://b/v1").base_url == "http://a/v1"


def test_everything_that_can_change_an_answer_changes_the_fingerprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries = ("", "?api=completions", "?choices=top_logprobs", "?choices=echo")
    specs = [f"{name}{query}" for name in ("m", "n") for query in queries]
    prints = {parse_spec(spec, url).fingerprint for spec in specs for url in (URL, "http://h/v1")}
    assert len(prints) == 16
    # How log-probabilities are read and verified; text stays as it is.
    monkeypatch.setattr("pytest_llmeval.models.openai.spec._READING", 0)
    again = {parse_spec(spec, url).fingerprint for spec in specs for url in (URL, "http://h/v1")}
    assert len(prints & again) == 8
    # What the key is, and what reports call it, does not.
    assert parse_spec("m?name=x&key_env=K", URL).fingerprint == parse_spec("m", URL).fingerprint


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", "openai: no model named"),
        ("m?api=chats", "openai:m: api=chats: unknown; did you mean 'chat'?"),
        ("m?choices=logprobs", "choices=logprobs: unknown; did you mean 'top_logprobs'?"),
        ("m?bas_url=x", "openai:m: unknown option 'bas_url'; did you mean 'base_url'?"),
        ("m?api=chat&api=chat", "option 'api' is given twice"),
        ("m?base_url=", "option 'base_url' has no value"),
        ("m?name=a/b", "name 'a/b': use letters"),
        ("m?choices=echo&api=chat", "choices=echo needs api=completions"),
        ("m?key_env=A&key_file=b", "key_env and key_file exclude each other"),
        ("m?base_url=127.0.0.1:80", "use http://HOST:PORT/v1"),
        ("m?base_url=http://h:port/v1", "the base URL is not a valid URL"),
        ("m?key_file=/nowhere/key", "key_file /nowhere/key: No such file or directory"),
        ("m?key_env=NOT_SET_ANYWHERE", "set the environment variable NOT_SET_ANYWHERE"),
        ("m", "no key: set the environment variable OPENAI_API_KEY"),
    ],
)
def test_mistakes_are_one_line(rest: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(rest)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "rest",
    [
        "m?api_key=sk-secret-1",
        "m?key=sk-secret-1",
        "m?base_url=http://user:sk-secret-1@h/v1",
        "m?base_url=http://sk-secret-1@h/v1",
        "m?base_url=http://h/v1%3Ftoken=sk-secret-1",
    ],
)
def test_a_key_in_a_spec_is_refused_without_repeating_it(rest: str) -> None:
    with pytest.raises(ConfigError, match="key_env=NAME") as caught:
        open_model(rest)
    assert "sk-secret" not in str(caught.value)


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="max_concurrency 0 is not above 0"):
        open_model("m", base_url=URL, max_concurrency=0)
    with pytest.raises(ConfigError, match="requests_per_minute nan is not above 0"):
        open_model("m", base_url=URL, requests_per_minute=float("nan"))
    with pytest.raises(ConfigError, match="max_retries -1 is below 0"):
        open_model("m", base_url=URL, max_retries=-1)


def test_a_missing_sdk_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[openai\]'"):
        open_model("m", base_url=URL)


def test_sources_of_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not read_key(parse_spec("m", URL))
    monkeypatch.setenv("OPENAI_API_KEY", "from-openai")
    monkeypatch.setenv("MY_KEY", " from-mine\n")
    file = tmp_path / "key"
    file.write_text("from-file\n")
    assert read_key(parse_spec("m", URL)).reveal() == "from-openai"
    assert read_key(parse_spec("m?key_env=MY_KEY", URL)).reveal() == "from-mine"
    assert read_key(parse_spec(f"m?key_file={file}", URL)).reveal() == "from-file"
    file.write_text("two keys")
    with pytest.raises(ConfigError, match="does not contain exactly one key"):
        read_key(parse_spec(f"m?key_file={file}", URL))


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret("sk-secret-1")
    assert "sk-secret" not in f"{secret!r} {secret} {[secret]}"
    assert secret.redact("wrong key sk-secret-1, sk-secret-1!") == "wrong key ***, ***!"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    # Too short to be one: messages stay readable.
    assert Secret("a").redact("a cat") == "a cat"
