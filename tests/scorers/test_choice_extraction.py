"""``extract_choice`` and ``choice``: what counts as an answer, in which form and language."""

from __future__ import annotations

import pytest

from pytest_llmeval.core import Item
from pytest_llmeval.core import Response
from pytest_llmeval.scorers import extract_choice
from pytest_llmeval.scorers import get_scorer
from support.choice_replies import METALS
from support.reported_cases import CHOICES


@pytest.mark.parametrize("case", CHOICES)
def test_reported_cases(case: str) -> None:
    reply, options, label = CHOICES[case]
    assert extract_choice(reply, options) == label


STATED = [
    "The answer is (B).",
    "The answer is b.",
    "Answer: B",
    "Answer : B",
    "My answer: b)",
    "ANSWER=B",
    "Answer:\n\n**B) iron oxide**",
    "### Answer\nB",
    "**Final answer**\n\n(B) iron oxide",
    "Final Answer: The final answer is B. I hope it is correct.",
    "Correct answer: B - iron oxide",
    "The answer is “B”.",
    "The answer is\u00a0B",
    "The answer is \u200bB",
    "So the answer is option (B).",
    "The correct answer choice is B",
    "The answer to this question is B.",
    "The term that best describes this is (B).",
    "Based on the above, the most likely answer would be (B), iron oxide.",
    "I would choose B.",
    "I'd go with (B).",
    "Therefore, B.",
    "It must be B.",
    "Eliminating A and C leaves B.",
    "Option B is correct.",
    "Thus, B is correct.",
    "Therefore, (B) is the correct answer.",
    "So, option (B) is right, and A is wrong.",
    "In conclusion, B is the best choice.",
    "Answer A is wrong. Answer B is right.",
    "The answer is &quot;B&quot;.",
    "The answer is\x00 B",
    "B is the correct answer.",
    "A and C are wrong, so the correct option is B",
    "A is incorrect because of its colour. B is correct.",
    "<answer>B</answer>",
    "<answer>B</answer> (A, C and D are wrong)",
    "<answer>B</answer>\nA",
    "<final_answer>iron oxide</final_answer>\niron",
    '{"answer": "B"}',
    '{"answer":"b"}',
    "[[B]]",
    "> **B**",
    "- B",
    "`B`",
]


BOXED = [
    r"$\boxed{B}$",
    r"\boxed{b}",
    r"$\boxed{\text{B}}$",
    r"\boxed{\textbf{(B)}}",
    r"$$\boxed{\mathbf{B}}$$",
    r"\boxed{B. \text{iron oxide}}",
    r"\boxed{\text{iron oxide}}",
    r"\fbox{B}",
]


LAST_COUNTS = [
    "The answer is A. No: the answer is B.",
    "Answer: A\nwait\nAnswer: B",
    "The answer is A. Actually, the final answer is iron oxide.",
    "The answer isn't A, it's B.",
    "The answer is B, certainly not A or C.",
    "The answer is: B) iron oxide, not A) iron",
    "The answer is (B)\n\nHere's why:\n\n* (a) One.\n* (c) Two.",
    "The answer is (B)\n\nHere's why:\n\na) One.\nc) Two.",
]


NOT_ITS_OWN = [
    "I initially thought the answer was A, but after all B is correct.",
    "You said the answer is A; I say it is B.",
    "Many students would say the answer is A, but the answer is B.",
    "It is wrong to say that the answer is A. It must be B.",
    "Correct answer: B. Incorrect answer: A.",
    "错误的答案是A，正确答案是B",
    "B\n\nIf it had asked for a metal, the answer would be A.",
    "If it were an oxide, the answer would be B.",
    "The answer is B.\n\n(If you meant the metal, it would be A.)",
    "If it were about metals, the answer would be A. Hence, option B is correct.",
    "A book says iron, which is option A, but that is outdated. Hence, option B is correct.",
    "A: iron is none. C: copper neither. Hence, option (B) is correct.",
    "The answer is B.\n\nNote: if it were hotter, the answer would be D.",
    "Answer: B. (If the question had asked for a metal, the answer would be D.)",
    "The answer is B. Had it asked for a metal, the answer would be D.",
    # What is no premise contrary to fact is one that holds.
    "If we weigh the rust, the answer would be B.",
    "I thought about it, and the answer is B.",
    "答案选B，因为A与题意相符程度较低。",
    "【答案】B【解析】A项描述的是铁。",
    "【答案】B【解析】A项描述的是iron。",
    "本题选B。若问金属，则选A。",
    "故选B，A、C、D三项均错误。",
    "The answer is B, A and C are wrong.",
]


