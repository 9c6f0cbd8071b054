"""Item ids that are safe in test ids and file names."""

from __future__ import annotations

import hashlib
import re

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
