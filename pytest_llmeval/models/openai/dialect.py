"""What a server turned out to understand, and how a refused request is put otherwise.

Only what cannot move a score is changed: names of parameters, parameters at their neutral value,
what is done here as well (stop strings, several samples), and a seed, without which samples are
drawn from the same distribution. Everything else is refused with one line that names the parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from pytest_llmeval.models.openai.faults import Fault

Body = dict[str, Any]

_TOPS = (20, 10, 5, 3, 2)
_LIMITS = ("max_tokens", "max_completion_tokens")
_LOGPROBS = ("top_logprobs", "logprobs")
# Parameters that change nothing at this value, the default of the APIs known to refuse them
# (OpenAI, Anthropic, TGI).
_NEUTRAL: Mapping[str, float] = {"temperature": 1.0, "top_p": 1.0}
_DISPENSABLE = frozenset({"seed", "stop"})
_REFUSALS = frozenset({400, 404, 422})
# llama.cpp answers 500 to what it does not support, and names it.
_NAMED_REFUSALS = _REFUSALS | {500, 501}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server turned out to understand. Found out by its refusals, once for a model.

    ``top``: how many of the likeliest tokens it returns. ``left_out``: parameters that it refuses
    and that are left out wherever that cannot move a score.
    """

    tokens_field: str = "max_tokens"
    several: bool = True
    top: int = _TOPS[0]
    left_out: frozenset[str] = frozenset()

    def spoken(self, body: Body) -> Body:
        """The body without the parameters that are left out."""
        dropped = {name for name in self.left_out if _is_dispensable(name, body)}
        return {name: value for name, value in body.items() if name not in dropped}


def adapted(dialect: Dialect, body: Body, fault: Fault) -> Dialect | None:
    """How to put a refused request otherwise, or None where that could move a score.

    The parameters that the refusal names decide. One that names none may still be about several
    samples at once.
    """
    if fault.of_item or fault.status not in _NAMED_REFUSALS:
        return None
    names = _named(body, fault)
    for name in names:
        if (other := _without(name, dialect, body, fault)) is not None:
            return other
    if not names and "n" in body and fault.status in _REFUSALS:
        return replace(dialect, several=False)
    return None


def way_out(body: Body, fault: Fault) -> str:
    """What the user can do about a parameter that is refused for good, or nothing."""
    if fault.retryable or not (fault.of_item or fault.status in _NAMED_REFUSALS):
        return ""
    for name in _named(body, fault):
        if name == "temperature" and body[name] != _NEUTRAL[name]:
            return "use --llm-temperature 1"
        if name in _LIMITS:
            return "set another limit with --llm-max-tokens"
        if name in (*_LOGPROBS, "echo"):
            asked = "echo" if body.get("echo") else "top_logprobs"
            return f"leave choices={asked} out, and the letter is generated"
        if name in ("top_p", "top_k", "min_p"):
            return f"choose a protocol whose decoding has no {name} (here {body[name]:g})"
    return ""


def _named(body: Body, fault: Fault) -> Sequence[str]:
    return fault.body.named([name for name in body if name not in ("model", "prompt", "messages")])


def _without(name: str, dialect: Dialect, body: Body, fault: Fault) -> Dialect | None:
    if name == "max_tokens" and (
        fault.body.refuses_name or "max_completion_tokens" in fault.body.message
    ):
        return replace(dialect, tokens_field="max_completion_tokens")
    if name == "n":
        return replace(dialect, several=False)
    if name in _LOGPROBS and not body.get("echo") and not fault.body.refuses_name:
        fewer = [top for top in _TOPS if top < dialect.top]
        return replace(dialect, top=fewer[0]) if fewer else None
    if _is_dispensable(name, body):
        return replace(dialect, left_out=dialect.left_out | {name})
    return None


def _is_dispensable(name: str, body: Body) -> bool:
    """Whether a request means the same without the parameter, as far as scores are concerned."""
    if name == "temperature" and body.get("echo"):
        return True  # the one token that is generated is not used
    return name in _DISPENSABLE or (name in _NEUTRAL and body.get(name) == _NEUTRAL[name])
