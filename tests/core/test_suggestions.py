"""The nearest valid spelling of a name."""

from __future__ import annotations

from pytest_llmeval.core.errors import nearest
from pytest_llmeval.core.errors import suggestion


def test_nearest():
    assert nearest("Lettr", ["letter", "cloze"]) == "letter"
    assert nearest("zzz", ["letter", "cloze"]) is None


def test_suggestion():
    assert suggestion("lettr", ["letter", "cloze"]) == "; did you mean 'letter'?"
    assert suggestion("zzz", ["letter", "cloze"]) == "; known: cloze, letter"
    assert suggestion("zzz", map(str, range(99))) == ""
