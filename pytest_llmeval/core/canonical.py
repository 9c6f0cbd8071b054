"""JSON that hashes are computed over."""

from __future__ import annotations

import json


def canonical_json(value: object) -> bytes:
    """JSON that is the same for equal values: what hashes are computed over."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return text.encode("ascii")
