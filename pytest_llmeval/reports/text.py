"""Texts that others wrote, made fit to be shown: nothing in them acts, and none is endless."""

from __future__ import annotations

import re

# C0 without tab and line feed, DEL and C1; marks that reorder text (UAX #9); line and paragraph
# separators; lone surrogates; what XML 1.0 cannot hold.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""The text with every character that acts instead of showing as ``\x1b`` or ``\u202e``.

    Tabs and line feeds stay.
    """
    return _ACTING.sub(lambda found: _escape(ord(found[0])), text)


def one_line(text: str) -> str:
    """The visible text on one line."""
    return " ".join(visible(text).split())


def cut(text: str, limit: int, rest: str) -> str:
    """The text, or its first ``limit`` characters, how many there are, and where the ``rest`` is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} […] ({len(text):,} characters; {rest})"


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
