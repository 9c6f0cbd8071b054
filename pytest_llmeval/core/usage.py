"""What answers have used, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one HTTP request; None where the server does not report them.

    ``cached``: the part of the prompt that the server had computed before.
    """

    prompt: int | None = None
    completion: int | None = None
    reasoning: int = 0
    cached: int = 0


@dataclass(slots=True)
class Usage:
    """Counts since the model was opened. Tokens are those that the server reported.

    ``requests``: HTTP requests sent, ``retries`` those of them that repeat a failed one.
    ``failed``: answers given up. ``from_cache``: answers that cost nothing. ``cached_tokens``:
    the part of ``prompt_tokens`` that the server had computed before; ``reasoning_tokens``: the
    part of ``completion_tokens`` that is thought. ``waited``: seconds spent waiting for the limits,
    summed over requests.
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
        """Count what one request used."""
        self.prompt_tokens += tokens.prompt or 0
        self.completion_tokens += tokens.completion or 0
        self.reasoning_tokens += tokens.reasoning
        self.cached_tokens += tokens.cached

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            **{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        )


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in whatever money the user counts in.

    ``cached_input``: of prompt tokens that the server had computed before; None: as ``input``.
    Reasoning is billed as output.
    """

    input: float
    output: float
    cached_input: float | None = None

    def of(self, prompt: int, completion: int, cached: int = 0) -> float:
        """The price of so many tokens, ``cached`` of the prompt's among them."""
        cheap = self.input if self.cached_input is None else self.cached_input
        total = (prompt - cached) * self.input + cached * cheap + completion * self.output
        return total / _MILLION
