"""Statements, denials and hedges in the languages of INCLUDE and Global-MMLU."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmeval.scorers import extract_choice
from support.choice_replies import METALS
from support.statements import STATEMENTS

OPTIONS = ("1492", "1498", "1502", "1519")
CITIES = ("Paris", "Rome", "Berlin", "Madrid")
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
# Other wordings, one a line; all settle on C, which is Berlin.
MORE = Path(__file__).with_name("statements.txt").read_text(encoding="utf-8").splitlines()


def in_place_of_c(text: str, other: str) -> str:
    """A statement of C with something else for its letter (and its option)."""
    if "{}" in text:
        return text.replace("(C) {}", other).replace("（C）{}", other).replace("(Γ) {}", other)
    return next(
        text.replace(form, other, 1) for form in ("C", "Γ", "ג", "ค", "3번") if form in text
    )


@pytest.mark.parametrize("reply", STATED)
def test_a_statement_is_read(reply: str) -> None:
    assert extract_choice(reply, OPTIONS) == "C"
    assert extract_choice(f"1492 < 1498 < 1502.\n\n{reply}", OPTIONS) == "C"


@pytest.mark.parametrize("reply", MORE, ids=range(len(MORE)))
def test_other_wordings(reply: str) -> None:
    assert extract_choice(reply, CITIES) == "C"


@pytest.mark.parametrize("reply", DENIED)
def test_a_denial_is_no_answer(reply: str) -> None:
    assert extract_choice(reply, OPTIONS) is None


@pytest.mark.parametrize("language", [code for code in STATEMENTS if code != "sw"])
def test_two_letters_are_no_answer(language: str) -> None:
    for text in STATEMENTS[language][0]:
        for pair in ("A / B", "(A) / (B)"):
            assert extract_choice(in_place_of_c(text, pair), OPTIONS) is None


OR = {
    "ar": "أو", "az": "və ya", "bn": "বা", "cs": "nebo", "de": "oder", "el": "ή", "en": "or",
    "es": "o", "fa": "یا", "fi": "tai", "fr": "ou", "hi": "या", "hr": "ili", "hu": "vagy",
    "id": "atau", "it": "o", "ja": "または", "ka": "ან", "ko": "또는", "lt": "arba", "ml": "അല്ലെങ്കിൽ",
    "nl": "of", "pl": "lub", "pt": "ou", "ro": "sau", "ru": "или", "sv": "eller", "ta": "அல்லது",
    "te": "లేదా", "th": "หรือ", "tr": "veya", "uk": "або", "ur": "یا", "uz": "yoki", "vi": "hoặc",
    "yo": "tàbí", "zh": "或",
}  # fmt: skip


@pytest.mark.parametrize("language", OR)
def test_an_alternative_is_no_answer(language: str) -> None:
    for text in STATEMENTS[language][0]:
        assert extract_choice(in_place_of_c(text, f"A {OR[language]} B"), OPTIONS) is None


@pytest.mark.parametrize(
    "reply",
    [
        "La respuesta correcta es Berlin.",
        "La réponse est la ville de Berlin.",
        "Η σωστή απάντηση είναι το Berlin.",
        "Правильный ответ Berlin.",
        "Doğru cevap Berlin'dir.",
        "सही उत्तर Berlin है।",
        "정답은 Berlin입니다.",
        "正解はBerlinです。",
        "答案是Berlin。",
    ],
)
def test_the_text_of_an_option_may_be_announced(reply: str) -> None:
    assert extract_choice(reply, CITIES) == "C"


@pytest.mark.parametrize(
    "reply", ["Ответ не Berlin.", "Doğru cevap Berlin değildir.", "La respuesta no es Berlin."]
)
def test_a_denied_text_is_no_answer(reply: str) -> None:
    assert extract_choice(reply, CITIES) is None


LANGUAGES = {
    "zh": [
        "答案：B",
        "答案是B。",
        "正确答案是（B）",
        "故选B",
        "选B",
        "不选A，选B。",
        "答案是乙。",
        "B项正确",
    ],
    "ja": ["正解はBです。", "答え：イ", "正解はイです", "答えは（Ｂ）です"],
    "ko": ["정답: B", "정답은 B입니다.", "답: ②"],
    "de": ["Antwort: B", "Die richtige Antwort ist B.", "Die Antwort lautet (B)."],
    "fr": ["Réponse : B", "La bonne réponse est la lettre B."],
    "es": ["Respuesta: B", "La respuesta correcta es la opción B."],
    "pt": ["A resposta correta é a alternativa B."],
    "it": ["La risposta è B."],
    "ru": ["Ответ: B", "Ответ: Б", "Правильный ответ — Б."],
    "pl": ["Odpowiedź: B", "Odpowiedź to B."],
    "fi": ["Vastaus on B."],
    "ar": ["الجواب: ب", "الإجابة الصحيحة هي (ب)", "الجواب هو ب."],
    "bn": ["উত্তর: খ", "উত্তর: ব", "উত্তর হল (খ)।"],
    "hi": ["उत्तर: ख", "सही उत्तर (B) है"],
    "th": ["คำตอบ: ข", "คำตอบคือ ข"],
    "vi": ["Đáp án đúng là B."],
    "id": ["Jawaban: B"],
    "sw": ["Jibu ni B"],
    "tr": ["Cevap: B"],
    "el": ["Απάντηση: Β"],
    "he": ["תשובה: ב"],
    "none": ["Ｂ", "Ⓑ", "ب", "খ"],
}


@pytest.mark.parametrize(
    "reply", [reply for replies in LANGUAGES.values() for reply in replies], ids=ascii
)
def test_answers_in_many_languages(reply: str) -> None:
    assert extract_choice(reply, METALS) == "B"
