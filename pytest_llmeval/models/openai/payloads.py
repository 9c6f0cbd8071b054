"""Requests as JSON bodies, and JSON bodies as answers. No network here."""

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
from pytest_llmeval.models.hf.sampling import end_of
from pytest_llmeval.models.hf.sampling import parts_of
from pytest_llmeval.models.openai.dialect import Body
from pytest_llmeval.models.openai.dialect import Dialect
from pytest_llmeval.models.openai.echo_logprobs import texts_of
from pytest_llmeval.models.openai.faults import Fault
from pytest_llmeval.models.openai.faults import RequestFailedError
from pytest_llmeval.models.openai.faults import of_body
from pytest_llmeval.models.openai.faults import unreadable
from pytest_llmeval.models.openai.spec import Spec
from pytest_llmeval.models.openai.top_logprobs import Listed
from pytest_llmeval.models.openai.top_logprobs import Top
from pytest_llmeval.models.openai.top_logprobs import top_of

# What the API takes; more are cut off here, which gives the same text.
_MOST_STOPS = 4

# Reasons of servers that do not use OpenAI's words: Google's and Anthropic's own APIs, Mistral
# (model_length), Zhipu (sensitive), TGI (eos_token), Bedrock (guardrail_intervened).
_REASONS = {
    "length": ("max_tokens", "max_output_tokens", "model_length", "token_limit"),
    FILTERED: (
        *("safety", "sensitive", "prohibited_content", "blocklist", "spii", "recitation"),
        *("guardrail_intervened", "content_filtered"),
    ),
    "stop": ("end_turn", "stop_sequence", "eos", "eos_token", "complete"),
}
_REASON = {name: reason for reason, names in _REASONS.items() for name in names}
# A reply that the server broke off: OpenRouter (error), vLLM and SGLang (abort), DeepSeek.
_BROKEN = frozenset({"error", "abort", "cancelled", "insufficient_system_resource"})


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request: path below the base URL, and body."""

    path: str
    body: Body


@dataclass(frozen=True, slots=True)
class Said:
    """One generated text, and the ``reasoning`` before it.

    ``only_reasoning``: the server ended it before an answer, and not at the token limit.
    """

    text: str
    finish_reason: str | None
    reasoning: str | None = None
    only_reasoning: bool = field(default=False, compare=False)


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
        body["seed"] = drawn_seed(first)
        # Not OpenAI's; sent only where the protocol says so, and a server that knows no
        # better refuses.
        if decoding.top_k:
            body["top_k"] = decoding.top_k
        if decoding.min_p:
            body["min_p"] = decoding.min_p
    if stop := _stops(spec, decoding.stop):
        body["stop"] = stop
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
            "prompt": [text for text, _ in texts_of(request)],
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": 1,
            "echo": True,
        },
    )


def drawn_seed(request: Request) -> int:
    """The seed of a sampled request: its own, whatever else is asked. 31 bits."""
    arm = f" {request.arm}" if request.arm else ""
    name = f"{request.seed} {request.sample} {request.id}{arm}"
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) >> 1


def _stops(spec: Spec, stop: Sequence[str]) -> list[str]:
    """The stop strings that are sent; answers are cut at all of them when they are here.

    A chat gets none. Servers look for them in the thoughts as well, whose text they then return
    without an answer, or as one (vllm-project/vllm#52393, sgl-project/sglang#33154), and a chat
    model ends its turn by itself. White space alone is not sent either: the server would end an
    answer that begins with blank lines before it has begun.
    """
    if spec.api == "chat":
        return []
    return [word for word in stop if word.strip()][:_MOST_STOPS]


def refuses_echo(call: Call, fault: Fault) -> bool:
    """Whether a server refuses to echo, which another attempt does not change.

    llama.cpp does so with status 500, "Only no echo is supported" (``server-common.cpp``).
    """
    return bool(call.body.get("echo")) and (
        fault.status in (400, 405, 422, 501) or "echo" in fault.message
    )


def _call(spec: Spec, body: Body) -> Call:
    return Call("/chat/completions" if spec.api == "chat" else "/completions", body)


def _prompt(spec: Spec, request: Request) -> Body:
    if spec.api == "completions":
        return {"prompt": replace_lone_surrogates(request.prompt.text)}
    if not request.chat:
        # A protocol of plain text, put to a chat: all of it is what the user says.
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


# --- answers


def check(data: object) -> Body:
    """Return the answer; raise RequestFailedError, to be retried, if it has another shape."""
    if not isinstance(data, dict) or not isinstance(data.get("choices"), list):
        raise RequestFailedError(unreadable(f"no choices in {data!r}"))
    for choice in data["choices"]:
        if not isinstance(choice, dict):
            raise RequestFailedError(unreadable("a choice is no object"))
        if choice.get("error"):
            raise RequestFailedError(of_body(choice["error"]))
        if _finish(choice) in _BROKEN:
            raise RequestFailedError(
                of_body(f"the reply was broken off ({choice['finish_reason']})")
            )
        if not _is_readable(choice):
            raise RequestFailedError(unreadable(f"no message in {choice!r}"))
    return data


def _is_readable(choice: Body) -> bool:
    """Whether a choice has its text where one is looked for; nothing there is a text, too."""
    if choice.keys().isdisjoint(("message", "text", "logprobs", "finish_reason")):
        return False
    message = choice.get("message")
    if not isinstance(message, dict | None):
        return False
    content = (message or {}).get("content")
    return isinstance(content, str | list | None) and isinstance(choice.get("text"), str | None)


def texts(spec: Spec, data: Body, stop: Sequence[str]) -> list[Said]:
    """The generated texts in the order asked for. No choices at all: one that was filtered out."""
    choices = sorted(data["choices"], key=_index)
    return [_said(spec, choice, stop) for choice in choices] or [Said("", FILTERED)]


def top_tokens(data: Body, requested: int) -> Top | None:
    """The likeliest next tokens; None where the server reports none.

    ``requested``: how many. Raises ValueError for a list that cannot be relied on.
    """
    logprobs = (data["choices"] or [{}])[0].get("logprobs") or {}
    try:
        if "content" in logprobs:
            first = logprobs["content"][0]
            listed = [
                Listed(str(one["token"]), one["logprob"], str((one.get("id"), one.get("bytes"))))
                for one in first["top_logprobs"]
            ]
            return top_of(listed, first.get("token")) if listed else None
        listed = [Listed(str(text), v) for text, v in logprobs["top_logprobs"][0].items()]
        sampled = (logprobs.get("tokens") or [None])[0]
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    return top_of(listed, sampled, by_text=requested) if listed else None


def is_filtered(data: Body) -> bool:
    """Whether a content filter stands behind an answer without content."""
    choices = data["choices"]
    return not choices or _finish(choices[0]) == FILTERED


def tokens(data: Body) -> TokenUsage:
    """What the server says the request cost."""
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


def _said(spec: Spec, choice: Body, stop: Sequence[str]) -> Said:
    finish, reasoning = _finish(choice), None
    if spec.api == "chat":
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        content = message.get("content")
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        reasoning = reasoning or "".join(_parts(content, "thinking", "reasoning"))
        refusal = message.get("refusal") or "".join(_parts(content, "refusal"))
    else:
        content, refusal = choice.get("text"), None
    whole = content if isinstance(content, str) else "".join(_parts(content, "text", "output_text"))
    thought = reasoning if isinstance(reasoning, str) and reasoning else None
    if isinstance(refusal, str) and refusal.strip() and not whole.strip():
        return Said(refusal, REFUSED, thought)
    if thought is not None:
        end = end_of(whole, stop)
        finish = finish if end == len(whole) else "stop"
        return Said(whole[:end], finish, thought, not whole[:end].strip() and finish == "stop")
    # A server that does not take the reasoning out: as with the models that are computed here.
    parts = parts_of(whole, stop)
    only_reasoning = bool(parts.reasoning) and not parts.answer.strip() and finish == "stop"
    if not parts.closed and finish != FILTERED:
        finish = "length"
    finish = "stop" if parts.stopped else finish
    return Said(parts.answer, finish, parts.reasoning, only_reasoning)


def _finish(choice: Body) -> str | None:
    """Why a reply ended, in OpenAI's words where there is one for it."""
    finish = choice.get("finish_reason")
    if not isinstance(finish, str):
        return None
    lowered = finish.lower()
    return _REASON.get(lowered, lowered)


def _parts(content: object, *kinds: str) -> Iterator[str]:
    """The texts of the parts of these kinds, where a content is a list of parts.

    A part of Mistral's magistral models has a list of parts as its thought, one of Anthropic's a text
    under the name of its kind.
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
    """A number of tokens; None for what cannot be one."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count and isinstance(value, int) else None


def _detail(usage: Body, group: str, name: str) -> int:
    details = usage.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, dict) else 0
