"""Verdicts on the options, restated questions, and the candidates that ``explain_choice`` lists."""

from __future__ import annotations

import pytest

from pytest_llmeval.scorers import extract_choice
from pytest_llmeval.scorers.choice.reader import Role
from pytest_llmeval.scorers.choice.reader import explain_choice

CITIES = ("Paris", "Rome", "Berlin", "Madrid")

THE_THIRD = [
    "| A | no |\n| B | no |\n| C | **correct** |\n| D | no |",
    "| Option | Why | Verdict |\n|---|---|---|\n| A | small | incorrect |\n| B | not big | incorrect |"
    "\n| C | big | correct |\n| D | Spain | incorrect |",
    "| Choice | Correct? |\n|:--|:--|\n| **A) Paris** | No |\n| **B) Rome** | No |"
    "\n| **C) Berlin** | Yes |\n| **D) Madrid** | No |",
    "| A | Paris | ❌ |\n| B | Rome | ❌ |\n| C | Berlin | ✅ |\n| D | Madrid | ❌ |",
    "A: incorrect. B: incorrect. C: correct",
    "A: incorrect. B: incorrect. C: correct. D: incorrect.",
    "A) ❌ B) ❌ C) ✅ D) ❌",
    "❌ A\n❌ B\n✅ C\n❌ D",
    "Option A: ✗\nOption B: ✗\nOption C: ✓\nOption D: ✗",
    "(A) False (B) False (C) True",
    "(a) false\n(b) false\n(c) true\n(d) false",
    "A is false, B is false, C is true, and D is false.",
    "A) Paris - incorrect\nB) Rome - incorrect\nC) Berlin - correct\nD) Madrid - incorrect",
    "A) Paris (incorrect)\nB) Rome (incorrect)\nC) Berlin (correct)\nD) Madrid (incorrect)",
    "1. A - wrong\n2. B - wrong\n3. C - right\n4. D - wrong",
    "A. No\nB. No\nC. Yes\nD. No\n\nI looked at a map.",
    "A. Paris: This is wrong because it is in France.\nB. Rome: This is wrong.\nC. Berlin: This is"
    " correct.\nD. Madrid: This is wrong.",
    "**A) Paris**: Incorrect. It is in France.\n\n**B) Rome**: Incorrect.\n\n**C) Berlin**: Correct!"
    " It is in Germany.\n\n**D) Madrid**: Incorrect.",
    "**A) Paris**\n\nThis is incorrect.\n\n**B) Rome**\n\nThis is incorrect.\n\n**C) Berlin**\n\nThis"
    " is correct, because it is.\n\n**D) Madrid**\n\nThis is incorrect.",
    "* **A) Paris:** This option is incorrect because it is in France.\n* **B) Rome:** This option is"
    " incorrect.\n* **C) Berlin:** This is the correct option.",
    "Correct: C\nIncorrect: A, B, D",
    "- A: falsch\n- B: falsch\n- C: richtig\n- D: falsch",
    "A ist falsch. B ist falsch. C ist richtig. D ist falsch.",
    "A : faux\nB : faux\nC : vrai\nD : faux",
    "A. Esta opción es incorrecta.\nB. Esta opción es incorrecta.\nC. Esta opción es la correcta.",
    "A) Bu seçenek yanlıştır, çünkü.\nB) Yanlış.\nC) Bu seçenek doğrudur.\nD) Yanlış.",
    "A - неверно\nB - неверно\nC - верно\nD - неверно",
    "A: गलत\nB: गलत\nC: सही\nD: गलत",
    "A) خطأ\nB) خطأ\nC) صحيح\nD) خطأ",
    "A：错误\nB：错误\nC：正确\nD：错误",
    "A是错的，B是错的，C是对的，D是错的。",
    "A項は誤り。B項は誤り。C項は正しい。D項は誤り。",
    "A: 오답\nB: 오답\nC: 정답\nD: 오답",
]
NONE_OF_THEM = [
    "A: incorrect.",
    "A: incorrect. B: incorrect.",
    "A: correct. B: correct. C: incorrect",
    "(A) False (B) True (C) True",
    "A) eliminated\nB) eliminated\nC) fits",
    "A) It is on the right side.\nB) It is far.",
    "A) Paris\nB) Rome\nC) Berlin\nD) Madrid\nI am not sure which is correct.",
    "If A is wrong and B is wrong, C is correct?",
]


@pytest.mark.parametrize("reply", THE_THIRD, ids=range(len(THE_THIRD)))
def test_the_option_called_correct_is_the_answer(reply: str) -> None:
    assert extract_choice(reply, CITIES) == "C"


@pytest.mark.parametrize("reply", NONE_OF_THEM, ids=range(len(NONE_OF_THEM)))
def test_without_exactly_one_correct_option_there_is_no_answer(reply: str) -> None:
    assert extract_choice(reply, CITIES) is None


