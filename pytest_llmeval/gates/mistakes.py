"""How a mistake in a thresholds file is told: one line with file, dotted key and remedy."""

from __future__ import annotations

import difflib
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


def suggestion(name: str, known: Iterable[str]) -> str:
    """``, did you mean 'x'?`` for a near name, else the known ones, if they are few."""
    candidates = sorted(set(known))
    near = nearest(name, candidates)
    if near is not None:
        return f", did you mean {near!r}?"
    if 0 < len(candidates) <= 12:
        return f" (known: {', '.join(candidates)})"
    return ""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name most like this one, capitals aside; None when none is like it."""
    folded = {candidate.casefold(): candidate for candidate in sorted(set(known), reverse=True)}
    matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def _quoted(key: str) -> str:
    # JSON's escapes are TOML's: no line break or control character survives.
    return json.dumps(key, ensure_ascii=not key.isprintable())
