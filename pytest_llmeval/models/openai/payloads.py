"""Conversion of requests to JSON bodies, and of JSON bodies to completions; no network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field

from pytest_llmeval.core import FILTERED as FILTERED
from pytest_llmeval.core import REFUSED
from pytest_llmeval.core import Request
from pytest_llmeval.core import replace_lone_surrogates
from pytest_llmeval.core.usage import TokenUsage
from pytest_llmeval.models.openai.dialect import Body
from pytest_llmeval.models.openai.dialect import Dialect
from pytest_llmeval.models.openai.echo_logprobs import echo_prompts
from pytest_llmeval.models.openai.faults import Fault
from pytest_llmeval.models.openai.faults import RequestFailedError
from pytest_llmeval.models.openai.faults import body_fault
from pytest_llmeval.models.openai.faults import unreadable_fault
from pytest_llmeval.models.openai.spec import EndpointSpec
from pytest_llmeval.models.openai.top_logprobs import ListedToken
from pytest_llmeval.models.openai.top_logprobs import TopTokens
from pytest_llmeval.models.openai.top_logprobs import verify_top_tokens
from pytest_llmeval.models.stopping import split_reply
from pytest_llmeval.models.stopping import stop_position

# Maximum of the API. Replies are cut at all stop strings here, which gives the same text.
_MAX_STOPS = 4

# Finish reasons of servers that do not use OpenAI's names: Google's and Anthropic's own APIs,
# Mistral (model_length), Zhipu (sensitive), TGI (eos_token), Bedrock (guardrail_intervened).
_REASONS = {
    "length": ("max_tokens", "max_output_tokens", "model_length", "token_limit"),
    FILTERED: (
        *("safety", "sensitive", "prohibited_content", "blocklist", "spii", "recitation"),
        *("guardrail_intervened", "content_filtered"),
    ),
    "stop": ("end_turn", "stop_sequence", "eos", "eos_token", "complete"),
}
_REASON = {name: reason for reason, names in _REASONS.items() for name in names}
# Finish reasons of replies that the server aborted: OpenRouter (error), vLLM and SGLang (abort),
# DeepSeek.
_BROKEN = frozenset({"error", "abort", "cancelled", "insufficient_system_resource"})


@dataclass(frozen=True, slots=True)
class Call:
    """HTTP request: path relative to the base URL, and body."""

    path: str
    body: Body


@dataclass(frozen=True, slots=True)
class Completion:
    """Generated text with its reasoning."""

    text: str
    finish_reason: str | None
    reasoning: str | None = None
    #: True if the server ended the text before an answer, but not at the token limit.
    only_reasoning: bool = field(default=False, compare=False)


# --- bodies


def generation_call(spec: EndpointSpec, group: Sequence[Request], dialect: Dialect) -> Call:
    """Return the call that generates text for requests that differ only in ``sample``."""
    first, decoding = group[0], group[0].decoding
    body: Body = {
        "model": spec.model,
        **_prompt(spec, first),
        dialect.tokens_field: decoding.max_tokens,
        "temperature": decoding.temperature,
    }
    if decoding.temperature > 0:
        body["top_p"] = decoding.top_p
        body["seed"] = request_seed(first)
        # Not in OpenAI's API: sent only if the protocol has them, and rejected by servers
        # without support.
        if decoding.top_k:
            body["top_k"] = decoding.top_k
        if decoding.min_p:
            body["min_p"] = decoding.min_p
    if stop := _stops(spec, decoding.stop):
        body["stop"] = stop
    if len(group) > 1 and dialect.supports_n:
        body["n"] = len(group)
    return _call(spec, body)


def letter_call(spec: EndpointSpec, request: Request, dialect: Dialect) -> Call:
    """Return the call for the likeliest next tokens.

    The temperature is 1 because a few servers return the distribution that they sample from: at
    temperature 1 it is that of the model, at 0 it is 0 and 1.
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


