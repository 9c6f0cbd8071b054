"""Requests as JSON bodies, and JSON bodies as answers. No network here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from pytest_llmeval.core import Request
from pytest_llmeval.core import mend
from pytest_llmeval.models.endpoint.faults import Failed
from pytest_llmeval.models.endpoint.faults import Fault
from pytest_llmeval.models.endpoint.faults import unreadable
from pytest_llmeval.models.endpoint.spec import Spec
from pytest_llmeval.models.engine.stopping import parts_of

Body = dict[str, Any]

FILTERED = "content_filter"
_TOPS = (20, 10, 5, 3, 2)
# What the API takes; more are cut off here, which gives the same text.
_MOST_STOPS = 4


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server turned out to understand. Found out by its refusals, once for a model.

    ``top``: how many of the likeliest tokens it tells.
    """

    tokens_field: str = "max_tokens"
    seed: bool = True
    stop: bool = True
    several: bool = True
    top: int = _TOPS[0]


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request: path below the base URL, and body."""

    path: str
    body: Body


@dataclass(frozen=True, slots=True)
class Said:
    """One generated text. ``reasoning`` is what was thought before it."""

    text: str
    finish_reason: str | None
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The usage of one HTTP request; None where the server tells nothing.

    ``cached``: the part of the prompt that the server had computed before.
    """

    prompt: int | None = None
    completion: int | None = None
    reasoning: int = 0
    cached: int = 0


# --- bodies


def generation(spec: Spec, group: Sequence[Request], dialect: Dialect) -> Call:
    """Ask for text: one for each of a group of requests that differ in ``sample`` alone."""
    first, decoding = group[0], group[0].decoding
    body: Body = {
        "model": spec.model,
        **_prompt(spec, first),
        dialect.tokens_field: decoding.max_tokens,
        "temperature": decoding.temperature,
    }
    if decoding.temperature > 0:
        body["top_p"] = decoding.top_p
        if dialect.seed:
            body["seed"] = drawn_seed(first)
        # Not OpenAI's; sent only where the protocol says so, and a server that knows no
        # better refuses.
        if decoding.top_k:
            body["top_k"] = decoding.top_k
        if decoding.min_p:
            body["min_p"] = decoding.min_p
    if decoding.stop and dialect.stop:
        body["stop"] = list(decoding.stop[:_MOST_STOPS])
    if len(group) > 1 and dialect.several:
        body["n"] = len(group)
    return _call(spec, body)


def next_letter(spec: Spec, request: Request, dialect: Dialect) -> Call:
    """Ask for the likeliest tokens that may come next.

    At temperature 1, where the model's own probabilities and those that were sampled from are
    the same; a few servers tell the latter, which at temperature 0 are 0 and 1.
    """
    body: Body = {
        "model": spec.model,
        **_prompt(spec, request),
        dialect.tokens_field: 1,
        "temperature": 1.0,
    }
    if spec.api == "chat":
        body |= {"logprobs": True, "top_logprobs": dialect.top}
    else:
        body["logprobs"] = dialect.top
    return _call(spec, body)


def echo(spec: Spec, request: Request) -> Call:
    """Ask for the log-probabilities of the prompt with each choice behind it, all at once."""
    return _call(
        spec,
        {
            "model": spec.model,
            "prompt": [
                mend(f"{prompt.text}{prompt.delimiter}{choice}")
                for prompt, choice in zip(request.prompts, request.choices, strict=True)
            ],
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": 1,
            "echo": True,
        },
    )


def drawn_seed(request: Request) -> int:
    """The seed of a sampled request: its own, whatever else is asked. 31 bits."""
    name = f"{request.seed} {request.sample} {request.id}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) >> 1