ALONE = [
    "B",
    " B\n",
    "B.",
    "(B)",
    "**B**",
    "b",
    "B) copper",
    "B. because of the colour",
    "```\nB\n```",
    "Option B",
    "Choice (B)",
    "\u202eB\u202c",
    "A: B",
    "A: iron oxide",
    "B\n\nIt is the only oxide.",
    "It rusts.\n\nB",
    "A) iron\nB) iron oxide\nC) copper\nD) zinc\n\nB",
    "A) iron\nB) iron oxide\nC) copper\nD) zinc\n\nAnswer: B",
]


TEXT = [
    "iron oxide",
    "Iron oxide.",
    "The answer is iron oxide.",
    "Rust is iron oxide.",
    "The answer is iron oxide\n\nIron alone does not rust.",
    "**Answer: iron oxide**\n\nCopper turns green.",
    "<answer>iron oxide</answer>",
]


REST_CUT = [
    "<think>The answer is A.</think>The answer is B.",
    "<think>A</think>\nB",
    "the answer is A</think>B",
    "[THINK]A[/THINK]B",
    "The answer is B\n\nQuestion: What melts?\nAnswer: C",
    "The answer is B\n\n**Q:** What melts?\n**A:** The answer is C",
    "The answer is B<|im_end|>The answer is C",
    "Given:\n* Q: a charge\n* a: a length\nThe answer is B",
    "Read the Question: what melts?\nThe answer is B",
]


@pytest.mark.parametrize(
    "reply",
    [*STATED, *BOXED, *LAST_COUNTS, *NOT_ITS_OWN, *ALONE, *TEXT, *REST_CUT],
    ids=lambda reply: reply[:30],
)
def test_answers(reply: str) -> None:
    assert extract_choice(reply, METALS) == "B"


@pytest.mark.parametrize(
    ("reply", "options", "label"),
    [
        ("Answer: -1", ("1", "-1", "0"), "B"),
        ("Answer: -1", ("1", "0"), None),
        ("Answer: −1.", ("1", "-1"), "B"),
        ("Answer - 1", ("1", "-1"), "A"),
        ("The answer is -x", ("x", "-x"), "B"),
        ("The answer is - 6.9 mol.", ("6.9 mol", "- 6.9 mol"), "B"),
        ("The answer is -Infinity", ("Infinity", "-Infinity"), "B"),
        ("The answer is a == b.", ("a < b", "a > b", "a == b"), "C"),
        ("The answer is only I and II.", ("I and II", "only I and II"), "B"),
        ("The answer is the I and II.", ("I and II", "only I and II"), "A"),
        ("(A) 2 l (B) 9 l", ("(A) 3 l (B) 9 l", "(A) 2 l (B) 9 l"), "B"),
        ("~A", ("A", "~A", "B"), None),
        ("The answer is ~B.", ("A", "~A", "B", "~B"), None),
        ("The answer is C–B.", ("S–O", "P–F", "N–O", "C–B"), "D"),
        ("The answer is .5", ("5", ".5"), "B"),
        (".5", ("5", "50"), None),
        ("The statement is false.", ("True", "False"), "B"),
        ("The statement is not false.", ("True", "False"), None),
        ("It is not allowed.", ("allowed", "not allowed"), "B"),
        ("A: iron", ("iron", "zinc"), "A"),
        ("Therefore, A is wrong.", ("iron", "zinc"), None),
        ("Thus A is correct. Thus B is correct.", ("iron", "zinc"), None),
        ("Statement I", tuple("abcdefghi"), None),
        # A text is none of the labels because they are spelt so one behind the other.
        ("The answer is AB.", ("AB", "BC", "CD", "AC"), "A"),
        ("CD", ("AB", "BC", "CD", "AC"), "C"),
    ],
)
def test_answers_of_other_options(reply: str, options: tuple[str, ...], label: str | None) -> None:
    assert extract_choice(reply, options) == label