def test_a_statement_ranks_before_the_verdicts() -> None:
    assert extract_choice("A: wrong. B: wrong. C: correct.\n\nThe answer is D.", CITIES) == "D"


def test_true_and_false_may_be_the_options() -> None:
    options = ("True", "False")
    assert extract_choice("B) False", options) == "B"
    assert extract_choice("The answer is (B) False.", options) == "B"
    assert extract_choice("A. True\nB. False", options) is None  # they are listed


RESTATED = "What is the capital of Germany?\nA) Paris\nB) Rome\nC) Berlin\nD) Madrid\n\n"


@pytest.mark.parametrize(
    "reply",
    [
        f"Let me restate it.\n\nQuestion: {RESTATED}Answer: C",
        f"Sure!\n\n**Question:** {RESTATED}**Answer:** C",
        f"Question: {RESTATED}Answer: C",
        "Ich wiederhole.\n\nFrage: Was ist die Hauptstadt?\nAntwort: C",
        "先看题目。\n问题：德国的首都是哪里？\n答案：C",
        # What follows an answer is another question.
        f"Let me restate it.\n\nQuestion: {RESTATED}Answer: C\n\nQuestion: Next?\nAnswer: A",
        "C\n\nQuestion: Next?\nAnswer: A",
        "It is Berlin.\n\nQuestion: Next?\nAnswer: A",
    ],
)
def test_a_restated_question_is_no_next_one(reply: str) -> None:
    assert extract_choice(reply, CITIES) == "C"


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot answer.\n\nQuestion: Next?\nAnswer: A",
        "We have 3 x 4 = 12.\n\nQuestion: Next?\nAnswer: A",
        f"{'It is a long story about capitals. ' * 10}\n\nQuestion: Next?\nAnswer: A",
    ],
)
def test_a_question_behind_more_than_a_lead_in_is_cut(reply: str) -> None:
    assert extract_choice(reply, CITIES) is None


def test_a_number_names_an_option_only_as_a_number() -> None:
    assert extract_choice("Option 3 is correct.", CITIES) == "C"
    assert extract_choice("정답은 3번입니다.", CITIES) == "C"
    assert extract_choice("答案是第三项。", CITIES) == "C"
    assert extract_choice("The answer is 3.", CITIES) is None
    assert extract_choice("정답은 3번입니다.", ("5", "4", "2", "3")) == "C"
    assert extract_choice("Option 3 is correct.", ("5", "4", "2", "3")) is None  # C or D
    assert extract_choice("Option 7 is correct.", CITIES) is None


@pytest.mark.parametrize(
    ("reply", "answer", "role", "span"),
    [
        ("The answer is (C).", "C", Role.ANNOUNCED, "C"),
        (r"So \boxed{C}", "C", Role.BOXED, "C"),
        ("Therefore, C.", "C", Role.CONCLUSION, "C"),
        ("C is the correct answer.", "C", Role.ANNOUNCED, "C"),
        ("Option C is correct.", "C", Role.VERDICT, "C"),
        ("The answer is Berlin.", "C", Role.ANNOUNCED, "Berlin"),
        ("It is big.\n\nC", "C", Role.BARE, "C"),
        ("C) because of its size", "C", Role.LABELLED_LINE, "C) because of its size"),
        ("The capital is Berlin.", "C", Role.OPTION_TEXT, "Berlin"),
        ("Berlin", "C", Role.WHOLE_REPLY, "Berlin"),
        ("If it were Spain, the answer would be D.", "D", Role.SUPPOSED, "D"),
        ("The answer is A or B.", None, Role.ANNOUNCED, "A or B"),
    ],
)
def test_roles(reply: str, answer: str | None, role: Role, span: str) -> None:
    best = explain_choice(reply, CITIES).candidates[0]
    assert (best.answer, best.role) == (answer, role)
    assert reply[best.start : best.end].rstrip(".") == span


def test_candidates_are_listed_by_rank() -> None:
    reply = "Which is A? Option B is correct. The answer is C.\n\nThe answer is D.\n\nA"
    extraction = explain_choice(reply, CITIES)
    assert extraction.reply == reply
    assert [(candidate.answer, candidate.role) for candidate in extraction.candidates] == [
        ("D", Role.ANNOUNCED),
        ("C", Role.ANNOUNCED),
        ("A", Role.BARE),
        ("B", Role.VERDICT),
    ]
    assert extraction.candidates[0].rule == "announced by 'answer is'"
    assert extraction.answer == "D"


def test_nothing_to_explain() -> None:
    assert explain_choice("", CITIES).candidates == ()
    assert explain_choice("<think>The answer is A", CITIES).candidates == ()
    assert explain_choice("C", []).answer is None
