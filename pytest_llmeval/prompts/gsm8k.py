"""Prompt formats of GSM8K: chain of thought as in Wei et al. (2022), and lm-evaluation-harness.

Sources: table 20 of "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models"
(the eight examples); the task files ``gsm8k``, ``gsm8k_cot`` and ``gsm8k_cot_zeroshot`` of
lm-evaluation-harness 0.4.13, whose prompts are reproduced byte for byte.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_llmeval.core import Item
from pytest_llmeval.core import Template
from pytest_llmeval.prompts.lettered import no_choices
from pytest_llmeval.prompts.lettered import no_description


def _question(item: Item) -> str:
    return f"Question: {item.question}\nAnswer:"


def _q(item: Item) -> str:
    return f"Q: {item.question}\nA:"


def _q_step_by_step(item: Item) -> str:
    return f"{_q(item)} Let's think step by step."


def _reasoning(item: Item) -> str:
    """The whole solution, which ends with the answer in the words of its source."""
    return item.fields["answer"]


LMEVAL_GSM8K = Template(
    name="lmeval-gsm8k",
    description=no_description,
    question=_question,
    choices=no_choices,
    answer=_reasoning,
)
"""A shot shows the solution as in the data: calculator marks, then ``#### 18``."""

GSM8K_COT = Template(
    name="gsm8k-cot",
    description=no_description,
    question=_q,
    choices=no_choices,
    answer=_reasoning,
)
"""``Q:`` and ``A:``, the format of the paper and of lm-eval's ``gsm8k_cot``."""

GSM8K_ZERO_SHOT = replace(GSM8K_COT, name="gsm8k-zero-shot", question=_q_step_by_step)

_WEI = (
    (
        "There are 15 trees in the grove. Grove workers will plant trees in the grove today."
        " After they are done, there will be 21 trees. How many trees did the grove workers"
        " plant today?",
        "There are 15 trees originally. Then there were 21 trees after some more were planted."
        " So there must have been 21 - 15 = 6.",
        "6",
    ),
    (
        "If there are 3 cars in the parking lot and 2 more cars arrive, how many cars are in"
        " the parking lot?",
        "There are originally 3 cars. 2 more cars arrive. 3 + 2 = 5.",
        "5",
    ),
    (
        "Leah had 32 chocolates and her sister had 42. If they ate 35, how many pieces do they"
        " have left in total?",
        "Originally, Leah had 32 chocolates. Her sister had 42. So in total they had"
        " 32 + 42 = 74. After eating 35, they had 74 - 35 = 39.",
        "39",
    ),
    (
        "Jason had 20 lollipops. He gave Denny some lollipops. Now Jason has 12 lollipops. How"
        " many lollipops did Jason give to Denny?",
        "Jason started with 20 lollipops. Then he had 12 after giving some to Denny. So he gave"
        " Denny 20 - 12 = 8.",
        "8",
    ),
    (
        "Shawn has five toys. For Christmas, he got two toys each from his mom and dad. How"
        " many toys does he have now?",
        "Shawn started with 5 toys. If he got 2 toys each from his mom and dad, then that is 4"
        " more toys. 5 + 4 = 9.",
        "9",
    ),
    (
        "There were nine computers in the server room. Five more computers were installed each"
        " day, from monday to thursday. How many computers are now in the server room?",
        "There were originally 9 computers. For each of 4 days, 5 more computers were added."
        " So 5 * 4 = 20 computers were added. 9 + 20 is 29.",
        "29",
    ),
    (
        "Michael had 58 golf balls. On tuesday, he lost 23 golf balls. On wednesday, he lost 2"
        " more. How many golf balls did he have at the end of wednesday?",
        "Michael started with 58 golf balls. After losing 23 on tuesday, he had 58 - 23 = 35."
        " After losing 2 more, he had 35 - 2 = 33 golf balls.",
        "33",
    ),
    (
        "Olivia has $23. She bought five bagels for $3 each. How much money does she have left?",
        "Olivia had 23 dollars. 5 bagels for 3 dollars each will be 5 x 3 = 15 dollars. So she"
        " has 23 - 15 dollars left. 23 - 15 is 8.",
        "8",
    ),
)

COT_EXAMPLES = tuple(
    Item(
        id=f"wei-{number}",
        subject="gsm8k",
        question=question,
        gold=gold,
        fields={"answer": f"{reasoning} The answer is {gold}."},
    )
    for number, (question, reasoning, gold) in enumerate(_WEI, start=1)
)
"""The eight examples of Wei et al., in the paper's order."""
