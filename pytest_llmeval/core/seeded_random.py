"""Random draws that are the same on every machine, Python version and worker.

A draw is a pure function of its key. Only ``random.Random.random`` is used, the one method whose
sequence for a seed Python promises never to change; ``shuffle`` and ``randrange`` carry no such
promise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from pytest_llmeval.core import canonical_json

T = TypeVar("T")


class Draws:
    """Draws one after the other from the sequence that belongs to ``key``: numbers and texts."""

    def __init__(self, *key: int | str) -> None:
        digest = hashlib.sha256(canonical_json(list(key))).digest()
        self._random = Random(int.from_bytes(digest[:16], "big")).random

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit - 1``, each as likely (to 2^-53 of each other)."""
        return int(self._random() * limit)

    def one_of(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]

    def some_of(self, values: Sequence[T], size: int) -> list[T]:
        """``size`` of the values, no place twice, in random order; ValueError for too many."""
        if size > len(values):
            raise ValueError(f"{size} of {len(values)} values cannot be drawn")
        # Fisher and Yates from the front, remembering only the places that were swapped.
        moved: dict[int, int] = {}
        drawn = []
        for place in range(size):
            other = place + self.below(len(values) - place)
            drawn.append(values[moved.get(other, other)])
            moved[other] = moved.get(place, place)
        return drawn

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """All values in random order."""
        return self.some_of(values, len(values))
