"""The format of ``Score.detail`` of the scorer ``matched``, and a summary of such details."""

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
"""The search levels, in the order in which they are tried."""

_FORM = re.compile(rf"({'|'.join(LEVELS)}) (?:(text)|(similarity) (-?\d\.\d+) margin (\d\.\d+))")


@dataclass(frozen=True, slots=True)
class MatchedReading:
    """How an answer was matched: the level, and whether by ``text`` or by ``similarity``.

    ``similarity`` is the cosine in [-1, 1], ``margin`` its difference to the next best option's.
    """

    level: str
    by: str
    similarity: float | None = None
    margin: float | None = None

    @property
    def text(self) -> str:
        """The stored form: ``stated text`` or ``last similarity 0.8123 margin 0.0412``."""
        if self.similarity is None or self.margin is None:
            return f"{self.level} {self.by}"
        return f"{self.level} {self.by} {self.similarity:.4f} margin {self.margin:.4f}"

    @classmethod
    def from_text(cls, text: str) -> MatchedReading | None:
        """Parse the stored form; return None for the detail of another scorer."""
        match = _FORM.fullmatch(text)
        if match is None:
            return None
        if match[2]:
            return cls(match[1], match[2])
        return cls(match[1], match[3], float(match[4]), float(match[5]))


def summarise(details: Iterable[str]) -> dict[str, Any]:
    """Count the answers of each level, the matches by text, and summarise the margins of the rest.

    ``details``: those of ``matched``; details of other scorers and of unparsed answers (empty)
    count as ``unread``. Margins: smallest, median, and the number below 0.05.
    """
    texts = list(details)
    readings = [r for text in texts if (r := MatchedReading.from_text(text)) is not None]
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
