"""Tokens and requests used, and their price."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one HTTP request; None where the server does not report them.

    ``cached``: the part of the prompt that the server took from its cache.
    """

    prompt: int | None = None
    completion: int | None = None
    reasoning: int = 0
    cached: int = 0


@dataclass(slots=True)
class Usage:
    """Counts since the model was opened. Tokens are those that the server reported.

    ``requests``: HTTP requests sent; ``retries``: those of them that repeat a failed one.
    ``failed``: requests without an answer after all retries. ``from_cache``: answers from the
    response cache, which cost nothing. ``cached_tokens``: the part of ``prompt_tokens`` that the
    server took from its cache; ``reasoning_tokens``: the part of ``completion_tokens`` that is
    reasoning. ``waited``: seconds spent waiting for rate limits, summed over requests.
    """

    requests: int = 0
    retries: int = 0
    failed: int = 0
    from_cache: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    waited: float = 0.0

    def add(self, tokens: TokenUsage) -> None:
        """Add the tokens of one request."""
        self.prompt_tokens += tokens.prompt or 0
        self.completion_tokens += tokens.completion or 0
        self.reasoning_tokens += tokens.reasoning
        self.cached_tokens += tokens.cached

    def __add__(self, other: Usage) -> Usage:
        names = [field.name for field in fields(self)]
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens, in the currency of the price table.

    ``cached_input``: for prompt tokens that the server took from its cache; None: as ``input``.
    Reasoning is billed as output.
    """

    input: float
    output: float
    cached_input: float | None = None

    def of(self, prompt: int, completion: int, cached: int = 0) -> float:
        """Return the price of a number of tokens; ``cached`` is the cached part of ``prompt``."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        total = (prompt - cached) * self.input + cached * cached_price + completion * self.output
        return total / _MILLION
