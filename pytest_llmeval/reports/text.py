"""Texts that others wrote, made fit to be shown: nothing in them acts, and none is endless."""

from __future__ import annotations

import re

# Controls but tab and line feed; characters without width or that turn the direction of the text
# around them (UAX #9); line and paragraph separators; lone surrogates; noncharacters, which XML 1.0
# cannot hold. Not the joiners and variation selectors (U+200C, U+200D, U+FE0F), without which
# Persian, Hindi and emoji cannot be read. The script of the HTML report has the same pattern.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""The text with every character that hides or acts as ``\x1b`` or ``\u202e``.

    Tabs and line feeds stay.
    """
    return HIDDEN.sub(lambda found: _escape(ord(found[0])), text)


def one_line(text: str) -> str:
    """The visible text on one line."""
    return " ".join(visible(text).split())


def cut(text: str, limit: int, rest: str) -> str:
    """The text, or its first ``limit`` characters, how many it has, and where the ``rest`` is."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} […] ({len(text):,} characters; {rest})"


def shorten(text: str, limit: int) -> str:
    """The text, or its beginning with three dots, of at most ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def sentence(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _escape(code: int) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
