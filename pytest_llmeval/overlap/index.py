"""Index of the items of benchmarks by their windows of eight words, and the search in a text.

Wording that several items share (a frame of the question, "which of the following statements is")
is not evidence that an item is in a corpus. A window that occurs in more than two items of a
benchmark can therefore lengthen a match, but a match has at least one window that is its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_llmeval.overlap.words import Hashes
from pytest_llmeval.overlap.words import Places
from pytest_llmeval.overlap.words import Words
from pytest_llmeval.overlap.words import split_words

WINDOW = 8
"""Words in a window, the shortest match."""

MOST_ITEMS = 2
"""Items of a benchmark that may share a window that makes a match."""

_BASE = 0x9FB21C651E98DF25
_FILTER_BITS = 24
_MOST_PAIRS = 1 << 20  # pairs of places that are compared at once: bounds the memory


def window_hashes(words: Hashes) -> Hashes:
    """Return the hash of every window of eight words, by the place of its first word.

    It is the polynomial of the words' hashes modulo 2^64, by doubling: of two words, of four, of
    eight.
    """
    hashes = words
    for span in (1, 2, 4):
        if len(words) < 2 * span:
            return words[:0]
        hashes = hashes[:-span] + hashes[span:] * np.uint64(pow(_BASE, span, 1 << 64))
    return hashes


class Runs(NamedTuple):
    """Matches: maximal runs of equal words on one diagonal of an item and a document."""

    items: Places
    #: First word in the item.
    places: Places
    #: First word in the searched text.
    positions: Places
    #: Number of words.
    lengths: Places


@dataclass(frozen=True)
class ItemIndex:
    """Words of all items, and their windows by hash. Items are numbered over all benchmarks."""

    #: Hashes of the words, item after item.
    words: Hashes
    #: Place of the first word of every item in ``words``, and the total.
    starts: Places
    #: For every word, whether a window that can make a match begins there.
    own: NDArray[np.bool_]
    #: Sorted hashes of these windows, each once.
    keys: Hashes
    #: Where the occurrences of a key begin in ``occurrences``, and their number.
    offsets: Places
    #: Places in ``words``.
    occurrences: Places
    #: Item of every word.
    owner: NDArray[np.int32]

    def lengths(self) -> Places:
        """Return the number of words of every item."""
        return np.diff(self.starts)

    def judged(self) -> NDArray[np.bool_]:
        """Return which items can be found: those with a window of their own."""
        total = np.concatenate(([0], np.cumsum(self.own)))
        return total[self.starts[1:]] > total[self.starts[:-1]]

    @cached_property
    def _filter(self) -> NDArray[np.bool_]:
        """Table over the first bits of hashes, which excludes nearly all windows of a corpus."""
        present = np.zeros(1 << _FILTER_BITS, np.bool_)
        present[_first_bits(self.keys)] = True
        return present

    @cached_property
    def _own_before(self) -> Places:
        return np.concatenate(([0], np.cumsum(self.own)))

    def search(self, words: Words, documents: Places) -> Runs:
        """Return the matches in a text.

        ``documents``: place of the first word of every document, ascending from 0; no match
        crosses from one document into the next.
        """
        hashes = window_hashes(words.hashes)
        positions = np.flatnonzero(self._filter.take(_first_bits(hashes)))
        if not len(positions) or not len(self.keys):
            return _NO_RUNS
        sought = hashes[positions]
        keys = np.minimum(np.searchsorted(self.keys, sought), len(self.keys) - 1)
        equal = self.keys[keys] == sought
        positions, keys = positions[equal], keys[equal]
        inside = _document(documents, positions) == _document(documents, positions + WINDOW - 1)
        positions, keys = positions[inside], keys[inside]
        if not len(positions):
            return _NO_RUNS
        ends = np.append(documents[1:], len(words.hashes))
        parts = []
        for batch_positions, batch_keys in _batches(positions, keys, self.offsets):
            diagonals = self._diagonals(batch_positions, batch_keys, documents)
            for first in range(0, len(diagonals), 4096):
                parts.append(
                    self._runs(diagonals[first : first + 4096], words.hashes, documents, ends)
                )
        return Runs(*map(np.concatenate, zip(*parts, strict=True)))

    def _diagonals(self, positions: Places, keys: Places, documents: Places) -> Places:
        """Return the pairs of an item and a document that share a window, with their offset.

        The rows are (item, document, place in the text of the item's first word), each once.
        """
        counts = self.offsets[keys + 1] - self.offsets[keys]
        places = self.occurrences[_ranges(self.offsets[keys], counts)]
        positions = np.repeat(positions, counts)
        items = self.owner[places].astype(np.intp)
        shifts = positions - (places - self.starts[items])
        rows = np.stack((items, _document(documents, positions), shifts), axis=1)
        rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
        first = np.ones(len(rows), np.bool_)
        first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        return rows[first]

    def _runs(self, diagonals: Places, words: Hashes, documents: Places, ends: Places) -> Runs:
        """Compare items with documents word by word along diagonals."""
        items, inside, shifts = diagonals.T
        lows = np.maximum(shifts, documents[inside])
        highs = np.minimum(shifts + self.lengths()[items], ends[inside])
        sizes = highs - lows
        positions = _ranges(lows, sizes)
        places = positions + np.repeat(self.starts[items] - shifts, sizes)
        equal = words[positions] == self.words[places]
        # A run does not continue from one diagonal to the next.
        borders = np.cumsum(sizes)
        before = np.concatenate(([False], equal[:-1]))
        before[borders[:-1]] = False
        after = np.concatenate((equal[1:], [False]))
        after[borders - 1] = False
        firsts = np.flatnonzero(equal & ~before)
        lengths = np.flatnonzero(equal & ~after) + 1 - firsts
        long = lengths >= WINDOW
        firsts, lengths = firsts[long], lengths[long]
        begins = places[firsts]
        last = begins + lengths - WINDOW + 1
        own = self._own_before[last] > self._own_before[begins]
        firsts, lengths, begins = firsts[own], lengths[own], begins[own]
        owners = self.owner[begins].astype(np.intp)
        return Runs(owners, begins - self.starts[owners], positions[firsts], lengths)


_NO_RUNS = Runs(*[np.zeros(0, np.intp)] * 4)


def build_index(benchmarks: Iterable[Sequence[str]]) -> ItemIndex:
    """Return the index of the items' texts, benchmark by benchmark."""
    words: list[Hashes] = []
    own = [np.zeros(0, np.bool_)]
    for texts in benchmarks:
        items = [split_words(text).hashes for text in texts]
        words += items
        own.append(_own_windows(items))
    joined = np.concatenate([np.zeros(0, np.uint64), *words])
    lengths = np.array([len(part) for part in words], np.intp)
    is_own = np.concatenate(own)
    places = np.flatnonzero(is_own)
    hashes = window_hashes(joined)[places]
    order = np.argsort(hashes, kind="stable")
    keys, offsets = np.unique(hashes[order], return_index=True)
    return ItemIndex(
        joined,
        np.concatenate(([0], np.cumsum(lengths))).astype(np.intp),
        is_own,
        keys,
        np.append(offsets, len(order)).astype(np.intp),
        places[order],
        np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
    )


def _own_windows(items: Sequence[Hashes]) -> NDArray[np.bool_]:
    """Return, for the words of a benchmark, whether a window begins there that few items share."""
    words = np.concatenate([np.zeros(0, np.uint64), *items])
    own = np.zeros(len(words), np.bool_)
    owner = np.repeat(np.arange(len(items)), [len(part) for part in items])
    hashes = window_hashes(words)
    if not len(hashes):
        return own
    places = np.flatnonzero(owner[: len(hashes)] == owner[WINDOW - 1 :])
    places = places[np.lexsort((owner[places], hashes[places]))]
    if not len(places):
        return own
    keys, items_of = hashes[places], owner[places]
    new_key = np.concatenate(([True], keys[1:] != keys[:-1]))
    new_pair = new_key | np.concatenate(([True], items_of[1:] != items_of[:-1]))
    sharing = np.add.reduceat(new_pair.astype(np.intp), np.flatnonzero(new_key))
    own[places] = (sharing <= MOST_ITEMS)[np.cumsum(new_key) - 1]
    return own


def _first_bits(hashes: Hashes) -> Places:
    return (hashes >> np.uint64(64 - _FILTER_BITS)).astype(np.intp)


def _document(documents: Places, positions: Places) -> Places:
    numbers: Places = np.searchsorted(documents, positions, side="right") - 1
    return numbers


def _ranges(starts: Places, sizes: Places) -> Places:
    """Return the concatenated ranges from ``starts`` of these sizes."""
    shifts = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    places: Places = np.arange(len(shifts)) + shifts
    return places


def _batches(positions: Places, keys: Places, offsets: Places) -> Iterable[tuple[Places, Places]]:
    """Cut places and their keys into parts whose keys have a limited number of occurrences."""
    pairs = np.cumsum(offsets[keys + 1] - offsets[keys])
    cuts = np.unique(np.searchsorted(pairs, np.arange(0, pairs[-1], _MOST_PAIRS), side="right"))
    for first, last in zip(cuts, [*cuts[1:], len(keys)], strict=True):
        yield positions[first:last], keys[first:last]
