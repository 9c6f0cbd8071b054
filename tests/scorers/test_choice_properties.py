"""Reading a choice from any text: published formats, no exceptions, linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.scorers import extract_choice
from pytest_llmeval.scorers.choice.reader import explain_choice
from support.choice_replies import METALS
from support.linear import assert_linear
from support.prose import PROSE

FORMATS = [
    "The answer is ({}).",
    "The answer is {}.",
    "the correct answer is ({})",
    "Answer: {}",
    "Answer: ({})",
    "**Answer: {}**",
    "ANSWER: {}",
    r"$\boxed{{{}}}$",
    r"\boxed{{\text{{{}}}}}",
    "Final Answer: {}",
    "答案：{}",
    "答案是{}。",
    "Antwort: {}",
    "Réponse : {}",
    "Respuesta: {}",
    "Ответ: {}",
    "الجواب: {}",
    "উত্তর: {}",
]


@given(PROSE, st.sampled_from(FORMATS), st.sampled_from("ABCDEFGHIJ"), PROSE)
def test_a_published_format_is_read_back(before: str, form: str, label: str, after: str) -> None:
    options = [f"option number {number}" for number in range(10)]
    reply = f"{before}\n{form.format(label)}\n{after}"
    assert extract_choice(reply, options) == label
    assert extract_choice(f"{before}. {form.format(label)}", options) == label


@given(st.text(), st.lists(st.text(), max_size=30))
def test_any_text_never_raises(text: str, options: list[str]) -> None:
    label = extract_choice(text, options)
    assert label is None or label in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options)]


PIECES = st.sampled_from(
    [
        "<think>",
        "</think>",
        "answer is",
        "Answer:",
        " ",
        "\n",
        "A",
        "b",
        "(",
        ")",
        "or",
        "$",
        "*",
        "\\boxed{",
        "}",
        "iron",
        "答案是",
        "乙",
        "is correct",
        "not",
        "the",
        ".",
        "I choose",
        "ب",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_texts_like_answers_never_raise(text: str) -> None:
    assert extract_choice(text, METALS) in (None, "A", "B", "C", "D")


@pytest.mark.parametrize(
    "piece",
    [
        "answer ",
        "Answer: A or ",
        "answer is ",
        "<think>",
        "</think>",
        "(",
        "\n",
        " ",
        "A)\n",
        "a ",
        "\\boxed{",
        "\\boxed{x}",
        "答案",
        "选",
        "أ ",
        "B?",
        "I choose ",
        "answer is iron oxide or ",
    ],
    ids=ascii,
)
def test_linear_time(piece: str) -> None:
    assert_linear(lambda text: extract_choice(text, METALS), piece)


@given(
    st.lists(st.text(max_size=4) | st.text("ABC()., a", max_size=6), min_size=2, max_size=10),
    st.sampled_from("ABCDEFGHIJ"),
    st.sampled_from(["{}", "{}.", "{})", "({})", " {}", "{}\n", "\n\n({}) "]),
)
def test_only_a_label_is_read_as_by_the_finders(options, label, form):
    reply = form.format(label)
    assert extract_choice(reply, options) == explain_choice(reply, options).answer
