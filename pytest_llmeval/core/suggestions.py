"""The nearest valid spelling of a name: half of what makes an error message useful."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_FEW = 18


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name most like this one, capitals aside; None when none is like it."""
    folded = {candidate.casefold(): candidate for candidate in sorted(set(known), reverse=True)}
    matches = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for a near name, else ``; known: …`` for a few, else nothing."""
    candidates = sorted(set(known))
    near = nearest(name, candidates)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(candidates)}" if 0 < len(candidates) <= _FEW else ""