def echo_call(spec: EndpointSpec, request: Request) -> Call:
    """Return the call that echoes the prompt with each choice, in one HTTP request."""
    return _call(
        spec,
        {
            "model": spec.model,
            "prompt": [text for text, _ in echo_prompts(request)],
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": 1,
            "echo": True,
        },
    )


def request_seed(request: Request) -> int:
    """Return the seed (31 bits) of a sampled request, from its seed, sample, id and arm."""
    arm = f" {request.arm}" if request.arm else ""
    name = f"{request.seed} {request.sample} {request.id}{arm}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) >> 1


def _stops(spec: EndpointSpec, stop: Sequence[str]) -> list[str]:
    """Return the stop strings to send; replies are cut at all stop strings here.

    None for chats: servers also search the reasoning and then return it without an answer, or as
    the answer (vllm-project/vllm#52393, sgl-project/sglang#33154), and a chat model ends its turn
    without them. White space is not sent either: it would end an answer that starts with blank
    lines.
    """
    if spec.api == "chat":
        return []
    return [word for word in stop if word.strip()][:_MAX_STOPS]


def refuses_echo(call: Call, fault: Fault) -> bool:
    """Return True if the server rejects echoes, so that a retry would not help.

    llama.cpp does so with status 500, "Only no echo is supported" (``server-common.cpp``).
    """
    return bool(call.body.get("echo")) and (
        fault.status in (400, 405, 422, 501) or "echo" in fault.message
    )


def _call(spec: EndpointSpec, body: Body) -> Call:
    path = "/chat/completions" if spec.api == "chat" else "/completions"
    return Call(path, {**spec.added.neutral, **body, **spec.added.body})


def _prompt(spec: EndpointSpec, request: Request) -> Body:
    if spec.api == "completions":
        return {"prompt": replace_lone_surrogates(request.prompt.text)}
    if not request.chat:
        # A plain-text protocol on a chat endpoint: the whole prompt is the user message.
        return {
            "messages": [{"role": "user", "content": replace_lone_surrogates(request.prompt.text)}]
        }
    messages = request.prompt.messages()
    return {
        "messages": [
            {**message, "content": replace_lone_surrogates(message["content"])}
            for message in messages
        ]
    }


# --- replies


def check_reply(data: object) -> Body:
    """Return the reply; raise a retryable RequestFailedError if it has another format."""
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise RequestFailedError(unreadable_fault(f"no choices in {data!r}"))
    for choice in data["choices"]:
        if not isinstance(choice, dict):
            raise RequestFailedError(unreadable_fault("a choice is not an object"))
        if choice.get("error"):
            raise RequestFailedError(body_fault(choice["error"]))
        if _finish(choice) in _BROKEN:
            raise RequestFailedError(
                body_fault(f"the server aborted the reply ({choice['finish_reason']})")
            )
        if not _is_readable(choice):
            raise RequestFailedError(unreadable_fault(f"no message in {choice!r}"))
    return data


def _is_readable(choice: Body) -> bool:
    """Return True if a choice has the fields of a text, which may be empty."""
    if choice.keys().isdisjoint(("message", "text", "logprobs", "finish_reason")):
        return False
    message = choice.get("message")
    if not isinstance(message, dict | None):
        return False
    content = (message or {}).get("content")
    return isinstance(content, str | list | None) and isinstance(choice.get("text"), str | None)


def read_completions(spec: EndpointSpec, data: Body, stop: Sequence[str]) -> list[Completion]:
    """Return the completions by ``index``; without choices, one that was filtered."""
    choices = sorted(data["choices"], key=_index)
    return [_completion(spec, choice, stop) for choice in choices] or [Completion("", FILTERED)]


