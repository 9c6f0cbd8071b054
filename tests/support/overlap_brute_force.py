"""Overlap of items with documents by comparing all words with all words, as strings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

WINDOW = 8
_SINGLE = re.compile("[\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]")


class Overlap(NamedTuple):
    seen: frozenset[int]
    longest: int


def words(text: str) -> list[str]:
    """Words of a text, character by character."""
    words = [""]
    for char in unicodedata.normalize("NFC", text):
        if not char.isalnum():
            words.append("")
        elif _SINGLE.match(char):
            words += [char, ""]
        else:
            words[-1] += char.lower()[0]
    return [word for word in words if word]


def overlaps(items: Sequence[str], documents: Sequence[str]) -> Mapping[int, Overlap]:
    """Matches of the items of one benchmark, by number."""
    split = [words(item) for item in items]
    sharing = Counter(
        window
        for item in split
        for window in {tuple(item[k : k + WINDOW]) for k in range(len(item) - WINDOW + 1)}
    )
    result = {}
    for number, item in enumerate(split):
        seen: set[int] = set()
        longest = 0
        own = [sharing[tuple(item[k : k + WINDOW])] <= 2 for k in range(len(item) - WINDOW + 1)]
        for document in map(words, documents):
            for first in range(len(item)):
                for place in range(len(document)):
                    if first and place and item[first - 1] == document[place - 1]:
                        continue
                    length = 0
                    while (
                        first + length < len(item)
                        and place + length < len(document)
                        and item[first + length] == document[place + length]
                    ):
                        length += 1
                    windows = range(first, first + length - WINDOW + 1)
                    if any(own[k] for k in windows):
                        seen.update(windows)
                        longest = max(longest, length)
        if longest:
            result[number] = Overlap(frozenset(seen), longest)
    return result
