"""How ``matched`` read an answer: the words of ``Score.detail``, and their summary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any
from typing import Literal

Level = Literal["stated", "colon", "option", "last"]

LEVELS: tuple[Level, ...] = ("stated", "colon", "option", "last")
"""Where a text was looked for, in this order."""

_FORM = re.compile(rf"({'|'.join(LEVELS)}) (?:(text)|(similarity) (-?\d\.\d+) margin (\d\.\d+))")


@dataclass(frozen=True, slots=True)
class Reading:
    """The level that found the text, and what made it an option: its ``text`` or ``similarity``.

    ``similarity`` is the cosine in [-1, 1], ``margin`` by how much it exceeds the next option's.
    """

    level: str
    by: str
    similarity: float | None = None
    margin: float | None = None

    @property
    def text(self) -> str:
        """Such as ``stated text`` or ``last similarity 0.8123 margin 0.0412``."""
        if self.similarity is None or self.margin is None:
            return f"{self.level} {self.by}"
        return f"{self.level} {self.by} {self.similarity:.4f} margin {self.margin:.4f}"

    @classmethod
    def from_text(cls, text: str) -> Reading | None:
        """What ``text`` was made of; None for what another scorer wrote."""
        found = _FORM.fullmatch(text)
        if found is None:
            return None
        if found[2]:
            return cls(found[1], found[2])
        return cls(found[1], found[3], float(found[4]), float(found[5]))


def summarise(details: Iterable[str]) -> dict[str, Any]:
    """How many answers each level found, how many were options, and the margins of the rest.

    ``details`` of ``matched``; others, and those of unparsed answers (empty), count as
    ``unread``. Margins: smallest, median, and how many are below 0.05.
    """
    texts = list(details)
    readings = [r for text in texts if (r := Reading.from_text(text)) is not None]
    levels = Counter(reading.level for reading in readings)
    margins = [reading.margin for reading in readings if reading.margin is not None]
    return {
        "answers": len(texts),
        "unread": len(texts) - len(readings),
        "levels": {level: levels[level] for level in LEVELS},
        "as_text": sum(reading.by == "text" for reading in readings),
        "by_similarity": len(margins),
        "margins": {
            "smallest": min(margins),
            "median": median(margins),
            "below_0.05": sum(margin < 0.05 for margin in margins),
        }
        if margins
        else None,
    }
