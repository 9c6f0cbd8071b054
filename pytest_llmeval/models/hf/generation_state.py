"""Texts in the making, and which of them are worked on together. Pure Python: no torch here."""

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
from pytest_llmeval.models.hf.batching import Opening
from pytest_llmeval.models.hf.sampling import Watch

# Of so many places in the batch one must be free before new texts are begun: beginning them one
# at a time would cost as much as a step for all.
_REFILL = 8


@dataclass(slots=True, eq=False)
class Generation:
    """One text as it grows.

    ``opening``: the prompt as tokens, of which the first ``shared`` are read once for all that
    begin so. ``ends``: tokens that end a text. ``key``: what its random numbers are made of. ``tokens``: what was generated, the one that
    ended it included. ``finish``: ``stop`` or ``length`` once it is finished. ``error``: why it
    never will be. ``seconds``: its share of the work so far.
    """

    opening: Opening
    decoding: Decoding
    ends: frozenset[int]
    watch: Watch
    key: bytes
    shared: int = 0
    tokens: list[int] = field(default_factory=list)
    finish: str | None = None
    error: str | None = None
    seconds: float = 0.0

    @property
    def prefix(self) -> tuple[int, ...]:
        """The shared beginning of the prompt."""
        return self.opening.tokens[: self.shared]

    @property
    def read(self) -> tuple[int, ...]:
        """What the model must have read before the next token is chosen."""
        return (*self.opening.tokens, *self.tokens)

    @property
    def own(self) -> int:
        """How many tokens are to be read beyond the shared ones."""
        return len(self.opening.tokens) - self.shared + len(self.tokens)

    @property
    def capacity(self) -> int:
        """The most tokens that it will read beyond the shared ones."""
        return len(self.opening.tokens) - self.shared + self.opening.limit

    @property
    def done(self) -> bool:
        return self.finish is not None or self.error is not None

    @property
    def content(self) -> list[int]:
        """The generated tokens without the one that stands for the end."""
        return self.tokens[:-1] if self.tokens and self.tokens[-1] in self.ends else self.tokens

    def draw(self) -> float:
        """A number from [0, 1) for the next token: a function of the key and the token's place."""
        digest = hashlib.sha256(self.key + len(self.tokens).to_bytes(8)).digest()
        return float((int.from_bytes(digest[:8]) >> 11) * 2.0**-53)

    def add(self, token: int | None) -> None:
        """Take the next token; None is what no token could be chosen from."""
        if token is None:
            self.error = "the model's logits are not numbers (NaN): no token can be chosen"
            return
        self.tokens.append(token)
        if token in self.ends or self.watch.stopped(self.tokens):
            self.finish = "stop"
        elif len(self.tokens) >= self.opening.limit:
            self.finish = "length"


def key_of(request: Request) -> bytes:
    """What a request's random numbers are made of: seed, id, sample and arm, and nothing else."""
    arm = [request.arm] if request.arm else []
    return canonical_json([request.seed, request.id, request.sample, *arm])


class Schedule:
    """Which texts wait, which are worked on, and which are begun next.

    The texts worked on stand in rows without gaps: a row that becomes free is taken by the last
    one. ``size``: what beginning a text costs, in tokens; at most ``budget()`` are begun
    together, or one text. ``padded``: each costs as much as the dearest.
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

    def next(self) -> list[Generation]:
        """Take the texts to be begun now: neighbours with the same prefix. None: go on stepping."""
        free = self.rows - len(self.running)
        enough = free * _REFILL >= self.rows or free >= len(self._waiting)
        if not self._waiting or free <= 0 or (self.running and not enough):
            return []
        prefix = self._waiting[0].prefix
        taken: list[Generation] = []
        dearest = total = 0
        while self._waiting and len(taken) < free and self._waiting[0].prefix == prefix:
            cost = self._size(self._waiting[0])
            dearest, total = max(dearest, cost), total + cost
            if taken and (dearest * (len(taken) + 1) if self._padded else total) > self._budget:
                break
            taken.append(self._waiting.popleft())
        return taken

    def put_back(self, generations: Sequence[Generation]) -> None:
        """Let texts wait again, before all others."""
        self._waiting.extendleft(reversed(generations))

    def release(self) -> Iterator[tuple[int, Generation]]:
        """Take out every finished text; yield the row that the last one is to be moved to."""
        for row in reversed(range(len(self.running))):
            generation = self.running[row]
            if generation.done:
                last = self.running.pop()
                if last is not generation:
                    self.running[row] = last
                yield row, generation

    def stop(self) -> None:
        """Let every running text wait."""
        self.put_back(self.running)
        self.running = []
