"""Index of recorded answers in their file, in columns: objects would take five times as much."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple


class AnswerLocation(NamedTuple):
    """Place of an answer: byte and number of its record, and the index of its text in it.

    ``arm``: its name, or the fingerprint of its protocol in records of format 2, which do not name
    it; empty: the item as it is. ``prompt``: the recorded prompt's hash; None: any prompt.
    """

    arm: str
    sample: int
    prompt: bytes | None
    offset: int
    number: int
    element: int


class AnswerIndex:
    """The places of all answers by item; the last for an arm, sample and prompt hash counts."""

    def __init__(self) -> None:
        #: By item: the row of its place that was put last.
        self._last: dict[str, int] = {}
        #: By row: the row of the item's place before, -1 at its first; then what a place has.
        self._before = array("q")
        self._arms: list[str] = []
        self._samples = array("q")
        self._prompts: list[bytes | None] = []
        self._offsets = array("q")
        self._numbers = array("q")
        self._elements = array("q")

    def put(self, item: str, place: AnswerLocation) -> None:
        """Enter a place, instead of an earlier one of the same answer."""
        for row in self._rows(item):
            answer = self._arms[row], self._samples[row], self._prompts[row]
            if answer == (place.arm, place.sample, place.prompt):
                self._offsets[row] = place.offset
                self._numbers[row] = place.number
                self._elements[row] = place.element
                return
        self._before.append(self._last.get(item, -1))
        self._last[item] = len(self._arms)
        self._arms.append(place.arm)
        self._samples.append(place.sample)
        self._prompts.append(place.prompt)
        self._offsets.append(place.offset)
        self._numbers.append(place.number)
        self._elements.append(place.element)

    def places(self, item: str) -> Iterator[AnswerLocation]:
        """Yield the places of an item's answers."""
        for row in self._rows(item):
            yield AnswerLocation(
                self._arms[row],
                self._samples[row],
                self._prompts[row],
                self._offsets[row],
                self._numbers[row],
                self._elements[row],
            )

    def _rows(self, item: str) -> Iterator[int]:
        row = self._last.get(item, -1)
        while row >= 0:
            yield row
            row = self._before[row]
