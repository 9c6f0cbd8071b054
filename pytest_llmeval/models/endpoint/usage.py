"""What answering has cost so far."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_llmeval.models.endpoint.wire import Tokens


@dataclass(slots=True)
class Usage:
    """Counts since the model was opened. Tokens are those that the server reported.

    ``requests``: HTTP requests sent, ``retries`` those of them that repeat a failed one.
    ``failed``: answers given up. ``from_cache``: answers that cost nothing. ``cached_tokens``:
    the part of ``prompt_tokens`` that the server had computed before. ``waited``: seconds spent
    waiting for the limits, summed over requests.
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

    def add(self, tokens: Tokens) -> None:
        """Count what one request used."""
        self.prompt_tokens += tokens.prompt or 0
        self.completion_tokens += tokens.completion or 0
        self.reasoning_tokens += tokens.reasoning
        self.cached_tokens += tokens.cached
