"""How a mistake in a thresholds file is told: one line with file, dotted key and remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pytest_llmeval.core import ConfigError


def mistake(file: str, keys: Iterable[str], text: str) -> ConfigError:
    """``FILE: dotted.key: text`` as an error to raise, on one line whatever the names hold."""
    place = dotted(keys)
    parts = (file, place, text) if place else (file, text)
    return ConfigError(" ".join(": ".join(parts).splitlines()))


def dotted(keys: Iterable[str]) -> str:
    """A dotted key as TOML writes it, with quotes where a name needs them."""
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key) for key in keys)


def _quoted(key: str) -> str:
    # JSON's escapes are TOML's: no line break or control character survives.
    return json.dumps(key, ensure_ascii=not key.isprintable())
