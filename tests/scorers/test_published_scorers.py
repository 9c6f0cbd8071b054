"""Scorers named for a tool read what the tool reads, faults included."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Item
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.scorers import with_random_guesses
from pytest_llmeval.scorers.published import gsm8k_normal
from pytest_llmeval.scorers.published import official_answer
from pytest_llmeval.scorers.published import simple_evals_answer
from support.linear import assert_linear
from support.reported_cases import CHOICES
from support.reported_cases import NUMBERS
from support.reported_cases import TOOLS_CHOICES
from support.reported_cases import TOOLS_NUMBERS


def scored(scorer: str, text: str, gold: str | int = 0, options: int = 10) -> Score:
    texts = tuple(f"option {number}" for number in range(options)) if isinstance(gold, int) else ()
    return get_scorer(scorer)(Item("i", "s", "q", gold, texts), Response("i", text=text))


@pytest.mark.parametrize(("case", "official", "lm_eval", "simple"), TOOLS_CHOICES)
def test_reported_choices(
    case: str, official: str | None, lm_eval: str | None, simple: str | None
) -> None:
    reply, options, _ = CHOICES[case]
    assert scored("mmlu_pro_official", reply, 0, len(options)).answer == official
    assert scored("mmlu_pro_lmeval", reply, 0, len(options)).answer == lm_eval
    assert scored("simple_evals", reply, 0, len(options)).answer == simple


@pytest.mark.parametrize(("case", "strict", "flexible"), TOOLS_NUMBERS)
def test_reported_numbers(case: str, strict: str, flexible: str) -> None:
    reply, gold, _, _ = NUMBERS[case]
    assert scored("lmeval_strict", reply, gold).outcome == strict
    assert scored("lmeval_flexible", reply, gold).outcome == flexible


# lm-evaluation-harness


@pytest.mark.parametrize(
    ("scorer", "text", "answer"),
    [
        ("lmeval_strict", "#### 5\n#### 6", "5"),
        ("lmeval_strict", "####5", None),
        ("lmeval_strict", "#### -1,000.", "-1000"),
        ("lmeval_strict", "#### ٣", None),
        ("lmeval_flexible", "3 then 4", "4"),
        ("lmeval_flexible", "it is 4 ...", ".."),
        ("lmeval_flexible", "none", None),
        ("lmeval_cot_strict", "The answer is 18.", "18"),
        ("lmeval_cot_strict", "The answer is 18", "1"),
        ("lmeval_cot_strict", "The answer is 18. The answer is 20.", "18"),
        ("lmeval_cot_strict", "the answer is 18.", None),
    ],
)
def test_gsm8k_filters(scorer: str, text: str, answer: str | None) -> None:
    assert scored(scorer, text, "18").answer == answer


def test_gsm8k_gold_may_be_the_whole_solution() -> None:
    solution = "He pays 2*500=<<2*500=1000>>1,000\n#### 1,000"
    assert scored("lmeval_strict", "#### 1000", solution).outcome == "correct"
    assert scored("lmeval_flexible", "It is $1,000.", solution).outcome == "correct"


@given(
    st.lists(st.sampled_from(["#### ", "1", ".", ",", "$", "\n", "X"]), max_size=12).map("".join)
)
def test_gsm8k_normalisation_is_that_of_its_patterns(text: str) -> None:
    expected = text
    for pattern in (",", r"\$", "(?s).*#### ", r"\.$"):
        expected = re.sub(pattern, "", expected)
    assert gsm8k_normal(text) == expected.lower()


def test_mmlu_pro_lmeval() -> None:
    # The first, whatever word it begins, option or not.
    assert scored("mmlu_pro_lmeval", "the answer is Approximately 3").answer == "A"
    assert scored("mmlu_pro_lmeval", "answer is (J)", options=4).answer == "J"
    assert scored("mmlu_pro_lmeval", "answer is (B). answer is (A)", 1).outcome == "correct"
    assert scored("mmlu_pro_lmeval", "Answer: B").answer is None


# MMLU-Pro's own


def published_chain(text: str) -> str | None:
    """The three published patterns, in quadratic time."""
    match = (
        re.search(r"answer is \(?([A-J])\)?", text)
        or re.search(r".*[aA]nswer:\s*([A-J])", text)
        or re.search(r"(\b[A-J]\b)(?!.*\b[A-J]\b)", text, re.DOTALL)
    )
    return match.group(1) if match else None


CHAIN = st.sampled_from(
    ["answer is ", "(", "Answer:", "nswer:", " ", "\n", "A", "B", "K", "a", "."]
)


@given(st.lists(CHAIN, max_size=25).map("".join))
def test_the_chain_is_that_of_its_patterns(text: str) -> None:
    assert official_answer(text) == published_chain(text)


def test_the_first_link_alone() -> None:
    assert scored("mmlu_pro_official_first", "Answer: B", 1).outcome == "unparsed"
    assert scored("mmlu_pro_official", "Answer: B", 1).outcome == "correct"


def test_random_guesses_are_drawn_in_the_order_of_the_file() -> None:
    options = [["x"] * 10, ["x"] * 4, ["x"] * 10, ["x"]]
    generator = random.Random(12345)
    first, second, third = (generator.randint(0, highest) for highest in (9, 9, 0))
    guessed = with_random_guesses([None, "C", "", None], options)
    assert guessed == ["ABCDEFGHIJ"[first], "C", "ABCDEFGHIJ"[second], "ABCDEFGHIJ"[third]]
    assert with_random_guesses(["A", None], options[:2]) != ["A", None]
    with pytest.raises(ValueError):
        with_random_guesses(["A"], options)


# simple-evals


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: B", "B"),
        ("Answer: B\nAnswer: C", "B"),
        ("**Answer:** $\\boxed{B}$", "B"),
        ("Answer : \t(B)", None),
        ("Answer:\nB", None),
        ("answer: b", "b"),
        ("ANSWER: Don't know", "D"),
        ("Answer: E", None),
        ("答案：Ｂ", "B"),
        ("الجواب: ب", "B"),
        ("উত্তর: ব", "B"),
        ("Réponse : B", "B"),
        ("RÉPONSE: B", "B"),
        # The tool's list decides, not the place.
        ("Antwort: A\nAnswer: B", "B"),
        ("The answer is (B).", None),
        ("an\u017fwer: B", "B"),
    ],
)
def test_simple_evals(text: str, answer: str | None) -> None:
    assert simple_evals_answer(text) == answer


def test_a_small_letter_is_never_right() -> None:
    assert scored("simple_evals", "answer: b", 1, 4).outcome == "wrong"


# Zero-shot reasoners


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So 5. Therefore, the answer (arabic numerals) is $1,234.50 or 7.", "1234.50"),
        ("The answer (arabic numerals) is \n\n30%.", "30"),
        ("the answer (arabic numerals) is 8.", "8"),
        ("the answer (arabic numerals) is 3:45.", "345"),
        ("7 and the answer (arabic numerals) is unknown", None),
        ("18 of 20", "18"),
    ],
)
def test_the_first_number_behind_the_trigger(text: str, answer: str | None) -> None:
    assert scored("zero_shot_cot", text, "30").answer == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("(C)? Therefore, among A through E, the answer is probably (A), (B), or (D).", "A"),
        ("Among A through E, the answer is most likely D, countryside.", "D"),
        ("Among A through E, the answer is unknown, Dear.", "D"),
        ("among A through E, the answer is overstocking.", None),
    ],
)
def test_the_first_letter_behind_the_trigger(text: str, answer: str | None) -> None:
    assert scored("zero_shot_cot", text, 3, 5).answer == answer


def test_a_gold_answer_with_a_comma_is_never_right() -> None:
    text = "the answer (arabic numerals) is 2125."
    scorer = get_scorer("zero_shot_cot")
    plain = Item("i", "s", "q", "2125")
    written = Item("i", "s", "q", "2125", fields={"answer": "85*25\n#### 2,125"})
    assert scorer(plain, Response("i", text=text)).outcome == "correct"
    assert scorer(written, Response("i", text=text)).outcome == "wrong"


@pytest.mark.parametrize(
    "piece", ["Answer:", "Answer: ", "A ", "answer is ", "#### ", "1", "a", "\n", "$."]
)
@pytest.mark.parametrize(
    "scorer",
    [
        "mmlu_pro_official",
        "mmlu_pro_lmeval",
        "lmeval_strict",
        "lmeval_flexible",
        "lmeval_cot_strict",
        "simple_evals",
        "zero_shot_cot",
    ],
)
def test_linear_time(scorer: str, piece: str) -> None:
    gold: str | int = 0 if scorer.startswith(("mmlu", "simple")) else "18"
    assert_linear(lambda text: scored(scorer, text, gold), piece, size=20_000)