def adapted(dialect: Dialect, call: Call, fault: Fault) -> Dialect | None:
    """How to put a refused request otherwise, or None where the refusal is about something else."""
    if fault.status not in (400, 404, 422) or fault.of_item:
        return None
    body, said = call.body, fault.message
    if "max_tokens" in body and "max_completion_tokens" in said:
        return replace(dialect, tokens_field="max_completion_tokens")
    asked = body.get("top_logprobs") or body.get("logprobs")
    if asked and not body.get("echo") and "logprobs" in said:
        fewer = [top for top in _TOPS if top < dialect.top]
        return replace(dialect, top=fewer[0]) if fewer else None
    if "stop" in body and re.search(r"\bstop\b", said):
        return replace(dialect, stop=False)
    if "seed" in body and re.search(r"\bseed\b", said):
        return replace(dialect, seed=False)
    if "n" in body:
        return replace(dialect, several=False)
    return None


def _call(spec: Spec, body: Body) -> Call:
    return Call("/chat/completions" if spec.api == "chat" else "/completions", body)


def _prompt(spec: Spec, request: Request) -> Body:
    if spec.api == "completions":
        return {"prompt": mend(request.prompt.text)}
    if not request.chat:
        # A protocol of plain text, put to a chat: all of it is what the user says.
        return {"messages": [{"role": "user", "content": mend(request.prompt.text)}]}
    messages = request.prompt.messages()
    return {"messages": [{**message, "content": mend(message["content"])} for message in messages]}


# --- answers


def check(data: object) -> Body:
    """The answer, if it has the shape of one. Raises Failed (to be tried again) if not."""
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise Failed(unreadable(f"no choices in {data!r}"))
    if not all(isinstance(choice, dict) for choice in data["choices"]):
        raise Failed(unreadable("a choice is no object"))
    return data


def texts(spec: Spec, data: Body, stop: Sequence[str]) -> list[Said]:
    """The generated texts in the order asked for. No choices at all: one that was filtered out."""
    choices = sorted(data["choices"], key=_index)
    return [_said(spec, choice, stop) for choice in choices] or [Said("", FILTERED)]


def top_tokens(spec: Spec, data: Body) -> list[tuple[str, float]] | None:
    """The likeliest next tokens with their natural-log probabilities; None where not told."""
    logprobs = (data["choices"] or [{}])[0].get("logprobs") or {}
    if not isinstance(logprobs, dict):
        return None
    try:
        if spec.api == "chat":
            first = logprobs["content"][0]["top_logprobs"]
            found = [(str(entry["token"]), float(entry["logprob"])) for entry in first]
        else:
            found = [(str(k), float(v)) for k, v in logprobs["top_logprobs"][0].items()]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    return found or None


def is_filtered(data: Body) -> bool:
    """Whether a content filter stands behind an answer without content."""
    choices = data["choices"]
    return not choices or choices[0].get("finish_reason") == FILTERED


def tokens(data: Body) -> Tokens:
    """What the server says the request cost."""
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return Tokens()
    return Tokens(
        prompt=_count(usage.get("prompt_tokens")),
        completion=_count(usage.get("completion_tokens")),
        reasoning=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        cached=_detail(usage, "prompt_tokens_details", "cached_tokens"),
    )


def cut(text: str, stop: Sequence[str]) -> str:
    """The text up to the first stop string in it."""
    ends = [at for word in stop if word and (at := text.find(word)) >= 0]
    return text[: min(ends)] if ends else text


def _said(spec: Spec, choice: Body, stop: Sequence[str]) -> Said:
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) else None
    reasoning: object = None
    if spec.api == "chat":
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        content = message.get("content")
        reasoning = message.get("reasoning_content") or message.get("reasoning")
    else:
        content = choice.get("text")
    whole = _plain(content)
    if isinstance(reasoning, str):
        text = cut(whole, stop)
        return Said(text, finish if text == whole else "stop", reasoning)
    # A server that does not take the reasoning out: as with the models that are computed here.
    parts = parts_of(whole, stop)
    if not parts.closed and finish != FILTERED:
        finish = "length"
    return Said(parts.answer, "stop" if parts.stopped else finish, parts.reasoning)


def _plain(content: object) -> str:
    """The text of a content, which some servers give as a list of parts, and some not at all."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _index(choice: Body) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _detail(usage: Body, group: str, name: str) -> int:
    details = usage.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, dict) else 0
