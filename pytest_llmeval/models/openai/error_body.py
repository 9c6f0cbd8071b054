"""The body of an error, whatever its shape: its text, its codes, the parameters that it names.

Every server has a shape of its own: OpenAI's ``{"error": {message, type, param, code}}``, FastAPI's
``{"detail": [{loc, msg, type}]}``, Google's list of one error, a plain text. Gateways (LiteLLM,
OpenRouter, new-api) put the error of the server behind them into a field or a string of their own.
So all layers of a body are read, from the outside in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from typing import TypeGuard

_DEEPEST = 8
_TEXTS = ("message", "detail", "msg", "error", "raw", "reasons")
_CODES = ("code", "type", "status", "reason", "error_type")
# What repeats the request, and tables of figures.
_CLOSED = frozenset({"loc", "input", "ctx", "flagged_input", "headers", "content_filter_result"})
# Texts without a meaning of their own.
_ENVELOPES = frozenset({"", "error", "Error", "Provider returned error"})

# What servers call a parameter whose name here is another; without underscores, in small letters.
_ALIASES = {
    "bestof": "n",
    "candidatecount": "n",
    "maxnewtokens": "max_tokens",
    "maxoutputtokens": "max_tokens",
    "minp": "min_p",
    "responselogprobs": "logprobs",
    "stopsequences": "stop",
    "topk": "top_k",
    "toplogprobs": "top_logprobs",
    "topp": "top_p",
}
# llama.cpp: "Only one completion choice is allowed" (tools/server/server-common.cpp).
_DESCRIPTIONS = (
    (re.compile(r"\bcompletion choices?\b", re.IGNORECASE), "n"),
    (re.compile(r"\bstop[ _](?:sequences?|words?|strings?)\b", re.IGNORECASE), "stop"),
)
_WORD = re.compile(r"(?<![\\\w])(?!n-)[A-Za-z]\w*")
# Parameters that are English words, too: they count where they are marked as a name.
_ORDINARY = frozenset({"echo", "stop"})
_BEFORE = re.compile(
    r"(?:^|[:;(\[{,]\s*|['\"`‘“]|\b(?:parameters?|arguments?|fields?|propert(?:y|ies)|options?|keys?"
    r"|inputs?|values? (?:of|for))\s+)$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"$|['\"`’”]|\s*[:=,;)\]}.]|\s+(?:must|is|are|was|cannot|can't|should|does|has|value|parameter"
    r"|argument|not)\b",
    re.IGNORECASE,
)
# A pydantic location within a text: vLLM's "[{'type': …, 'loc': ('body', 'top_k'), …}]".
_LOCATION = re.compile(r"""['"]loc['"]:\s*[(\[]([^)\]]*)[)\]]""")
_NAME_REFUSED = re.compile(
    r"unsupported[ _]param|unknown[ _](?:param|field|name|arg)|extra_forbidden|extra inputs|unrecognized"
    r"|unexpected keyword|(?:\bnot|n't|\bun)\s?support|\bremove\b|not (?:permitted|allowed|implemented)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """An error as the server words it.

    ``message``: all its texts, the outer first, on one line. ``codes``: words among its codes,
    types and reasons. ``parameters``: what it is about, where it has a field for that, as written.
    """

    message: str = ""
    codes: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()

    def named(self, sent: Collection[str]) -> tuple[str, ...]:
        """The parameters among those that were sent which the error is about, the first first.

        A field for it decides; without one, the names in the text do.
        """
        if self.parameters:
            parts = [re.split(r"[.\[\]]", one) for one in self.parameters]
            names = [_canonical(part, sent) for one in parts for part in one if part]
        else:
            names = list(_names_in(self.message, sent))
        return tuple(dict.fromkeys(name for name in names if name in sent))

    @property
    def refuses_name(self) -> bool:
        """Whether a parameter as such is refused, whatever its value."""
        codes = " ".join(self.codes)
        if "unsupported_value" in codes:
            return False
        if "unsupported_parameter" in codes or "extra_forbidden" in codes:
            return True
        return bool(_NAME_REFUSED.search(self.message)) and not _NUMBER.search(self.message)


def read_error(body: object) -> ErrorBody:
    """The error of a body that was parsed from JSON, or of a plain text."""
    texts: list[str] = []
    codes: list[str] = []
    parameters: list[str] = []
    for layer in _layers(body):
        if isinstance(layer, str):
            if layer not in _ENVELOPES and not any(layer in text for text in texts):
                texts.append(layer)
            continue
        codes += filter(_is_word, map(layer.get, _CODES))
        for key in ("param", "parameter"):
            if isinstance(layer.get(key), str) and layer[key]:
                parameters.append(layer[key])
        if isinstance(layer.get("loc"), list):
            parameters += [str(part) for part in layer["loc"]]
            texts.append(".".join(str(part) for part in layer["loc"]))
        if isinstance(layer.get("retryDelay"), str):  # Google's RetryInfo
            texts.append(f"retry in {layer['retryDelay']}")
    message = " ".join("; ".join(texts).split())
    if not parameters:
        parameters = [
            name for found in _LOCATION.findall(message) for name in re.findall(r"\w+", found)
        ]
    return ErrorBody(message, tuple(dict.fromkeys(codes)), tuple(dict.fromkeys(parameters)))


def _layers(value: object, depth: int = 0) -> Iterator[Mapping[str, Any] | str]:
    """Every object and every text of a body; a text that is JSON itself is opened."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        opened = _json(value)
        if opened is None:
            yield value.strip()
        else:
            yield from _layers(opened, depth + 1)
    elif isinstance(value, list):
        for entry in value:
            yield from _layers(entry, depth + 1)
    elif isinstance(value, Mapping):
        yield value
        for key, entry in value.items():
            if key not in _CLOSED and (isinstance(entry, dict | list) or key in _TEXTS):
                yield from _layers(entry, depth + 1)


def _json(text: str) -> object:
    """The object that a text holds, also behind some words, as in ``Error: {…}``; None for others."""
    begin = min((at for mark in "{[" if (at := text.find(mark)) >= 0), default=-1)
    if begin < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list) or not value:
        return None
    if isinstance(value, list) and not isinstance(value[0], dict):
        return None  # "parameters: ['n']" is prose
    return [text[:begin].strip(" :"), value] if text[:begin].strip() else value


def _is_word(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value) and not value.isdigit()


def _names_in(message: str, sent: Collection[str]) -> Iterator[str]:
    found: list[tuple[int, str]] = []
    for match in _WORD.finditer(message):
        name = _canonical(match[0], sent)
        if name not in sent or match[0] == "N":
            continue
        if name in _ORDINARY and match[0].lower() == name:
            marked = _BEFORE.search(message[: match.start()]) and _AFTER.match(
                message[match.end() :]
            )
            if not marked:
                continue
        found.append((match.start(), name))
    for pattern, name in _DESCRIPTIONS:
        if name in sent and (described := pattern.search(message)):
            found.append((described.start(), name))
    yield from (name for _, name in sorted(found))


def _canonical(word: str, sent: Collection[str]) -> str:
    """The name under which a parameter was sent, where the word is a name of it."""
    if word in sent:
        return word
    lowered = word.lower()
    name = _ALIASES.get(lowered.replace("_", ""), lowered)
    if name == "max_tokens" and name not in sent and "max_completion_tokens" in sent:
        return "max_completion_tokens"
    return name
