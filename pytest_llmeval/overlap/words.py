"""Words of a text and their hashes, computed for all characters at once.

A word is a run of letters and digits (``str.isalnum``) in lower case; a Chinese character or a kana
is a word of its own, because these scripts have no spaces. The hash of a word is a polynomial modulo
2^64 over random values of its characters (Karp & Rabin 1987, "Efficient randomized pattern-matching
algorithms", IBM J. Res. Dev. 31, 249-260), from prefix sums over the whole text.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Places = NDArray[np.intp]

_BASE = np.uint64(0xD6E8FEB86659FD93)
_CODES = 0x110000
_LETTER, _SINGLE = 1, 2
_SINGLES = (
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # ideographs
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
"""First and last code points of the characters that are words."""


class Words(NamedTuple):
    """Words of a text in order: hashes, and the places of their first and past their last character."""

    hashes: Hashes
    starts: Places
    ends: Places


def split_words(text: str) -> Words:
    """Return the words of a text."""
    if text.isascii():
        codes = np.frombuffer(text.encode("ascii"), np.uint8)
        kinds = np.frombuffer(text.encode("ascii").translate(_ascii_kinds()), np.uint8)
    else:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds = _tables()[0].take(codes)
    starts, ends = _bounds(kinds)
    powers, inverses = _powers(len(codes).bit_length())
    sums = np.zeros(len(codes) + 1, np.uint64)
    values = _tables()[1].take(codes)
    values *= powers[: len(codes)]
    np.cumsum(values, out=sums[1:])
    hashes = sums[ends] - sums[starts]
    hashes *= inverses[starts]
    return Words(_mixed(hashes), starts, ends)


def _bounds(kinds: NDArray[np.uint8]) -> tuple[Places, Places]:
    """Return where words start and end, given the kind of every character."""
    padded = np.zeros(len(kinds) + 2, np.uint8)
    padded[1:-1] = kinds
    if len(kinds) == 0 or kinds.max() < _SINGLE:
        edges = np.flatnonzero(padded[1:] != padded[:-1])
        return edges[0::2], edges[1::2]
    single, word = kinds == _SINGLE, kinds != 0
    starts = np.flatnonzero(word & (single | (padded[:-2] != _LETTER)))
    ends = np.flatnonzero(word & (single | (padded[2:] != _LETTER))) + 1
    return starts, ends


def is_boundary(text: str, place: int) -> bool:
    """Return true if no word has characters on both sides of ``place``."""
    if not 0 < place < len(text):
        return True
    kinds = _tables()[0]
    return not (kinds[ord(text[place - 1])] == kinds[ord(text[place])] == _LETTER)


@cache
def _tables() -> tuple[NDArray[np.uint8], Hashes]:
    """Return the kind and the value of every code point; both cases of a letter have one value."""
    kinds = np.zeros(_CODES, np.uint8)
    lower = np.arange(_CODES, dtype=np.uint64)
    for code in range(_CODES):
        char = chr(code)
        if char.isalnum():
            kinds[code] = _LETTER
            # The lower case of a few letters is a letter and a mark.
            lower[code] = ord(char.lower()[0])
    for first, last in _SINGLES:
        kinds[first : last + 1][kinds[first : last + 1] == _LETTER] = _SINGLE
    return kinds, _mixed((lower + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


@cache
def _ascii_kinds() -> bytes:
    return bytes(_tables()[0][:128]) + bytes(128)


@cache
def _powers(bits: int) -> tuple[Hashes, Hashes]:
    """Return the first 2^bits powers of the base modulo 2^64, and of its inverse."""
    size = 1 << bits
    inverse = np.uint64(pow(int(_BASE), -1, 1 << 64))
    powers = np.full((2, size), np.uint64(1))
    powers[0, 1:], powers[1, 1:] = _BASE, inverse
    np.multiply.accumulate(powers, axis=1, out=powers)
    return powers[0], powers[1]


def _mixed(values: Hashes) -> Hashes:
    """Return a bijection of the values in which every bit depends on all bits (Stafford's mix 13).

    The low bits of a polynomial modulo 2^64 depend on the low bits of its terms alone.
    """
    values = values ^ (values >> np.uint64(30))
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values
