"""Data blocks of an HTML report."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any


def block(page: str, name: str) -> Any:
    """Content of the block with this id."""
    packed = re.search(f'id="{name}">([^<]*)<', page)
    assert packed is not None
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))
