"""State of the texts being generated, and the schedule of their batches, without torch."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field

from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Request
from pytest_llmeval.core import canonical_json
from pytest_llmeval.models.hf.batching import EncodedPrompt
from pytest_llmeval.models.stopping import StopWatcher

# New texts start when at least one of this many rows is free: starting them one by one would cost
# as much as a step for all rows.
_REFILL = 8


@dataclass(slots=True, eq=False)
class Generation:
    """State of one text that is being generated."""

    prompt: EncodedPrompt
    decoding: Decoding
    #: Tokens that end the text.
    ends: frozenset[int]
    watcher: StopWatcher
    #: Seed of the random numbers, from ``sampling_key``.
    key: bytes
    #: Number of leading prompt tokens that are computed once for several texts.
    shared: int = 0
    #: Generated tokens, including the one that ended the text.
    tokens: list[int] = field(default_factory=list)
    #: ``stop`` or ``length``; None until the text is finished.
    finish: str | None = None
    #: Reason why the text cannot be finished.
    error: str | None = None
    #: Share of the computing time so far.
    seconds: float = 0.0

    @property
    def prefix(self) -> tuple[int, ...]:
        """Shared prefix of the prompt."""
        return self.prompt.tokens[: self.shared]

    @property
    def all_tokens(self) -> tuple[int, ...]:
        """Prompt and generated tokens: the input for the next token."""
        return (*self.prompt.tokens, *self.tokens)

    @property
    def unshared_length(self) -> int:
        """Number of tokens after the shared prefix."""
        return len(self.prompt.tokens) - self.shared + len(self.tokens)

    @property
    def capacity(self) -> int:
        """Maximum number of tokens after the shared prefix."""
        return len(self.prompt.tokens) - self.shared + self.prompt.limit

    @property
    def done(self) -> bool:
        return self.finish is not None or self.error is not None

    @property
    def content(self) -> list[int]:
        """Generated tokens without the end token."""
        return self.tokens[:-1] if self.tokens and self.tokens[-1] in self.ends else self.tokens

    def next_random(self) -> float:
        """Return a number from [0, 1) that depends only on the key and the token's position."""
        digest = hashlib.sha256(self.key + len(self.tokens).to_bytes(8)).digest()
        return float((int.from_bytes(digest[:8]) >> 11) * 2.0**-53)

    def add(self, token: int | None) -> None:
        """Append the next token; None reports that no token could be chosen."""
        if token is None:
            self.error = "the model's logits are not numbers (NaN): no token can be chosen"
            return
        self.tokens.append(token)
        if token in self.ends or self.watcher.stopped(self.tokens):
            self.finish = "stop"
        elif len(self.tokens) >= self.prompt.limit:
            self.finish = "length"


def sampling_key(request: Request) -> bytes:
    """Return the seed of a request's random numbers: its seed, id, sample and arm."""
    arm = [request.arm] if request.arm else []
    return canonical_json([request.seed, request.id, request.sample, *arm])


class Schedule:
    """Queue of waiting texts and list of running ones.

    Running texts occupy consecutive rows: the last one moves to a row that becomes free.
    ``rows``: maximum number of running texts. ``size``: cost in tokens of starting a text.
    ``budget``: maximum cost of a batch to start, unless it is a single text. ``padded``: every
    text of a batch costs as much as the most expensive one.
    """

    def __init__(
        self,
        generations: Iterable[Generation],
        rows: int,
        size: Callable[[Generation], int],
        budget: int,
        *,
        padded: bool = False,
    ) -> None:
        self.rows = rows
        self.running: list[Generation] = []
        self._waiting = deque(generations)
        self._size = size
        self._budget = budget
        self._padded = padded

    @property
    def waiting(self) -> Sequence[Generation]:
        return self._waiting

    def next_batch(self) -> list[Generation]:
        """Remove and return the texts to start now: consecutive ones with the same prefix.

        Empty if the running texts should continue first.
        """
        free = self.rows - len(self.running)
        enough = free * _REFILL >= self.rows or free >= len(self._waiting)
        if not self._waiting or free <= 0 or (self.running and not enough):
            return []
        prefix = self._waiting[0].prefix
        batch: list[Generation] = []
        highest = total = 0
        while self._waiting and len(batch) < free and self._waiting[0].prefix == prefix:
            cost = self._size(self._waiting[0])
            highest, total = max(highest, cost), total + cost
            if batch and (highest * (len(batch) + 1) if self._padded else total) > self._budget:
                break
            batch.append(self._waiting.popleft())
        return batch

    def requeue(self, generations: Sequence[Generation]) -> None:
        """Insert texts at the front of the queue."""
        self._waiting.extendleft(reversed(generations))

    def release(self) -> Iterator[tuple[int, Generation]]:
        """Remove every finished text; yield it with its row, to which the last row has to move."""
        for row in reversed(range(len(self.running))):
            generation = self.running[row]
            if generation.done:
                last = self.running.pop()
                if last is not generation:
                    self.running[row] = last
                yield row, generation

    def requeue_running(self) -> None:
        """Insert all running texts at the front of the queue."""
        self.requeue(self.running)
        self.running = []
