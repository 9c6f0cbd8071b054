"""Search of documents for items: long documents in overlapping pieces, short ones in common blocks."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_llmeval.overlap.index import WINDOW
from pytest_llmeval.overlap.index import ItemIndex
from pytest_llmeval.overlap.index import Runs
from pytest_llmeval.overlap.words import Places
from pytest_llmeval.overlap.words import Words
from pytest_llmeval.overlap.words import is_boundary
from pytest_llmeval.overlap.words import split_words

BLOCK = 1 << 18
"""Characters that are searched at once; a longer document is cut."""

PASSAGE = 400
"""Characters of a passage that are kept."""

_BACK = 1000  # characters in which a boundary of words is looked for


@dataclass(frozen=True, slots=True)
class Match:
    """Longest run of an item's words in one document of a file."""

    words: int
    #: Number of the document in its file: line or row from 1; of a text file, the line of the match.
    place: int
    #: The text of the run, its middle left out if it is long.
    passage: str


class _Piece(NamedTuple):
    text: str
    place: int
    #: True if lines of the text are counted for the place of a match.
    by_line: bool


class Search:
    """Search of one file: what has been found of every item so far."""

    def __init__(self, index: ItemIndex) -> None:
        self._index = index
        self._keep = int(index.lengths().max(initial=WINDOW))
        self._size = max(BLOCK, 32 * self._keep)
        #: For every word of the index, whether a window of a match begins there.
        self._seen: NDArray[np.bool_] = np.zeros(len(index.words), np.bool_)
        # Item → sort key and match; among equally long ones the first of the file counts.
        self._longest: dict[int, tuple[tuple[int, int, int], Match]] = {}
        # Pieces that wait for a block, by whether they are ASCII, which needs less time.
        self._waiting: dict[bool, list[_Piece]] = {True: [], False: []}
        self._waiting_characters = {True: 0, False: 0}
        self.documents = 0
        self.words = 0

    def add(self, place: int, parts: Iterable[str], *, by_line: bool = False) -> None:
        """Search a document, whose text is the concatenation of ``parts``.

        ``place``: its number in the file. ``by_line``: the place of a match is the line, from 1.
        """
        self.documents += 1
        lines = 1
        for text, new in _pieces(parts, self._size, self._keep):
            self._wait(_Piece(text, lines if by_line else place, by_line))
            lines += text.count("\n", 0, new) if by_line else 0

    def finish(self) -> None:
        """Search what still waits."""
        for pieces in self._waiting.values():
            self._search(pieces)

    def matches(self) -> Iterator[tuple[int, list[tuple[int, int]], Match]]:
        """Yield items, ranges of their windows that were seen, and their longest match, in order."""
        for item in sorted(self._longest):
            first, last = self._index.starts[item : item + 2]
            yield item, _true_ranges(self._seen[first:last]), self._longest[item][1]

    def _wait(self, piece: _Piece) -> None:
        kind = piece.text.isascii()
        self._waiting[kind].append(piece)
        self._waiting_characters[kind] += len(piece.text)
        if self._waiting_characters[kind] >= BLOCK:
            self._search(self._waiting[kind])
            self._waiting_characters[kind] = 0

    def _search(self, pieces: list[_Piece]) -> None:
        """Search the pieces in one text, and empty the list."""
        if not pieces:
            return
        text = "\n".join(piece.text for piece in pieces)
        lengths = np.array([len(piece.text) + 1 for piece in pieces], np.intp)
        begins = np.cumsum(lengths) - lengths
        words = split_words(text)
        self.words += len(words.hashes)
        runs = self._index.search(words, np.searchsorted(words.starts, begins))
        if len(runs.items):
            self._take(runs, words, text, pieces, begins)
        pieces.clear()

    def _take(
        self, runs: Runs, words: Words, text: str, pieces: list[_Piece], begins: Places
    ) -> None:
        places = self._index.starts[runs.items] + runs.places
        for first, size in zip(places, runs.lengths - WINDOW + 1, strict=True):
            self._seen[first : first + size] = True
        inside = np.searchsorted(begins, words.starts[runs.positions], side="right") - 1
        for item, position, length, number in zip(
            *(array.tolist() for array in (runs.items, runs.positions, runs.lengths, inside)),
            strict=True,
        ):
            best = self._longest.get(item)
            if best is not None and length < best[1].words:
                continue
            piece, start = pieces[number], int(words.starts[position])
            place = piece.place
            if piece.by_line:
                place += text.count("\n", int(begins[number]), start)
            key = (-length, place, start - int(begins[number]))
            if best is None or key < best[0]:
                passage = text[start : words.ends[position + length - 1]]
                self._longest[item] = key, Match(length, place, _shortened(passage))


def _pieces(parts: Iterable[str], size: int, keep: int) -> Iterator[tuple[str, int]]:
    """Cut a text into pieces of about ``size`` characters that overlap by ``keep`` words.

    No run of at most ``keep`` words is cut. A piece comes with the number of its characters that
    precede the next one.
    """
    rest = ""
    for part in parts:
        for first in range(0, len(part), size):
            rest += _composed(part[first : first + size])
            while len(rest) > size:
                end = _last_boundary(rest, size)
                begin = _last_words(rest, end, keep)
                yield rest[:end], begin
                rest = rest[begin:]
    yield rest, len(rest)


def _composed(text: str) -> str:
    """Return the text in Unicode's form NFC, in which items are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def item_text(question: str, options: Iterable[str]) -> str:
    """Return the text of an item that is searched for: its question and its options."""
    return _composed("\n".join((question, *options)))


def _last_boundary(text: str, end: int) -> int:
    """Return the last place up to ``end`` between words; ``end`` itself inside a very long word."""
    return next((at for at in range(end, max(0, end - _BACK), -1) if is_boundary(text, at)), end)


def _last_words(text: str, end: int, count: int) -> int:
    """Return where the last ``count`` words of ``text[:end]`` begin, at most half of the text before."""
    reach = 16 * count
    while True:
        begin = max(end // 2, end - reach)
        starts = split_words(text[begin:end]).starts
        # The first of the words may be the end of a word.
        if len(starts) > count:
            return begin + int(starts[-count])
        if begin == end // 2:
            return begin
        reach *= 2


def _shortened(text: str) -> str:
    half = PASSAGE // 2
    return text if len(text) <= PASSAGE else f"{text[:half]} … {text[-half:]}"


def _true_ranges(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True))
