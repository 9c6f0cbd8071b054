"""``extract_number``, ``numbers_equal`` and ``number``."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Item
from pytest_llmeval.core import Response
from pytest_llmeval.scorers import extract_number
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers import numbers_equal
from pytest_llmeval.scorers.number import explain_number
from support.linear import assert_linear
from support.prose import PROSE
from support.reported_cases import NUMBERS


@pytest.mark.parametrize("case", NUMBERS)
def test_reported_cases(case: str) -> None:
    reply, gold, value, right = NUMBERS[case]
    assert extract_number(reply) == (None if value is None else Decimal(value))
    assert numbers_equal(reply, gold) is right


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        # which number
        ("#### 18", "18"),
        ("####12", "12"),
        ("#### −3", "-3"),
        ("#### 5 * 3 = 15", "15"),
        ("#### 18\n#### Explanation\nas 5 apples cost 3", "18"),
        ("#### 1. Compute\nThe total is 45", "45"),
        ("#### 18\nThe answer is 20", "18"),
        ("A: 26", "26"),
        ("6 * 4 = 24\nA: 26\nthat is 3 more", "26"),
        ("Answer: **18** dollars for 5 days", "18"),
        ("The answer is 5 + 3 = 8.", "8"),
        ("The final answer is:\n\n42", "42"),
        ("The answer (arabic numerals) is \n\n30%.", "30"),
        (r"\boxed{18} after 3 steps", "18"),
        (r"\boxed{-\frac{1}{2}}", "-0.5"),
        (r"#### -\frac{1}{2}", "-0.5"),
        ("It fell by -½", "-0.5"),
        (r"\boxed{x = 18} after 3 steps", "18"),
        ("<answer>18</answer>\n3 steps", "18"),
        ("The answer is 5. No, the answer is 6, not 7.", "6"),
        ("The answer is not 5. It is 6", "6"),
        ("She earns 5 dollars per hour for 8 hours.", "8"),
        ("The answer is unknown, but 12 fits.", "12"),
        ("The answer to 3 questions is 12", "12"),
        ("The answer to question 5 is 12.", "12"),
        # a reason, a remark, a solution: other numbers
        ("The answer is 12, because 3 × 3 = 9 is too few.", "12"),
        ("Answer: 36 since 4 × 12 = 48 is too many.", "36"),
        ("答案是18，因为3×3=9太少。", "18"),
        ("答案是18（因为3×3=9）。", "18"),
        ("La réponse est 18, car 3 × 3 = 9.", "18"),
        ("Ответ: 18, потому что 3 × 3 = 9.", "18"),
        ("Answer: 40 hours (8 hours × 6 days = 48 would be too many)", "40"),
        ("#### 12 (not 3 × 3 = 9)", "12"),
        ("The answer is 3 × (4 + 5) = 27.", "27"),
        ("**Answer:** 18 eggs × $2 (each) = $36", "36"),
        ("Answer:\n\n1. First, 5 + 5 = 10.\n2. Then 10 + 5 = 15.", "15"),
        ("Answer: Step 1: she has 5.\nStep 2: 5 + 7 = 12", "12"),
        ("Answer: 1. She has 4 cats.", "1"),
        # another's answer, one given up, one of other premises
        ("I first thought the answer was 6, but it's 5.", "5"),
        ("Many people would say the answer is 6, but there are 5.", "5"),
        ("The answer is 5. If he had more, the answer would be 6.", "5"),
        ("If we add them up, the answer would be 6.", "6"),
        ("If he had more, the answer would be 6.\n\n**5**", "5"),
        # in words, where it is stated
        ("2 of 2: the answer is two and a half.", "2.5"),
        ("2 of 2: the answer is three quarters.", "0.75"),
        ("2 of 2: the answer is twenty-fifth.", "20"),
        ("The answer is minus 5.", "-5"),
        ("The answer is negative five, not 5.", "-5"),
        ("The answer is 10 minus 5 = 5.", "5"),
        ("答案是负5", "-5"),
        ("Ответ: минус 5", "-5"),
        ("It was $90 twice. The answer is: \n\nOne hundred and eighty", "180"),
        ("2 and 2. The answer is two hundred ninety-four dollars.", "294"),
        ("The answer is one hundred thirty thousand people.", "130000"),
        # what is cut
        ("<think>5</think> 6", "6"),
        ("<think>5", None),
        ("Answer: 18\n\nQuestion: 5 apples?\nAnswer: 7", "18"),
        ("18\n\nQ: 5 apples?\nA: 7", "18"),
        ("18<|im_end|>7", "18"),
        # how it is written
        ("٣٤", "34"),
        ("৭২", "72"),
        ("উত্তর হল ৭২।", "72"),
        ("答案是１，０００。", "1000"),
        ("2万5000円", "25000"),
        ("1,00,000", "100000"),
        ("1.000.000", "1000000"),
        ("1'000", "1000"),
        ("Ответ: 1\u00a0250 рублей", "1250"),
        (r"The answer is $\$1{,}000$.", "1000"),
        ("USD 45", "45"),
        ("Rs45", "45"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("x=-5", "-5"),
        ("the answer is −7", "-7"),
        (".5", "0.5"),
        ("5 million", "5000000"),
        (r"1.5 \times 10^3", "1500"),
        ("1.5E+3", "1500"),
        ("The answer is 1/2.", "0.5"),
        (r"\boxed{\frac{3}{4}}", "0.75"),
        ("3½", "3.5"),
        (r"\boxed{3\frac{1}{2}}", "3.5"),
        ("The answer is 10^3.", "1000"),
        ("The answer is 2^{100}.", "1267650600228229401496703205376"),
        ("The answer is 2^{-3} of it", "0.125"),
        ("It is 1.5^2 or 2²", "4"),
        ("The angle is 90^\\circ", "90"),
        ("It takes 3 1/2 hours", "3.5"),
        ("Die Antwort ist 3,75 Euro.", "3.75"),
        ("La réponse est 1 234 euros.", "1234"),
        (r"\boxed{5\ 000}", "5000"),
        (r"\boxed{3{,}75 \text{ Euro}}", "3.75"),
        ("The answer is Rs. 45 each for 3.", "45"),
        ("Antwort: - 5", "-5"),
        ("#### - 5", "-5"),
        ("答案是1億2000万円。", "120000000"),
        (r"The enthalpy is -137.5 kJ mol^{-1}", "-137.5"),
        # digits that are no number
        ("She left at 7:15. The answer is 12:30.", None),
        ("5 hours. #### 12:30", None),
        (r"With a = 3: \boxed{(3,4)}", None),
        ("The answer is 2024-05-17, 3 days later.", None),
        ("The answer is 1,2,3", None),
        ("The answer is 12:30 - 12:00 = 30", "30"),
        ("It takes 45 minutes, from 7:15 to 8:00.", "45"),
        ("It costs 45 as of 17.05.2024 in version 1.2.3.", "45"),
        # numbers of lists
        ("It takes 45 minutes.\n1. Walk\n2. Run", "45"),
        ("1. Walk\n2. Run", None),
        ("1. Walk 5 miles\n2. Run", "5"),
        ("The total:\n18. That is it", "18"),
        # what is none
        ("10-5", "5"),
        ("pages 3–5", "5"),
        ("12 cm^2", "12"),
        ("m2 is 7", "7"),
        ("2^10 = 1024", "1024"),
        ("COVID-19", None),
        ("1" * 1000, None),
        ("3/0", None),
        ("", None),
        ("I cannot tell.", None),
    ],
)
def test_extract_number(reply: str, value: str | None) -> None:
    assert extract_number(reply) == (None if value is None else Decimal(value))


@pytest.mark.parametrize(
    ("reply", "language", "value"),
    [
        ("3,5", "de", "3.5"),
        ("Die Antwort ist 12,5.", "de", "12.5"),
        ("1.234,56", "de", "1234.56"),
        ("1.000", "de", "1000"),
        ("12.5", "de", "12.5"),
        ("1 250", "fr", "1250"),
        ("0,125", "fr", "0.125"),
        ("1.250.000,75", "es-ES", "1250000.75"),
        # Three digits behind the only separator are thousands: the data sets write them so.
        ("2,125", "de", "2125"),
        ("1.000", "en", "1"),
        ("1.000", None, "1"),
        ("3,5", "en", "3.5"),
        ("3,5", None, "3.5"),
        ("2,125", "zh", "2125"),
    ],
)
def test_the_language_decides_about_three_digits_behind_a_point(
    reply: str, language: str | None, value: str
) -> None:
    assert extract_number(reply, language=language) == Decimal(value)


@pytest.mark.parametrize(
    ("answer", "gold", "equal"),
    [
        ("18.0", "18", True),
        ("1,000", "1000", True),
        ("25", "5", False),
        ("0.2", "20", False),
        ("14.999999999999998", "15", True),
        ("14.9999", "15", False),
        ("1234567890124", "1234567890123", False),
        ("1/3", "0.3333333333333333", True),
        ("1/3", "0.33", False),
        ("none", "0", False),
        ("0", "none", False),
        ("3,75 €", "3,75", True),
        ("3.75", "3,75", True),
        ("75", "3,75", False),
        ("1 234", "1.234,00", True),
        ("12:30", "30", False),
    ],
)
def test_numbers_equal(answer: str, gold: str, equal: bool) -> None:
    assert numbers_equal(answer, gold) is equal


def roles(text: str, language: str | None = None) -> list[tuple[str | None, str, str]]:
    """Answer, role and the stretch of the reply, of each candidate."""
    extraction = explain_number(text, language)
    return [
        (candidate.answer, candidate.role.value, extraction.reply[candidate.start : candidate.end])
        for candidate in extraction.candidates
    ]


def test_candidates_are_ordered_by_rank() -> None:
    reply = (
        "6 × 3 = 18 eggs. So \\boxed{5\\ 000} it is.\nThe answer is 1 234 euros.\n#### 12\n"
        "If there were 2 more, the answer would be 14."
    )
    assert roles(f"<think>7</think>{reply}") == [
        ("12", "marked", "12"),
        ("1234", "announced", "1 234"),
        ("5000", "boxed", "5\\ 000"),
        ("2", "bare", "2"),
        ("18", "bare", "18"),
        ("3", "bare", "3"),
        ("6", "bare", "6"),
        ("14", "supposed", "14"),
    ]
    extraction = explain_number(reply)
    assert extraction.answer == "12"
    assert [candidate.rule for candidate in extraction.candidates][:4] == [
        'after "####"',
        'after "answer is"',
        r"in \boxed{…}",
        "number 1 from the end, without context",
    ]


def test_a_statement_of_no_single_number_decides() -> None:
    assert roles("5 hours. The answer is 12:30.") == [
        (None, "announced", "12:30"),
        ("5", "bare", "5"),
    ]


def test_the_language_reaches_the_candidates() -> None:
    assert roles("Antwort: 1.234", "de") == [("1234", "announced", "1.234")]
    assert roles("Antwort: 1.234") == [("1.234", "announced", "1.234")]


@pytest.mark.parametrize("text", ["", "<think>5", "none"])
def test_nothing_to_list(text: str) -> None:
    assert explain_number(text).candidates == ()


def test_few_candidates_are_listed() -> None:
    assert len(explain_number("The answer is 5. #### 5\n12 " * 1000).candidates) <= 45


FORMATS = [
    "#### {}",
    "The answer is {}.",
    "The answer is ${}.",
    "Answer: {}",
    "**Answer: {}**",
    "A: {}",
    r"$\boxed{{{}}}$",
    r"The final answer is \boxed{{{}}}.",
    "答案是{}。",
    "Antwort: {}",
    "Réponse : {}",
    "Ответ: {}",
    "الجواب: {}",
    "উত্তর: {}",
]


@given(
    PROSE,
    st.sampled_from(FORMATS),
    st.decimals(-(10**9), 10**9, allow_nan=False, places=2) | st.integers(-(10**12), 10**12),
    st.sampled_from(["{}", "{:,}"]),
    PROSE,
)
def test_a_published_format_is_read_back(
    before: str, form: str, value: Decimal | int, style: str, after: str
) -> None:
    reply = f"{before}\n{form.format(style.format(value))}\n{after}"
    assert extract_number(reply) == value


@given(st.text())
def test_any_text_never_raises(text: str) -> None:
    for language in (None, "de"):
        value = extract_number(text, language=language)
        assert value is None or value.is_finite()


PIECES = st.sampled_from(
    [
        "1",
        "0",
        "12",
        ",",
        ".",
        "-",
        "−",
        "$",
        "####",
        "\n",
        " ",
        "e",
        "^",
        "/",
        "answer is",
        "A:",
        "\\boxed{",
        "}",
        "\\frac{",
        "{",
        "½",
        "٣",
        "万",
        "million",
        "(",
        "%",
        "=",
        "<think>",
        "one",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_texts_like_numbers_never_raise(text: str) -> None:
    for language in (None, "de"):
        value = extract_number(text, language=language)
        assert value is None or value.is_finite()


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1,",
        "1.",
        "9 ",
        "-",
        "$",
        "#### ",
        "#### 1\n",
        "A: 3\n",
        "answer ",
        "answer is ",
        "=",
        "1/2 ",
        "\\frac{1}{2}",
        "1 000 ",
        "٣",
        "A1 ",
        "\n#",
        "x",
        "<think>",
    ],
    ids=ascii,
)
def test_linear_time(piece: str) -> None:
    assert_linear(extract_number, piece)


@pytest.mark.parametrize(
    ("text", "gold", "outcome", "answer"),
    [
        ("The total is $1,000.00", "1000", "correct", "1000.00"),
        ("1500", "1.5e3", "correct", "1500"),
        ("7", "8", "wrong", "7"),
        ("none", "8", "unparsed", None),
        ("7", "seven apples", "error", None),
        ("7", "12:30", "error", None),
        ("3,75 Euro", "3,75", "correct", "3.75"),
        ("75", "3,75", "wrong", "75"),
    ],
)
def test_number(text: str, gold: str, outcome: str, answer: str | None) -> None:
    score = get_scorer("number")(Item("i", "s", "q", gold), Response("i", text=text))
    assert (score.outcome, score.answer) == (outcome, answer)


def test_the_items_language_counts() -> None:
    item = Item("i", "s", "q", "3.5", fields={"language": "de"})
    assert get_scorer("number")(item, Response("i", text="Antwort: 3,5")).outcome == "correct"


def test_long_whole_numbers_are_not_rounded() -> None:
    gold = "-" + "1234567890" * 4
    assert extract_number(f"The answer is {gold}.") == Decimal(gold)
    assert not numbers_equal(gold[:-1] + "1", gold)