def read_top_tokens(data: Body, requested: int) -> TopTokens | None:
    """Return the likeliest next tokens; None if the server reports none.

    ``requested``: number of requested tokens. Raises ValueError for an unreliable list.
    """
    logprobs = (data["choices"] or [{}])[0].get("logprobs") or {}
    try:
        if "content" in logprobs:
            first = logprobs["content"][0]
            listed = [
                ListedToken(
                    str(entry["token"]),
                    entry["logprob"],
                    str((entry.get("id"), entry.get("bytes"))),
                )
                for entry in first["top_logprobs"]
            ]
            return verify_top_tokens(listed, first.get("token")) if listed else None
        listed = [ListedToken(str(text), v) for text, v in logprobs["top_logprobs"][0].items()]
        sampled = (logprobs.get("tokens") or [None])[0]
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    return verify_top_tokens(listed, sampled, by_text=requested) if listed else None


def read_refusal(data: Body) -> Completion | None:
    """Return the reply to a request for a letter if it was refused or filtered, else None."""
    if not data["choices"]:
        return Completion("", FILTERED)
    choice = data["choices"][0]
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    content = message.get("content")
    refusal = _refusal(message)
    if refusal or _finish(choice) == REFUSED:
        return Completion(refusal or (content if isinstance(content, str) else ""), REFUSED)
    return Completion("", FILTERED) if _finish(choice) == FILTERED else None


def read_usage(data: Body) -> TokenUsage:
    """Return the token usage that the server reports."""
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return TokenUsage()
    prompt = _count(usage.get("prompt_tokens"))
    return TokenUsage(
        prompt=prompt,
        completion=_count(usage.get("completion_tokens")),
        reasoning=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        cached=min(_detail(usage, "prompt_tokens_details", "cached_tokens"), prompt or 0),
    )


def _completion(spec: EndpointSpec, choice: Body, stop: Sequence[str]) -> Completion:
    finish, reasoning = _finish(choice), None
    if spec.api == "chat":
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        content = message.get("content")
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        reasoning = reasoning or "".join(_parts(content, "thinking", "reasoning"))
        refusal = _refusal(message)
    else:
        content, refusal = choice.get("text"), ""
    whole = content if isinstance(content, str) else "".join(_parts(content, "text", "output_text"))
    thought = reasoning if isinstance(reasoning, str) and reasoning else None
    if refusal and not whole.strip():
        return Completion(refusal, REFUSED, thought)
    if thought is not None:
        end = stop_position(whole, stop)
        finish = finish if end == len(whole) else "stop"
        return Completion(
            whole[:end], finish, thought, not whole[:end].strip() and finish == "stop"
        )
    # The server does not separate the reasoning: same treatment as in ``models.hf``.
    parts = split_reply(whole, stop)
    only_reasoning = bool(parts.reasoning) and not parts.answer.strip() and finish == "stop"
    if not parts.closed and finish != FILTERED:
        finish = "length"
    finish = "stop" if parts.stopped else finish
    return Completion(parts.answer, finish, parts.reasoning, only_reasoning)


def _refusal(message: Body) -> str:
    """Return the text that the server marks as the model's refusal; empty if there is none."""
    refusal = message.get("refusal") or "".join(_parts(message.get("content"), "refusal"))
    return refusal if isinstance(refusal, str) and refusal.strip() else ""


def _finish(choice: Body) -> str | None:
    """Return the finish reason of a choice under OpenAI's name, if it has one."""
    finish = choice.get("finish_reason")
    if not isinstance(finish, str):
        return None
    lowered = finish.lower()
    return _REASON.get(lowered, lowered)


def _parts(content: object, *kinds: str) -> Iterator[str]:
    """Yield the texts of the parts of these kinds if the content is a list of parts.

    The reasoning part of Mistral's magistral models is a list of parts; parts of Anthropic's models
    have their text under the name of their kind.
    """
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        kind = part.get("type", "text")
        value = part.get(kind) or part.get("text")
        if kind in kinds and isinstance(value, str):
            yield value
        elif kind in kinds:
            yield from _parts(value, "text")


def _index(choice: Body) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _count(value: object) -> int | None:
    """Return the value as a number of tokens, or None if it is invalid."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count and isinstance(value, int) else None


def _detail(usage: Body, group: str, name: str) -> int:
    details = usage.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, dict) else 0
