"""The place of the answer's text in a reply: the four levels, and the decisions about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core.matched_detail import LEVELS
from pytest_llmeval.scorers.matched.spans import find_span
from support.linear import assert_linear

CITIES = ("Paris", "Lyon", "London", "New York")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Thinking first. The answer is Paris.", "Paris."),
        ("The answer is Lyon. No, wait: the answer is London.", "London."),  # the last
        ("The answer is Paris.\nAnswer: Lyon", "Paris."),  # the level before the place
        ("The correct answer to this question is Lyon", "Lyon"),
        ("The answer is:\n\nParis\nMore text.", "Paris"),  # the next line that is not blank
        ("The answer would be Lyon", "Lyon"),
        ("The answer is **Paris**", "**Paris**"),
        ("The answer is no", "no"),
        ("The answer is Lyon. So the answer is (B).", "Lyon. So the answer is (B)."),
        ("The answer is Lyon.\nThe answer is (B).", "Lyon."),  # no letter was shown
        ("The answer is Lyon.\nThe answer is $\\boxed{B}$.", "Lyon."),
        ("Die Antwort lautet: Paris.", "Paris."),
        ("La respuesta correcta es Lyon.", "Lyon."),
        ("La réponse est Paris", "Paris"),
        ("所以正确答案是里昂。", "里昂。"),
        ("答案是非洲", "非洲"),
        ("答えはパリです", "パリです"),
        ("정답은 파리입니다", "파리입니다"),
        ("الإجابة هي باريس", "باريس"),
        ("คำตอบคือ ปารีส", "ปารีส"),
        ("Teisingas atsakymas yra Lyon.", "Lyon."),
        ("Правилният отговор е Лион.", "Лион."),
        ("Përgjigjja është Lyon.", "Lyon."),
    ],
)
def test_stated(reply: str, text: str) -> None:
    span = find_span(reply, CITIES)
    assert span is not None
    assert (span.level, span.text) == ("stated", text)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Answer: London\nBecause it is big.", "London"),  # to the end of the line
        ("Answer: Paris\n\nAnswer: Lyon", "Lyon"),
        ("**Answer:** Lyon", "Lyon"),
        ("ANSWER : lyon", "lyon"),
        ("The answer is not Paris. Answer: Lyon", "Lyon"),  # a denial is no statement
        ("答案：里昂", "里昂"),
        ("Ответ: Париж.", "Париж."),
        ("उत्तर: पेरिस", "पेरिस"),
        ("Erantzuna: Lyon. Paris ez da.", "Lyon. Paris ez da."),
        ("Cavab: Lyon", "Lyon"),
        ("Պատասխան՝ Լիոն", "Լիոն"),
        ("პასუხი: ლიონი", "ლიონი"),
        ("Жауап: Лион", "Лион"),
        ("ഉത്തരം: ലിയോൺ", "ലിയോൺ"),
        ("Answer: *ptr", "*ptr"),
    ],
)
def test_colon(reply: str, text: str) -> None:
    span = find_span(reply, CITIES)
    assert span is not None
    assert (span.level, span.text) == ("colon", text)


@pytest.mark.parametrize(
    ("reply", "options", "text", "numbers"),
    [
        ("I think of Paris, then London, maybe.", CITIES, "London", (2,)),  # the rightmost
        ("Not Lyon: New\nYork it is", CITIES, "New York", (3,)),
        ("Use HTTP/2 here", ("HTTP", "HTTP/2"), "HTTP/2", (1,)),  # the longer of two
        ("Use HTTPS here", ("HTTP", "HTTPS"), "HTTPS", (1,)),
        ("It costs 3.14 in all.", ("14", "3.14"), "3.14", (1,)),
        ("Half of 5 is 2.5, not 7.", ("2", "5", "8"), "5", (1,)),
        ("5, as 2.5 and 5,000 show", ("2", "5", "8"), "5", (1,)),
        ("So (a) applies", ("(a)", "(b)"), "(a)", (0,)),  # ends in no letter
        ("我认为是里昂吧", ("巴黎", "里昂"), "里昂", (1,)),  # no blanks between words
        ("It is x or y", ("y", "x", "y"), "y", (0, 2)),  # equal options: all of them
        ("The answer can be found by looking. Lyon.", CITIES, "Lyon", (1,)),
    ],
)
def test_option(reply: str, options: tuple[str, ...], text: str, numbers: tuple[int, ...]) -> None:
    span = find_span(reply, options)
    assert span is not None
    assert (span.level, span.text, span.options) == ("option", text, numbers)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("It was built there. We all know it!", "We all know it!"),
        ("It costs 2.5 dollars", "It costs 2.5 dollars"),  # no cut inside a number
        ("First line\nlast line", "last line"),
        ("这里。那里。", "那里。"),
        ("यह है। वह है।", "वह है।"),
        ('He said "so." Then more.', "Then more."),
        ("Parisian Lyonnais", "Parisian Lyonnais"),  # parts of words are no options
        ("We do. ...", "We do."),
        ("Who knows? The answer is (B).", "Who knows?"),
    ],
)
def test_last_sentence(reply: str, text: str) -> None:
    span = find_span(reply, CITIES)
    assert span is not None
    assert (span.level, span.text) == ("last", text)


@pytest.mark.parametrize(
    "reply",
    ["", " \n", "...", "**", 'Finish with "the answer is $OPTION"', "B", "So the answer is (B)."],
)
def test_an_empty_reply(reply: str) -> None:
    assert find_span(reply, CITIES) is None


def test_a_stated_letter_that_is_also_an_option() -> None:
    span = find_span("So the answer is (B).", ("A", "B"))
    assert span is not None
    assert (span.level, span.text) == ("stated", "(B).")


def test_markers_inside_of_options_are_none() -> None:
    filed = "Only after an answer to the complaint is filed."
    span = find_span(f"The answer is {filed}", ("Never.", filed))
    assert span is not None
    assert (span.level, span.text) == ("stated", filed)


def test_an_option_of_several_lines_is_taken_whole() -> None:
    options = ("x =\n1", "x =\n2", "x =\n1")
    span = find_span("Answer:\nx =\n1\nDone.", options)
    assert span is not None
    assert (span.level, span.text, span.options) == ("colon", "x =\n1", (0, 2))


@given(
    st.lists(
        st.sampled_from(["answer", " is ", ": ", "Paris", "\n", ". ", "答案", "是", "$OPTION"])
    ),
    st.lists(st.text(max_size=6), min_size=2, max_size=5),
)
def test_an_extracted_option_is_part_of_the_reply(pieces: list[str], options: list[str]) -> None:
    reply = "".join(pieces)
    span = find_span(reply, options)
    if span is not None:
        assert span.level in LEVELS
        assert " ".join(span.text.split()) in " ".join(reply.split())
        assert all(" ".join(options[n].split()) == span.text for n in span.options)


@pytest.mark.parametrize(
    "piece", ["answer is ", "answer ", "the answer to it ", "Paris ", "答案是", "a. ", "\n", "答"]
)
def test_the_time_is_linear(piece: str) -> None:
    assert_linear(lambda text: find_span(text, CITIES), piece)
