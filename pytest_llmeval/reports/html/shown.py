"""Texts of models and data in HTML: what is invisible is shown by a sign, nothing acts."""

from __future__ import annotations

import re

from pytest_llmeval.reports.text import HIDDEN


def visible(text: str) -> str:
    """The text with every hidden character as a sign for it: ``␛`` or ``⟨U+202E⟩``."""
    return HIDDEN.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
