"""Body fields and headers that the user adds to requests, and neutral values of decoding parameters.

A field that this package sets itself cannot be added, because the protocol would not describe what
was sent. Fields are part of fingerprints and reports; of a header, only the name is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import NoReturn

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import canonical_json
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.validation import parse_json

_DECODING = "set it in the decoding of a protocol"
_RENDERED = "the protocol renders the prompt, and --llm-system adds a system prompt"
_LIMIT = "use --llm-max-tokens"
_CHOICES = "use choices= in the spec"
_WHOLE = "replies are read as a whole"
#: Field that this package sets → what to use instead.
_CONTROLLED: Mapping[str, str] = {
    "model": "write openai:NAME",
    "messages": _RENDERED,
    "prompt": _RENDERED,
    "n": "use --llm-samples",
    "best_of": "use --llm-samples",
    "max_tokens": _LIMIT,
    "max_completion_tokens": _LIMIT,
    "temperature": "use --llm-temperature",
    "top_p": _DECODING,
    "seed": "use --llm-seed",
    "stop": _DECODING,
    "logprobs": _CHOICES,
    "top_logprobs": _CHOICES,
    "echo": _CHOICES,
    "stream": _WHOLE,
    "stream_options": _WHOLE,
}

BODY_KEYS = frozenset(
    {
        # OpenAI
        *(
            "frequency_penalty",
            "logit_bias",
            "presence_penalty",
            "reasoning_effort",
            "service_tier",
        ),
        *("store", "verbosity"),
        # vLLM, SGLang and llama.cpp
        *("cache_prompt", "chat_template", "chat_template_kwargs", "ignore_eos", "min_p"),
        *("min_tokens", "priority", "repeat_penalty", "repetition_penalty", "separate_reasoning"),
        *("skip_special_tokens", "thinking_token_budget", "top_k"),
        # other services: Alibaba, DeepSeek, OpenRouter, Mistral
        *("enable_thinking", "provider", "reasoning", "safe_prompt", "thinking", "thinking_budget"),
    }
)
"""Fields that a spec may set; ``--llm-extra-body`` sets any field."""

#: Server → values at which the parameters that it takes from the model's ``generation_config.json``
#: have no effect. vLLM: ``ModelConfig.get_diff_sampling_param``; SGLang: ``--sampling-defaults``.
NEUTRAL: Mapping[str, Mapping[str, Any]] = {
    server: {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    for server in ("vllm", "sglang")
}

_CREDENTIAL = re.compile(
    r"api[-_]?key|authori[sz]ation|passw|secret|credential|(?:access|auth|bearer)[-_]?token|^token$",
    re.IGNORECASE,
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VISIBLE = re.compile(r"[\x20-\x7e]+")
_HTTP_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-encoding", "content-length"),
        *("content-type", "host", "transfer-encoding"),
    }
)


_PYTHON = {"True": "true", "False": "false", "None": "null"}


def read_body_value(text: str, key: str, value: str) -> Any:
    """Return the value of a body field in a spec: JSON, or a text without quotes.

    ``text``: the spec as messages show it. Raises ConfigError.
    """
    source = f"{text}: {key}"
    if value.startswith(("{", "[", '"')):
        return parse_json(value, source)
    if value in _PYTHON:
        raise ConfigError(f"{source}={value}: write {_PYTHON[value]}, as in JSON")
    if re.fullmatch(r"true|false|null|-?[0-9][0-9.eE+-]*", value):
        return parse_json(value, source)
    return value


def refuse_key(text: str, key: str, keys: Collection[str]) -> None:
    """Raise ConfigError for a key of a spec that is neither among ``keys`` nor a body field."""
    if key in _CONTROLLED or _CREDENTIAL.search(key):
        _check_name(text, key)
    if key in keys or key in BODY_KEYS:
        return
    if "key" in key:
        raise ConfigError(f"{text}: unknown option {key!r}{KEY_HINT}")
    hint = suggestion(key, {*keys, *BODY_KEYS})
    raise ConfigError(
        f"{text}: unknown option {key!r}"
        f"{hint or '; --llm-extra-body sends any field of the request body'}"
    )


KEY_HINT = "; put the key into the environment (key_env=NAME) or a file (key_file=PATH)"


def check_extra_body(text: str, body: Mapping[str, Any]) -> None:
    """Raise ConfigError for a field that this package sets, and for one that holds a credential."""
    for name in body:
        _check_name(text, name)
    for name in _nested_names(body.values()):
        if _CREDENTIAL.search(name):
            _refuse_credential(text, name)


def _check_name(text: str, name: str) -> None:
    if name in _CONTROLLED:
        raise ConfigError(f"{text}: {name!r} is not a field to add: {_CONTROLLED[name]}")
    if _CREDENTIAL.search(name):
        _refuse_credential(text, name)


def _refuse_credential(text: str, name: str) -> NoReturn:
    raise ConfigError(
        f"{text}: {name!r} looks like a credential, and body fields are stored in run.json: put the"
        " key into the environment (key_env=NAME) or a file (key_file=PATH), and other credentials"
        " into a header (--llm-header NAME=env:VARIABLE)"
    )


def _nested_names(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping):
            yield from map(str, value)
            yield from _nested_names(value.values())
        elif isinstance(value, list | tuple):
            yield from _nested_names(value)


@dataclass(frozen=True, slots=True)
class Additions:
    """What a model's requests have in addition to what the protocol determines."""

    #: Body fields that the user adds.
    body: Mapping[str, Any] = field(default_factory=dict)
    #: Header name → environment variable with its value.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Kind of server, whose silent defaults are replaced by neutral values.
    server: str = ""

    @property
    def neutral(self) -> Mapping[str, Any]:
        """Neutral values of the parameters that the server takes from the model's files."""
        return NEUTRAL.get(self.server, {})

    @property
    def content(self) -> dict[str, Any]:
        """Everything except the values of headers, for the fingerprint and ``run.json``."""
        content = {
            "body": dict(self.body),
            "headers": sorted(self.headers, key=str.lower),
            "server": self.server,
        }
        return {name: value for name, value in content.items() if value}

    @property
    def mode(self) -> str:
        """What can change an answer, as part of the request mode; empty if nothing can."""
        fields = {**self.neutral, **self.body}
        return f"with {canonical_json(fields).decode()}" if fields else ""

    def remedy(self, name: str) -> str:
        """Return what to change if the server refuses a field; empty if it was not added."""
        if name in self.body:
            return f"remove {name} from --llm-extra-body or from the spec"
        if name in self.neutral:
            return f"remove server={self.server} from the spec, so that {name} is not sent"
        return ""


def read_header_values(text: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Return header name → value, from the environment. Raises ConfigError without the value."""
    values = {}
    for name, variable in headers.items():
        place = f"{text}: header {name}"
        if not _HEADER.fullmatch(name):
            raise ConfigError(f"{text}: header {name!r}: not the name of a header")
        if name.lower() in _HTTP_HEADERS:
            raise ConfigError(f"{place}: set by the HTTP client")
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(f"{place}: no value: set the environment variable {variable}")
        if not _VISIBLE.fullmatch(value):
            raise ConfigError(
                f"{place}: the value of {variable} has characters other than visible ASCII"
            )
        values[name] = value
    return values
