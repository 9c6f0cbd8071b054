"""Specs of ``openai:`` models and their keys, validated without network access."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any
from typing import Literal
from typing import NoReturn
from urllib.parse import parse_qsl
from urllib.parse import urlsplit

from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import canonical_json
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.models.base import read_query
from pytest_llmeval.models.openai.parameters import BODY_KEYS
from pytest_llmeval.models.openai.parameters import NEUTRAL
from pytest_llmeval.models.openai.parameters import Additions
from pytest_llmeval.models.openai.parameters import check_extra_body
from pytest_llmeval.models.openai.parameters import read_body_value
from pytest_llmeval.models.openai.parameters import read_header_values
from pytest_llmeval.models.openai.parameters import refuse_key

Api = Literal["chat", "completions"]
Choices = Literal["", "top_logprobs", "echo"]

KEYS = ("base_url", "api", "choices", "key_env", "key_file", "name", "server")
DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
# Version of the code that reads and verifies log-probabilities of choices. A new version
# invalidates values in response caches and resumed runs that the current code would reject.
_READING = 2


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """Validated spec of an ``openai:`` model."""

    #: Name of the model on the server.
    model: str
    #: Name in test ids and reports.
    name: str
    base_url: str
    api: Api = "chat"
    #: Source of the log-likelihoods of choices; ``""`` if the model supports text only.
    choices: Choices = ""
    key_env: str | None = None
    key_file: Path | None = None
    added: Additions = field(default_factory=Additions)

    @property
    def request_modes(self) -> Mapping[Ask, str]:
        """Mode in which each kind of request is sent, with added body fields; part of the fingerprint."""
        added = [self.added.mode] if self.added.mode else []
        modes: dict[Ask, str] = {"text": ", ".join([self.api, *added])}
        if self.choices:
            modes["choices"] = ", ".join([self.api, self.choices, *added])
        return modes

    @property
    def fingerprint(self) -> str:
        """16 hex digits for name, address, request modes, and the names of headers."""
        content: list[object] = [self.model, self.base_url, sorted(self.request_modes.items())]
        if self.choices:
            content.append(_READING)
        # Only if there are some, so that other models keep their fingerprints.
        if self.added.content:
            content.append(self.added.content)
        return hashlib.sha256(canonical_json(content)).hexdigest()[:16]


def parse_spec(
    rest: str,
    base_url: str | None = None,
    extra_body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> EndpointSpec:
    """Parse the spec ``openai:NAME[?key=value&…]``; ``base_url``: default for specs without one.

    ``extra_body``: body fields; those of the spec replace them. ``headers``: name → environment
    variable with the value.

    Raises ConfigError, in one line, for an invalid spec. No message repeats a value that may
    contain a credential.
    """
    model, _, query = rest.partition("?")
    if not model:
        raise ConfigError(
            "openai: no model named; use openai:NAME with the model's name on the server"
        )
    text = f"openai:{model}"
    for key, _ in parse_qsl(query, keep_blank_values=True):
        refuse_key(text, key, KEYS)
    options = read_query(text, query, (*KEYS, *BODY_KEYS))
    body = {
        key: read_body_value(text, key, options.pop(key)) for key in [*options] if key in BODY_KEYS
    }
    check_extra_body(text, body)
    check_extra_body(f"{text}: --llm-extra-body", extra_body or {})
    if "key_env" in options and "key_file" in options:
        raise ConfigError(f"{text}: key_env and key_file exclude each other; use one")
    choices = _check_value(
        text, "choices", options.get("choices", ""), ("", "top_logprobs", "echo")
    )
    api = _check_value(
        text,
        "api",
        options.get("api", "completions" if choices == "echo" else "chat"),
        ("chat", "completions"),
    )
    if choices == "echo" and api != "completions":
        raise ConfigError(f"{text}: choices=echo needs api=completions: chats cannot echo a prompt")
    name = options.get("name") or re.sub(r"[^A-Za-z0-9_.-]+", "-", model.rsplit("/", 1)[-1])
    return EndpointSpec(
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
        added=Additions(
            {**(extra_body or {}), **body},
            headers or {},
            _check_value(text, "server", options.get("server", ""), ("", *NEUTRAL)),
        ),
    )


def read_key(spec: EndpointSpec) -> Secret:
    """Read the key from the file or variable of the spec, else from OPENAI_API_KEY.

    Raises ConfigError if a named file or variable is missing, and if there is no key for OpenAI's
    own API. Without a key for other servers, which often need none, the Secret is empty.
    """
    text = f"openai:{spec.model}"
    if spec.key_file is not None:
        try:
            value = spec.key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            raise ConfigError(f"{text}: key_file {spec.key_file}: {reason}") from None
        if len(value.split()) != 1:
            raise ConfigError(f"{text}: key_file {spec.key_file} does not contain exactly one key")
        return Secret(value)
    value = os.environ.get(spec.key_env or DEFAULT_KEY, "").strip()
    if not value and (spec.key_env is not None or spec.base_url == DEFAULT_URL):
        raise ConfigError(
            f"{text}: no key: set the environment variable {spec.key_env or DEFAULT_KEY}"
        )
    return Secret(value)


def read_header_secrets(spec: EndpointSpec) -> dict[str, Secret]:
    """Read the values of the headers from the environment. Raises ConfigError."""
    values = read_header_values(f"openai:{spec.model}", spec.added.headers)
    return {name: Secret(value) for name, value in values.items()}


def refuse_stored_secrets(spec: EndpointSpec, secrets: Iterable[Secret]) -> None:
    """Raise ConfigError if what is stored of a spec contains a key or the value of a header."""
    stored = {
        "the name of the model": spec.model,
        "the base URL": spec.base_url,
        "a body field": canonical_json(spec.added.body).decode(),
    }
    for place, text in stored.items():
        if any(secret.redact(text) != text for secret in secrets):
            raise ConfigError(
                f"openai:{'***' if place.endswith('model') else spec.model}: {place} contains a key or"
                " the value of a header, and would be stored in run.json"
            )


def _check_value(text: str, key: str, value: str, values: tuple[str, ...]) -> str:
    if value not in values:
        raise ConfigError(
            f"{text}: {key}={value}: unknown{suggestion(value, filter(None, values))}"
        )
    return value


def _base_url(text: str, url: str) -> str:
    """Return the URL without a trailing slash.

    Rejects URLs with credentials, because the URL is written to the run folder.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise ConfigError(
            f"{text}: the base URL is not a valid URL; use http://HOST:PORT/v1 or https://…"
        ) from None
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"{text}: the base URL of {host} has user info, a query or a fragment; put the key into"
            " the environment (key_env=NAME) or a file (key_file=PATH)"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{text}: base URL {url!r}: use http://HOST:PORT/v1 or https://…")
    return url.rstrip("/")


# Shorter keys are not redacted: they protect nothing, and messages would become unreadable.
_SHORTEST = 6


class Secret:
    """API key that is not part of its representation and cannot be pickled."""

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
        """Return the key, for the code that sends it."""
        return self._value

    def redact(self, text: str) -> str:
        """Return the text without the key, which servers may repeat in their messages."""
        return text if len(self._value) < _SHORTEST else text.replace(self._value, "***")
