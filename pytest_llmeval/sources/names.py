"""Item ids that are safe in test ids and file names, and the nearest valid spelling of a word."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable

MAX_ID = 100
_HASH = 8


def safe_id(text: str, limit: int = MAX_ID) -> str:
    """``text`` in ``[A-Za-z0-9_.-]`` and at most ``limit`` characters: a pure function of it.

    Blanks, slashes, colons and bars become ``_``. Where more than that is lost
    (another alphabet, a cut), a hash of the whole text keeps different texts different.
    """
    plain = re.sub(r"[\s/:\\|]+", "_", text.strip())
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", plain)
    if safe == plain and 0 < len(safe) <= limit:
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{safe[: limit - _HASH - 1]}-{digest}"


def row_id(subject: str, row: int) -> str:
    """The default item id: subject and 0-based row within the subject, before any selection."""
    # The hash of a long or foreign subject is made before the row is added, so that the ids of
    # one subject stay recognisable and in order.
    return f"{safe_id(subject, MAX_ID - 12)}-{row:04d}"


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known spelling nearest to ``word``, or nothing."""
    names = list(known)
    lowered = {name.lower(): name for name in names}
    matches = difflib.get_close_matches(word.lower(), lowered, n=1)
    return f"; did you mean {lowered[matches[0]]!r}?" if matches else ""
