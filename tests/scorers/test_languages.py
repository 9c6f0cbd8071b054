"""The table of languages, and the tokens that it makes of a reply."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from pytest_llmeval.scorers import answer_words
from pytest_llmeval.scorers.choice.tokens import lex
from support.statements import STATEMENTS

TABLE = tomllib.loads(
    (files(answer_words.__package__) / "languages.toml").read_text(encoding="utf-8")
)
CLASSES = TABLE.pop("classes")
ROWS = {codes: row for codes, row in TABLE.items() if codes != "any"}
OTHER_COLUMNS = {"letters", "minus", "question", "traits"}


@pytest.mark.parametrize("codes", ROWS)
def test_a_row_is_well_formed(codes: str) -> None:
    row = ROWS[codes]
    assert row.keys() <= CLASSES.keys() | OTHER_COLUMNS
    assert set(row.get("traits", "comma").split(", ")) <= {"bare", "comma", "ending", "unspaced"}
    for words in row.values():
        listed = words.split(", ")
        assert all(listed)
        assert len(set(listed)) == len(listed)


def test_every_language_of_the_statements_has_a_row() -> None:
    listed = {code for codes in ROWS for code in codes.split()}
    assert set(STATEMENTS) <= listed


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("The answer isn't B.", set()),
        ("Die Antwort ist B.", {"de"}),
        ("LA RÉPONSE EST B", {"fr"}),
        ("La reponse est B", {"fr"}),  # an accent may be left out
        ("Cevabımız B'dir.", {"tr"}),
        ("答案是B", {"ja", "zh"}),
        ("đáp án: B", {"vi"}),
        ("To correct the solution, option by option", set()),
    ],
)
def test_languages_of_a_text(text: str, languages: set[str]) -> None:
    assert answer_words.languages_of(text.split(), text) == languages


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("The answer isn't B.", "mNXL."),
        ("C'est la réponse B ?", "VmNL?"),
        ("正确答案是B吗？", "CNVL??"),
        ("Doğru cevap C'dir.", "CNL."),
        ("A resposta é A", "mNVL"),
        ("A metal\n\n- B: 12", "Lw¶L:#"),
        (r"\boxed{\text{B}}", "BL"),
        ("", ""),
    ],
)
def test_tokens(text: str, classes: str) -> None:
    tokens = lex(text, "ABCD")
    assert tokens.classes == classes
    assert len(tokens.starts) == len(tokens.ends) == len(classes)
    assert {number for number, symbol in enumerate(classes) if symbol == "L"} == set(tokens.labels)


def test_decimal_comma() -> None:
    assert {"de", "fr", "nb", "ru", "tr"} <= answer_words.DECIMAL_COMMA
    assert not {"en", "bn", "ja", "sw", "th", "zh"} & answer_words.DECIMAL_COMMA
