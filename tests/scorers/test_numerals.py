"""Numerals are read as a whole or not at all, in whatever convention they are written."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.scorers import extract_number
from pytest_llmeval.scorers.numerals import numerals
from support.linear import assert_linear


def values(text: str, *, comma: bool = False) -> list[str | None]:
    return [
        None if numeral.value is None else f"{numeral.value:f}"
        for numeral in numerals(text, comma=comma)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # one separator
        ("1,234", "1234"),
        ("1.234", "1.234"),
        ("3,75 Euro", "3.75"),
        ("0,5", "0.5"),
        ("0,125", "0.125"),
        ("3,1415", "3.1415"),
        ("12.50", "12.50"),
        (".5", "0.5"),
        # groups
        ("1 234 euros", "1234"),
        ("12\u00a0345\u202f678", "12345678"),
        ("1 234,50 kr", "1234.50"),
        ("1 234.50", "1234.50"),
        ("1'234.50", "1234.50"),
        ("CHF 1’234’567.05", "1234567.05"),
        ("1.234,56", "1234.56"),
        ("1.234,567", "1234.567"),
        ("1,234.56", "1234.56"),
        ("1.234.567", "1234567"),
        ("1,234,567.8", "1234567.8"),
        ("12,34,567", "1234567"),
        ("₹1,23,456.50", "123456.50"),
        ("1_000_000", "1000000"),
        ("3.141 592 653", "3.141592653"),
        # LaTeX, HTML
        (r"5\ 000", "5000"),
        (r"5\,000", "5000"),
        (r"5\;000", "5000"),
        (r"1,\!234", "1234"),
        (r"5{,}000", "5000"),
        (r"3{,}75", "3.75"),
        (r"12{\,}000", "12000"),
        ("5~000", "5000"),
        ("5&nbsp;000", "5000"),
        # other digits
        ("１２３４", "1234"),
        ("１，２３４．５", "1234.5"),
        ("١٬٢٣٤٫٥", "1234.5"),
        ("٣،٥", "3.5"),
        ("۱۲۳۴", "1234"),
        ("१,२३,४५६", "123456"),
        ("১২,৩৪,৫৬৭.৫", "1234567.5"),
        ("７/２", "3.5"),
        # signs, currencies, units
        ("$1,234", "1234"),
        ("€ 3,50", "3.50"),
        ("3,50 €", "3.50"),
        ("-$5", "-5"),
        ("−5", "-5"),
        ("–5", "-5"),
        ("(—5)", "-5"),
        ("‑5", "-5"),
        ("－５", "-5"),
        ("= - 5", "-5"),
        ("-0", "0"),
        ("12 %", "12"),
        ("5km", "5"),
        ("Rs5,000", "5000"),
        (r"\times5", "5"),
        ("5th", "5"),
        # fractions and powers
        ("1/2", "0.5"),
        ("1,000/4", "250"),
        ("3/1,000", "0.003"),
        ("3 1/2", "3.5"),
        ("5 125/1000", "5.125"),
        ("17 000/5", "3400"),
        ("3½", "3.5"),
        (r"\frac{3}{4}", "0.75"),
        (r"-\frac12", "-0.5"),
        (r"\dfrac{1,000}{8}", "125"),
        (r"\frac{-1}{2}", "-0.5"),
        (r"3\frac{1}{2}", "3.5"),
        ("1.5e3", "1500"),
        ("1,5e3", "1500"),
        ("1.5 × 10^3", "1500"),
        (r"2,5 \cdot 10^{-2}", "0.025"),
        ("1.5·10⁻³", "0.0015"),
        ("1.5 * 10**3", "1500"),
        ("1.1 × 10 ^-5", "0.000011"),
        ("10³", "1000"),
        # words behind the number
        ("1.5 million", "1500000"),
        (r"5 \text{ million}", "5000000"),
        ("2 Mio. Euro", "2000000"),
        ("3,5 Milliarden", "3500000000"),
        ("5 mil", "5000"),
        ("2,5 млн", "2500000"),
        ("12 тысяч", "12000"),
        ("3 lakh", "300000"),
        ("२ करोड़", "20000000"),
        ("2 crore 50 lakh", "25000000"),
        ("3万", "30000"),
        ("2万5000円", "25000"),
        ("2万5,000円", "25000"),
        ("1億2,000万円", "120000000"),
        ("12345678901234567890123456789 million", "12345678901234567890123456789000000"),
        ("1億2000万3000円", "120003000"),
        ("3만 5000원", "35000"),
        ("3千万", "30000000"),
        ("5千克", "5"),
        ("5 millions", "5000000"),
        ("5 miles", "5"),
    ],
)
def test_one_numeral(text: str, expected: str) -> None:
    assert [Decimal(value or "NaN") for value in values(text)] == [Decimal(expected)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.234", "1234"),
        ("12.345", "12345"),
        ("0.125", "0.125"),
        ("12.5", "12.5"),
        ("1,234", "1234"),
        ("1234,567", "1234.567"),
        ("1.234,5", "1234.5"),
        ("(3,4)", "3.4"),
    ],
)
def test_a_language_with_a_decimal_comma(text: str, expected: str) -> None:
    assert values(text, comma=True) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "12:30",
        "09:05:59",
        "12h30",
        "3:1",
        "2024-05-17",
        "17.05.2024",
        "05/17/2024",
        "1/2/3",
        "555-123-4567",
        "(555) 123-4567",
        "1.2.3",
        "192.168.1.1",
        "1,2,3",
        "0,1,2,3",
        "2019,2020",
        "1,234,56",
        "1.234.56",
        "1,23.45",
        "(3,4)",
        "[0,1]",
        r"\left(3,4\right)",
        r"\{1,2\}",
        "3/0",
        r"\frac{x}{4}",
        r"\frac{2x}{25}",
        "10^{-7.5}",
        "1" * 401,
        "1," * 2000 + "1",
    ],
    ids=lambda text: text[:20],
)
def test_malformed_numbers_are_not_read_in_part(text: str) -> None:
    assert values(text) == [None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1, 2, 3", ["1", "2", "3"]),
        ("10-12", ["10", "12"]),
        ("5~10", ["5", "10"]),
        ("in 2024 1 234 people", ["2024", "1234"]),
        ("in 2024 100 people", ["2024", "100"]),
        ("0 500", ["0", "500"]),
        ("$2.50 200 times", ["2.50", "200"]),
        ("5'10\"", ["5", "10"]),
        ("3 million 500", ["3000000", "500"]),
        ("2 million 3 million", [None]),
        ("A1 and m2", []),
        ("COVID-19, x^2, x_{12}, 12", ["12"]),
        ("5 м2", ["5"]),
    ],
)
def test_several_numbers_and_names(text: str, expected: list[str]) -> None:
    assert values(text) == expected


def _grouped(whole: str, mark: str, size: int = 3) -> str:
    head, last = whole[:-3], whole[-3:]
    groups = [last]
    while head:
        groups.insert(0, head[-size:])
        head = head[:-size]
    return mark.join(groups)


def _digits(text: str, zero: str) -> str:
    return re.sub(r"\d", lambda digit: chr(ord(zero) + int(digit[0])), text)


# Separator of groups, decimal mark, digits before the first mark, zero.
CONVENTIONS = {
    "none": ("", ".", 3, "0"),
    "none, comma": ("", ",", 3, "0"),
    "English": (",", ".", 3, "0"),
    "German": (".", ",", 3, "0"),
    "French": ("\u202f", ",", 3, "0"),
    "Russian": ("\u00a0", ",", 3, "0"),
    "Swedish": (" ", ",", 3, "0"),
    "ISO": (" ", ".", 3, "0"),
    "thin": ("\u2009", ".", 3, "0"),
    "Swiss": ("'", ".", 3, "0"),
    "Swiss, typeset": ("’", ".", 3, "0"),
    "Austrian": ("'", ",", 3, "0"),
    "Indian": (",", ".", 2, "0"),
    "Hindi": (",", ".", 2, "०"),
    "Bengali": (",", ".", 2, "০"),
    "Arabic": ("٬", "٫", 3, "٠"),
    "Persian": ("٬", "٫", 3, "۰"),
    "full-width": ("，", "．", 3, "０"),
    "code": ("_", ".", 3, "0"),
    r"LaTeX \,": (r"\,", ".", 3, "0"),
    r"LaTeX \;": (r"\;", ".", 3, "0"),
    r"LaTeX \ ": ("\\ ", ",", 3, "0"),
    "LaTeX {,}": ("{,}", ".", 3, "0"),
    r"LaTeX ,\!": (r",\!", ".", 3, "0"),
    "HTML": ("&nbsp;", ",", 3, "0"),
}
PLACES = [
    "#### {}",
    "#### {} €",
    "The answer is {}.",
    "The answer is {} meters, 3 more.",
    "The final answer is **{}**",
    "Die Antwort ist {} Euro.",
    "La réponse est {} euros.",
    "Ответ: {} рублей",
    "答案是{}。",
    r"So it is $\boxed{{{}}}$.",
    r"\boxed{{{} \text{{ cm}}}}",
    "In total {}",
    "In 2024 she had 12 and, later, {} of them.",
    "= {} kr",
    "Total: ${}",
    "{} %",
]


@given(
    st.sampled_from(sorted(CONVENTIONS)),
    st.sampled_from(PLACES),
    st.integers(0, 10**12) | st.integers(0, 10**5),
    st.sampled_from([0, 1, 2, 4]),
    st.sampled_from(["", "-", "−"]),
    st.data(),
)
def test_the_value_read_is_the_value_written(
    convention: str, place: str, whole: int, size: int, sign: str, data: st.DataObject
) -> None:
    mark, point, group, zero = CONVENTIONS[convention]
    decimals = data.draw(st.text("0123456789", min_size=size, max_size=size))
    written = _grouped(str(whole), mark, group) + (point + decimals if size else "")
    value = Decimal(f"{sign and '-'}{whole}.{decimals}")
    read = extract_number(
        place.format(sign + _digits(written, zero)),
        # Without a language "1.234" has a decimal point, and "2019,2020" may be a list.
        language="de" if convention in ("German", "none, comma") else None,
    )
    assert read == value


@given(
    st.sampled_from(sorted(CONVENTIONS)),
    st.sampled_from([place for place in PLACES if "2024" not in place]),
    st.integers(1, 10**9),
)
def test_no_digit_is_left_out_where_two_readings_are_possible(
    convention: str, place: str, thousandths: int
) -> None:
    mark, point, group, zero = CONVENTIONS[convention]
    whole, decimals = divmod(thousandths, 1000)
    written = _grouped(str(whole), mark, group) + f"{point}{decimals:03}"
    read = extract_number(place.format(_digits(written, zero)))
    if read is not None:
        assert str(int(read.scaleb(3))).strip("0") == str(thousandths).strip("0")


@given(st.text("0123456789,. '-/:~", max_size=30), st.booleans())
def test_numerals_follow_each_other(text: str, comma: bool) -> None:
    position = 0
    for numeral in numerals(text, comma=comma):
        assert position <= numeral.start < numeral.end <= len(text)
        position = numeral.end
        assert not text[position : position + 1].isdigit()


def test_a_numeral_is_read_to_its_end() -> None:
    assert [numeral.value for numeral in numerals("12,345", 0, 2)] == [Decimal(12345)]


@pytest.mark.parametrize(
    "piece",
    ["1 000", "1,", "1:", "1-", "1/", "-", "\\frac{", "\\frac{1}{", "5 million ", "3万", "½", "1~"],
)
def test_linear_time(piece: str) -> None:
    assert_linear(lambda text: list(numerals(text)), piece, 6_000)
