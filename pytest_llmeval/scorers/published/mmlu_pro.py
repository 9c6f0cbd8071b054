"""What MMLU-Pro's own scripts read out of an answer, and their random guesses.

``mmlu_pro_official`` is the chain of three patterns; ``mmlu_pro_official_first`` the first of them
alone. Published outputs exist of both kinds: the answers recorded for Llama-2-7b and Llama-3-8B are
those of the first pattern, the ones for gemini-1.5-flash those of the chain. Where nothing can be
read, the scripts guess; no scorer here does (a guess is no answer), but ``with_random_guesses``
repeats theirs over a whole file.
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.response_text import verdict
from pytest_llmeval.scorers.response_text import what_is_wrong

_STATED = re.compile(r"answer is \(?([A-J])\)?")
_COLON = re.compile(r"[aA]nswer:(?=\s*([A-J]))")
_LONE = re.compile(r"\b[A-J]\b")


def mmlu_pro_official(item: Item, response: Response) -> Score:
    """The chain: "answer is (X)", else "answer: X", else the last capital A to J by itself."""
    text = response.text or ""
    return _scored(item, response, official_answer(text))


def mmlu_pro_official_first(item: Item, response: Response) -> Score:
    """The first link of the chain alone: the first "answer is (X)"."""
    match = _STATED.search(response.text or "")
    return _scored(item, response, match.group(1) if match else None)


def official_answer(text: str) -> str | None:
    """The letter that the chain reads, in time linear in the text.

    As published, the second pattern opens with ``.*`` and the third looks ahead to the end of the
    text from every letter; both are quadratic. The same is found by the last occurrence on the
    first line that has one, and by the last lone letter.
    """
    match = _STATED.search(text)
    if match:
        return match.group(1)
    letter, line_end = None, -1
    for match in _COLON.finditer(text):
        if letter is not None and match.start() > line_end:
            break
        if letter is None:
            line_end = text.find("\n", match.start())
            line_end = len(text) if line_end < 0 else line_end
        letter = match.group(1)
    if letter is not None:
        return letter
    last = deque(_LONE.finditer(text), maxlen=1)
    return last[0].group() if last else None


def with_random_guesses(
    answers: Iterable[str | None], options: Iterable[Sequence[str]], seed: int = 12345
) -> list[str]:
    """The answers of a whole results file with the official guess for each that is missing.

    ``options`` are those of each item, in the same order. The generator is seeded once, so a guess
    depends on every missing answer before it: only the published order repeats the published
    score.
    """
    generator = random.Random(seed)
    return [
        answer or LABELS[generator.randint(0, len(offered) - 1)]
        for answer, offered in zip(answers, options, strict=True)
    ]


def _scored(item: Item, response: Response, answer: str | None) -> Score:
    fault = what_is_wrong(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return verdict(answer, answer == item.gold_label)
