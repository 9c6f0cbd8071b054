"""What stands behind ``openai:``: a model's name and how it is asked, checked without a network."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from typing import NoReturn
from urllib.parse import urlsplit

from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import canonical_json
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.models.base import read_query

Api = Literal["chat", "completions"]
Choices = Literal["", "top_logprobs", "echo"]

KEYS = ("base_url", "api", "choices", "key_env", "key_file", "name")
DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
# The version of how log-probabilities of choices are read and verified. A new one keeps values of
# response caches and resumed runs from being used that would be refused today.
_READING = 2


@dataclass(frozen=True, slots=True)
class Spec:
    """A checked spec. ``model`` is what the server calls it, ``name`` what reports call it.

    ``choices``: how log-likelihoods of choices are read, ``""`` where they are not.
    """

    model: str
    name: str
    base_url: str
    api: Api = "chat"
    choices: Choices = ""
    key_env: str | None = None
    key_file: Path | None = None

    @property
    def request_modes(self) -> Mapping[Ask, str]:
        """How each kind of request is sent: part of the model's fingerprint."""
        text: dict[Ask, str] = {"text": self.api}
        return text | {"choices": f"{self.api}, {self.choices}"} if self.choices else text

    @property
    def fingerprint(self) -> str:
        """16 hex digits for name, address and request modes; nothing the server reports."""
        content: list[object] = [self.model, self.base_url, sorted(self.request_modes.items())]
        if self.choices:
            content.append(_READING)
        return hashlib.sha256(canonical_json(content)).hexdigest()[:16]


def parse_spec(rest: str, base_url: str | None = None) -> Spec:
    """The spec ``openai:NAME[?key=value&…]``; ``base_url`` is for specs that name none.

    Raises ConfigError, in one line, for whatever is wrong with it. No message repeats a value
    that may hold a credential.
    """
    model, _, query = rest.partition("?")
    if not model:
        raise ConfigError("openai: no model named; use openai:NAME, as the server calls it")
    text = f"openai:{model}"
    options = read_query(text, query, KEYS, _meant)
    if "key_env" in options and "key_file" in options:
        raise ConfigError(f"{text}: key_env and key_file exclude each other")
    choices = _one_of(text, "choices", options.get("choices", ""), ("", "top_logprobs", "echo"))
    api = _one_of(
        text,
        "api",
        options.get("api", "completions" if choices == "echo" else "chat"),
        ("chat", "completions"),
    )
    if choices == "echo" and api != "completions":
        raise ConfigError(f"{text}: choices=echo is for api=completions: a chat echoes no prompt")
    name = options.get("name") or re.sub(r"[^A-Za-z0-9_.-]+", "-", model.rsplit("/", 1)[-1])
    return Spec(
        model=model,
        name=name.strip("-") or "model",
        base_url=_base_url(
            text,
            options.get("base_url") or base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL,
        ),
        api=api,  # type: ignore[arg-type]
        choices=choices,  # type: ignore[arg-type]
        key_env=options.get("key_env"),
        key_file=Path(options["key_file"]).expanduser() if "key_file" in options else None,
    )


def read_key(spec: Spec) -> Secret:
    """The key from the file or the variable that the spec names, else from OPENAI_API_KEY.

    Raises ConfigError where a named one is missing, and where OpenAI itself would be asked
    without a key. Servers of one's own often want none.
    """
    text = f"openai:{spec.model}"
    if spec.key_file is not None:
        try:
            value = spec.key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            raise ConfigError(f"{text}: key_file {spec.key_file}: {reason}") from None
        if len(value.split()) != 1:
            raise ConfigError(f"{text}: key_file {spec.key_file} does not hold one key")
        return Secret(value)
    value = os.environ.get(spec.key_env or DEFAULT_KEY, "").strip()
    if not value and (spec.key_env is not None or spec.base_url == DEFAULT_URL):
        raise ConfigError(
            f"{text}: no key: the environment variable {spec.key_env or DEFAULT_KEY} is not set"
        )
    return Secret(value)


def _meant(key: str, known: Collection[str]) -> str:
    if "key" in key:
        return "; a key stands in the environment (key_env=NAME) or in a file (key_file=…)"
    return suggestion(key, known)


def _one_of(text: str, key: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigError(f"{text}: {key}={value}: unknown{suggestion(value, filter(None, known))}")
    return value


def _base_url(text: str, url: str) -> str:
    """The address without the slash at its end. What it holds is written to the run folder."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise ConfigError(f"{text}: the base URL is not an address") from None
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"{text}: the base URL of {host} holds more than an address; a key stands in the"
            " environment (key_env=NAME) or in a file (key_file=…)"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{text}: base URL {url!r}: use http://HOST:PORT/v1 or https://…")
    return url.rstrip("/")


# Shorter than this it protects nothing, and striking it out would make messages unreadable.
_SHORTEST = 6


class Secret:
    """A key. Its representation does not hold it, and it cannot be pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "<key>"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written anywhere")

    def reveal(self) -> str:
        """The key itself, for the one place that sends it."""
        return self._value

    def struck_from(self, text: str) -> str:
        """The text without the key: servers repeat what they were sent in their messages."""
        return text if len(self._value) < _SHORTEST else text.replace(self._value, "***")
