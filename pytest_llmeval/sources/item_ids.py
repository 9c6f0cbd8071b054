"""Item ids that are safe in test ids and file names."""

from __future__ import annotations

import hashlib
import re

MAX_ID = 100
_HASH = 8


def safe_id(text: str, limit: int = MAX_ID) -> str:
    """Return ``text`` in at most ``limit`` characters of ``[A-Za-z0-9_.-]``.

    White space, slashes, colons and bars become ``_``. If more is lost (other alphabets,
    truncation), a hash of the whole text is appended, so that different texts stay different.
    """
    plain = re.sub(r"[\s/:\\|]+", "_", text.strip())
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", plain)
    if safe == plain and 0 < len(safe) <= limit:
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{safe[: limit - _HASH - 1]}-{digest}"


def row_id(subject: str, row: int) -> str:
    """Return the default item id: the subject and the 0-based row within the complete subject."""
    # A long or non-ASCII subject is hashed without the row, so that the ids of a subject have a
    # common beginning and sort in order.
    return f"{safe_id(subject, MAX_ID - 12)}-{row:04d}"
