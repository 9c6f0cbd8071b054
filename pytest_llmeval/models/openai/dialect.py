"""Adaptation of requests to the parameters that a server supports.

Only changes that cannot affect a score are made: names of parameters, parameters at their neutral
value, parameters with an equivalent in this package (stop strings, several samples), and the seed,
without which samples come from the same distribution. For every other rejected parameter the user
sees one line that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from pytest_llmeval.models.openai.faults import Fault
from pytest_llmeval.models.openai.parameters import Additions

Body = dict[str, Any]

_TOPS = (20, 10, 5, 3, 2)
_LIMITS = ("max_tokens", "max_completion_tokens")
_LOGPROBS = ("top_logprobs", "logprobs")
# Parameters that have no effect at this value, the default of the APIs known to reject them
# (OpenAI, Anthropic, TGI).
_NEUTRAL: Mapping[str, float] = {"temperature": 1.0, "top_p": 1.0}
_NOTHING = Additions()
_DISPENSABLE = frozenset({"seed", "stop"})
_REFUSALS = frozenset({400, 404, 422})
# llama.cpp answers 500 to parameters that it does not support, and names them.
_NAMED_REFUSALS = _REFUSALS | {500, 501}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Parameters that a server supports, learned from its errors, once per model."""

    #: Name of the parameter for the maximum number of tokens.
    tokens_field: str = "max_tokens"
    #: True if the parameter ``n`` (several samples per request) is supported.
    supports_n: bool = True
    #: Maximum number of likeliest tokens that the server returns.
    top: int = _TOPS[0]
    #: Rejected parameters, which are omitted wherever that cannot affect a score.
    omitted: frozenset[str] = frozenset()

    def filter_body(self, body: Body) -> Body:
        """Return the body without the omitted parameters."""
        dropped = {name for name in self.omitted if _is_dispensable(name, body)}
        return {name: value for name, value in body.items() if name not in dropped}


def adapt_dialect(dialect: Dialect, body: Body, fault: Fault) -> Dialect | None:
    """Return the dialect for another attempt, or None if that could affect a score.

    The parameters that the error names decide. An error that names none may still be about several
    samples per request.
    """
    if fault.item_specific or fault.status not in _NAMED_REFUSALS:
        return None
    names = _named(body, fault)
    for name in names:
        if (other := _without(name, dialect, body, fault)) is not None:
            return other
    if not names and "n" in body and fault.status in _REFUSALS:
        return replace(dialect, supports_n=False)
    return None


def suggest_fix(body: Body, fault: Fault, added: Additions = _NOTHING) -> str:
    """Return what the user can change about a parameter that the server rejects, or ""."""
    if fault.retryable or not (fault.item_specific or fault.status in _NAMED_REFUSALS):
        return ""
    for name in _named(body, fault):
        if remedy := added.remedy(name):
            return remedy
        if name == "temperature" and body[name] != _NEUTRAL[name]:
            return "use --llm-temperature 1"
        if name in _LIMITS:
            return "change the limit with --llm-max-tokens"
        if name in (*_LOGPROBS, "echo"):
            choices = "echo" if body.get("echo") else "top_logprobs"
            return f"remove choices={choices} from the spec to generate the letter instead"
        if name in ("top_p", "top_k", "min_p"):
            return f"use a protocol whose decoding has no {name} (here {body[name]:g})"
    return ""


def _named(body: Body, fault: Fault) -> Sequence[str]:
    return fault.body.faulty_parameters(
        [name for name in body if name not in ("model", "prompt", "messages")]
    )


def _without(name: str, dialect: Dialect, body: Body, fault: Fault) -> Dialect | None:
    if name == "max_tokens" and (
        fault.body.refuses_parameter or "max_completion_tokens" in fault.body.message
    ):
        return replace(dialect, tokens_field="max_completion_tokens")
    if name == "n":
        return replace(dialect, supports_n=False)
    if name in _LOGPROBS and not body.get("echo") and not fault.body.refuses_parameter:
        fewer = [top for top in _TOPS if top < dialect.top]
        return replace(dialect, top=fewer[0]) if fewer else None
    if _is_dispensable(name, body):
        return replace(dialect, omitted=dialect.omitted | {name})
    return None


def _is_dispensable(name: str, body: Body) -> bool:
    """Return True if omitting the parameter cannot affect a score."""
    if name == "temperature" and body.get("echo"):
        return True  # the one token that is generated is not used
    return name in _DISPENSABLE or (name in _NEUTRAL and body.get(name) == _NEUTRAL[name])