NOTHING = [
    "",
    "  \n ",
    "<THINK>the answer is A",
    "B <think>",
    "[Invalid] : CS",
    "[Invalid] : Navy",
    "ANSWER: Don't know",
    "Actually, both are plausible.",
    "The answer is A. Wait: the answer is (cannot be determined).",
    # more than one
    "The answer is A or B.",
    "The answer is A and B.",
    "The answer is A, B, or C.",
    "The answer is (A), (B) and (C).",
    "The answer is (B) iron oxide or (C) copper",
    "The answer is either C or B.",
    "Answer: A/B",
    "Both A and B.",
    "The answer is A or B depending on the temperature.",
    "Answer: A|B",
    "答案是A或B",
    "答案是A、B",
    "A, B",
    "A) iron\nB) iron oxide\nC) copper\nD) zinc",
    "A\nB\nC\nD",
    "A is correct. B is correct.",
    # denied, asked, supposed
    "The answer is not A.",
    "The answer to A is unknown to me.",
    "I don't think the answer is A.",
    "Is the answer A?",
    "If the answer is A, then zinc melts.",
    "Many students think the answer is A. However, this is a misconception.",
    "One might think that the answer is iron.",
    "It's false that the answer is A.",
    "The most common wrong answer is A.",
    "误选A",
    "答案是B吗？不，B不对。",
    # a letter that is no label
    "Answer: A metal is asked for.",
    "A metal is asked for.",
    "The answer is a",
    "Grade A",
    "Vitamin C is needed",
    "Answer: C++",
    "U.S.A.",
    "Thus $C$ is the circle.",
    "The energy is given by E = 3 and $D$ is constant, so $C=2$",
    "الجواب: باريس",
    "答案是乙醇",
    # no option
    "The answer is E.",
    "E",
    # cut off
    "(a) one\n(b) two",
    "Consider each choice:\n(A) means one. \n(B",
    "Consider each choice:\n(A) means one. \n(B)",
    "The text that is meant is iron",
    "Which means that the metal is iron",
]


@pytest.mark.parametrize("reply", NOTHING, ids=lambda reply: reply[:30])
def test_nothing_is_guessed(reply: str) -> None:
    assert extract_choice(reply, METALS) is None


def test_option_texts() -> None:
    assert extract_choice("The answer is B cells.", ["B cells", "T cells"]) == "A"
    assert extract_choice("The answer is $12.", ["$1", "$12", "$120"]) == "B"
    assert extract_choice("The answer is 12.", ["1", "1.2", "12"]) == "C"
    assert extract_choice("The fee is not 12.", ["1", "12"]) is None
    # One letter is the label, for any texts of the options.
    assert extract_choice("The answer is B.", ["B", "A"]) == "B"
    # Two options with one text.
    assert extract_choice("same", ["same", "Same ", "other"]) is None
    assert extract_choice("The answer is same.", ["same", "Same ", "other"]) is None
    # The option itself reads like a refusal.
    assert extract_choice("The answer is none of the above.", ["x", "None of the above"]) == "B"


def test_labels_may_be_given() -> None:
    assert extract_choice("The answer is (G).", ["x"] * 12) == "G"
    assert extract_choice("Answer: W", ["x", "y"], labels="VW") == "W"
    assert extract_choice("Answer: B", ["x", "y"], labels="VW") is None
    assert extract_choice("The answer is 3.", ["w", "x", "y", "z"], labels="1234") == "3"
    assert extract_choice("Answer: 13", ["w", "x", "y", "z"], labels="1234") is None
    assert extract_choice("The answer is B", ["w", "x"], labels="ab") == "b"
    assert extract_choice("B", []) is None


@pytest.mark.parametrize(
    ("text", "outcome", "answer"),
    [("B", "correct", "B"), ("Answer: C", "wrong", "C"), ("dunno", "unparsed", None)],
)
def test_choice(text: str, outcome: str, answer: str | None) -> None:
    item = Item("i", "s", "q", 1, METALS)
    score = get_scorer("choice")(item, Response("i", text=text))
    assert (score.outcome, score.answer) == (outcome, answer)
