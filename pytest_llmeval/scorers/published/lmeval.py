"""What lm-evaluation-harness 0.4.13 reads out of GSM8K and MMLU-Pro answers, with its faults.

``lmeval_strict`` and ``lmeval_flexible`` are the two filters of its ``gsm8k``,
``lmeval_cot_strict`` the strict one of ``gsm8k_cot``; all compare as its ``exact_match`` does: as
text, without commas, dollar signs and a final full stop. So ``29.00`` is not ``29`` there, and
"The answer is 18" without a full stop gives ``1``.
"""

from __future__ import annotations

import re
from collections import deque

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.response_text import verdict
from pytest_llmeval.scorers.response_text import what_is_wrong

_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_COT_STRICT = re.compile(r"The answer is (\-?[0-9\.\,]+).")
_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_MMLU_PRO = re.compile(r"answer is \(?([ABCDEFGHIJ])\)?")
_LAST_STOP = re.compile(r"\.$")


def lmeval_strict(item: Item, response: Response) -> Score:
    """The first number behind ``#### ``."""
    return _first(_STRICT, item, response)


def lmeval_cot_strict(item: Item, response: Response) -> Score:
    """The first number behind "The answer is"; its pattern takes one more character."""
    return _first(_COT_STRICT, item, response)


def lmeval_flexible(item: Item, response: Response) -> Score:
    """The last thing that looks like a number, however little: a lone ``$.`` does."""
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    last = deque(_FLEXIBLE.finditer(response.text or ""), maxlen=1)
    return _compared(item, last[0].group() if last else None)


def mmlu_pro_lmeval(item: Item, response: Response) -> Score:
    """The letter of the first "answer is (X)", whatever follows it and whether it is an option."""
    fault = what_is_wrong(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    match = _MMLU_PRO.search(response.text or "")
    answer = match.group(1) if match else None
    return verdict(answer, answer == item.gold_label)


def gsm8k_normal(text: str) -> str:
    """How lm-eval's ``gsm8k`` writes an answer before it compares."""
    text = text.replace(",", "").replace("$", "")
    # Its pattern is `(?s).*#### `, which takes quadratic time on a long text without the mark.
    text = text.rpartition("#### ")[2]
    return _LAST_STOP.sub("", text).lower()


def _first(pattern: re.Pattern[str], item: Item, response: Response) -> Score:
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    match = pattern.search(response.text or "")
    return _compared(item, match.group(1) if match else None)


def _compared(item: Item, extracted: str | None) -> Score:
    if extracted is None:
        return verdict(None, False)
    answer = gsm8k_normal(extracted.strip())
    return verdict(answer, answer == gsm8k_normal(item.gold_label))
