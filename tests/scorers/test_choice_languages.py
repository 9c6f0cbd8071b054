"""Statements and denials in the languages of INCLUDE and Global-MMLU, read by ``extract_choice``."""

from __future__ import annotations

import pytest
from statements import STATEMENTS

from pytest_llmeval.scorers import extract_choice

OPTIONS = ("1492", "1498", "1502", "1519")
STATED = [
    pytest.param(text.format(OPTIONS[2]), id=f"{language}-{number}")
    for language, (stated, _) in STATEMENTS.items()
    for number, text in enumerate(stated)
]
DENIED = [
    pytest.param(text, id=f"{language}-{number}")
    for language, (_, denied) in STATEMENTS.items()
    for number, text in enumerate(denied)
]


@pytest.mark.parametrize("reply", STATED)
def test_a_statement_is_read(reply: str) -> None:
    assert extract_choice(reply, OPTIONS) == "C"


@pytest.mark.parametrize("reply", DENIED)
def test_a_denial_is_no_answer(reply: str) -> None:
    assert extract_choice(reply, OPTIONS) is None


@pytest.mark.parametrize("reply", STATED)
def test_a_statement_is_read_at_the_end_of_an_explanation(reply: str) -> None:
    text = f"1492 < 1498 < 1502.\n\n{reply}"
    assert extract_choice(text, OPTIONS) == "C"
