"""What cannot be seen is shown; what people write is left as it is."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from pytest_llmeval.reports.formatting import HIDDEN
from pytest_llmeval.reports.html.svg import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a␀b"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f\x9b", "␡⟨U+009B⟩"),
        ("txt\u202eexe", "txt⟨U+202E⟩exe"),
        ("\ud800", "⟨U+D800⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\r\n", "␍\n"),
    ],
)
def test_hidden_characters_have_signs(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    ["tab\tand\nline", "می\u200cخواهم", "שלום عليكم", "👩\u200d🔬 ❤\ufe0f", "漢字 ½ é e\u0301"],
)
def test_readable_text_is_unchanged(text):
    assert visible(text) == text


def test_the_script_has_the_same_pattern():
    script = files("pytest_llmeval.reports.html").joinpath("page.js").read_text()
    (first, second) = re.search(r'new RegExp\(\s*"(.*?)" \+\s*"(.*?)", "gu"', script).groups()
    body = re.sub(
        r"\\u\{([0-9a-f]+)\}",
        lambda m: rf"\U{int(m[1], 16):08x}",
        f"{first}{second}".replace("\\\\", "\\"),
    )
    own = re.compile(body)
    for code in range(0x110000):
        assert bool(own.match(chr(code))) == bool(HIDDEN.match(chr(code))), hex(code)
