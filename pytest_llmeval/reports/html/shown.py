"""Text of models and data, made safe to look at: what is invisible is shown, nothing acts."""

from __future__ import annotations

import re

# Controls but tab and line feed; characters without width or that turn the direction of the text
# around them; lone surrogates; noncharacters. Not the joiners and variation selectors (U+200C,
# U+200D, U+FE0F), without which Persian, Hindi and emoji cannot be read. The page's script has the
# same pattern.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with every hidden character as a sign for it: ``␛`` or ``⟨U+202E⟩``."""
    return HIDDEN.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def cut(text: str, limit: int) -> str:
    """The beginning of a text that is longer than ``limit`` characters, with three dots."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
