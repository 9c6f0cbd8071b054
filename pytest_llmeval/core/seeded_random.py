"""Random numbers that are the same on every machine, Python version and worker.

They are a pure function of the key. Only ``random.Random.random`` is used: Python guarantees its
sequence for a seed, but not those of ``shuffle`` and ``randrange``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from pytest_llmeval.core.hashing import canonical_json

T = TypeVar("T")


def order_key(seed: int, data: str, protocol: str, model: str, item: str) -> bytes:
    """Return the key by which the items of a benchmark are sorted into a random order.

    It is the hash of everything that a user could vary until a gate passes, after words that
    distinguish it from all other random choices: items that were used for tuning (``--llm-limit``)
    are no more likely to come first. ``data`` and ``protocol`` are hashes, ``model`` is its spec.
    """
    text = "\n".join(["llmeval sequential order 1", str(seed), data, protocol, model, item])
    return hashlib.sha256(text.encode()).digest()


class SeededRandom:
    """A random sequence that is seeded by ``key``, a series of numbers and texts."""

    def __init__(self, *key: int | str) -> None:
        digest = hashlib.sha256(canonical_json(list(key))).digest()
        self._random = Random(int.from_bytes(digest[:16], "big")).random

    def below(self, limit: int) -> int:
        """Return an integer from 0 to ``limit - 1``, uniformly (to within 2^-53)."""
        return int(self._random() * limit)

    def choice(self, values: Sequence[T]) -> T:
        """Return a random element of the values."""
        return values[self.below(len(values))]

    def sample(self, values: Sequence[T], size: int) -> list[T]:
        """Return ``size`` of the values in random order, without replacement.

        Raises ValueError if there are fewer values.
        """
        if size > len(values):
            raise ValueError(f"{size} of {len(values)} values cannot be sampled")
        # Fisher-Yates shuffle from the front that stores only the swapped places.
        moved: dict[int, int] = {}
        sample = []
        for place in range(size):
            other = place + self.below(len(values) - place)
            sample.append(values[moved.get(other, other)])
            moved[other] = moved.get(place, place)
        return sample

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return all values in random order."""
        return self.sample(values, len(values))
