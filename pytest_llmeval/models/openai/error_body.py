"""Parser of error bodies: text, codes, and the parameters that an error names.

Formats differ between servers: OpenAI's ``{"error": {message, type, param, code}}``, FastAPI's
``{"detail": [{loc, msg, type}]}``, Google's list of one error, plain text. Gateways (LiteLLM,
OpenRouter, new-api) nest the error of the server behind them in a field or a string. So all layers
of a body are read, from the outside in.
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

_MAX_DEPTH = 8
_TEXTS = ("message", "detail", "msg", "error", "raw", "reasons")
_CODES = ("code", "type", "status", "reason", "error_type")
# Fields that repeat the request or contain only figures.
_CLOSED = frozenset({"loc", "input", "ctx", "flagged_input", "headers", "content_filter_result"})
# Texts without information.
_ENVELOPES = frozenset({"", "error", "Error", "Provider returned error"})

# Other names of parameters, in lower case without underscores.
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
# Parameters that are also English words count only if the text marks them as a name.
_ORDINARY = frozenset(
    {"echo", "priority", "provider", "reasoning", "stop", "store", "thinking", "verbosity"}
)
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
# A pydantic location inside a text: vLLM's "[{'type': …, 'loc': ('body', 'top_k'), …}]".
_LOCATION = re.compile(r"""['"]loc['"]:\s*[(\[]([^)\]]*)[)\]]""")
_NAME_REFUSED = re.compile(
    r"unsupported[ _]param|unknown[ _](?:param|field|name|arg)|extra_forbidden|extra inputs|unrecognized"
    r"|unexpected keyword|(?:\bnot|n't|\bun)\s?support|\bremove\b|not (?:permitted|allowed|implemented)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """Content of an error body."""

    #: All texts in one line, the outermost first.
    message: str = ""
    #: Codes, types and reasons that are words.
    codes: tuple[str, ...] = ()
    #: Parameters in fields such as ``param``, as the server spells them.
    parameters: tuple[str, ...] = ()

    def faulty_parameters(self, sent: Collection[str]) -> tuple[str, ...]:
        """Return the sent parameters that the error is about, in the order of the error.

        They come from fields such as ``param``, without these from the names in the text.
        """
        if self.parameters:
            paths = [re.split(r"[.\[\]]", parameter) for parameter in self.parameters]
            names = [_canonical(part, sent) for path in paths for part in path if part]
        else:
            names = list(_names_in(self.message, sent))
        return tuple(dict.fromkeys(name for name in names if name in sent))

    @property
    def refuses_parameter(self) -> bool:
        """True if the server rejects a parameter regardless of its value."""
        codes = " ".join(self.codes)
        if "unsupported_value" in codes:
            return False
        if "unsupported_parameter" in codes or "extra_forbidden" in codes:
            return True
        return bool(_NAME_REFUSED.search(self.message)) and not _NUMBER.search(self.message)


def read_error(body: object) -> ErrorBody:
    """Return the error of a parsed JSON body or of a plain text."""
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
            name for path in _LOCATION.findall(message) for name in re.findall(r"\w+", path)
        ]
    return ErrorBody(message, tuple(dict.fromkeys(codes)), tuple(dict.fromkeys(parameters)))


def _layers(value: object, depth: int = 0) -> Iterator[Mapping[str, Any] | str]:
    """Yield every object and every text of a body; texts that contain JSON are parsed."""
    if depth > _MAX_DEPTH:
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
    """Return the JSON object in a text, also after other words (``Error: {…}``), or None."""
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
    matches: list[tuple[int, str]] = []
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
        matches.append((match.start(), name))
    for pattern, name in _DESCRIPTIONS:
        if name in sent and (described := pattern.search(message)):
            matches.append((described.start(), name))
    yield from (name for _, name in sorted(matches))


def _canonical(word: str, sent: Collection[str]) -> str:
    """Return the name of the sent parameter that a word refers to, else the word in lower case."""
    if word in sent:
        return word
    lowered = word.lower()
    name = _ALIASES.get(lowered.replace("_", ""), lowered)
    if name == "max_tokens" and name not in sent and "max_completion_tokens" in sent:
        return "max_completion_tokens"
    return name
