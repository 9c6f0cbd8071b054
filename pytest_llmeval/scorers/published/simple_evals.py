"""What simple-evals reads out of an MMLU answer: the letter behind the first "Answer:".

The words are tried in the tool's order, so an earlier word of the list outranks an earlier place
in the text. Markup is dropped first. The letter may begin a word ("Answer: Don't know" is D) and
a small letter is read, but never right.
"""

from __future__ import annotations

import re

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.response_text import verdict
from pytest_llmeval.scorers.response_text import what_is_wrong

# In this order; a word with a blank before its colon allows white space there.
_DROPPED = (
    "**", "$\\boxed{", "}$", "\\$", "$\\text{", "$", "\\mathrm{", "\\{", "\\text", "\\(",
    "\\mathbf{", "{", "\\boxed",
)  # fmt: skip
_WORDS = (
    "Answer :", "Answer :" + "\u200b" * 6, "উত্তর :", "उत्तर :", "উত্তরঃ", "Antwort :", "답변 :", "정답 :",
    "답 :", "答案 ：", "答案 :", "答 ：", "答 :", "答复 ：", "答曰 ：", "الإجابة:", "الجواب:", "إجابة:",
    "الإجابة النهائية:", "الإجابة الصحيحة:", "الإجابة الصحيحة هي:", "الإجابة هي:",
    "الجواب النهائي:",
    "Respuesta :", "Risposta :", "答え :", "答え ：", "回答 :", "回答 ：", "解答 :", "Jawaban :", "Réponse :",
    "Resposta :", "Jibu :", "Idahun :", "Ìdáhùn :", "Idáhùn :", "Àmọ̀nà :", "Àdáhùn :", "Ànúgọ :",
    "Àṣàyàn :",
)  # fmt: skip
_LETTERS = r"[ \t]*([A-D]|[أ-د]|[অবডঢ]|[ＡＢＣＤ])"
_MEANING = dict(zip("أبجدঅবডঢＡＢＣＤ", "ABCDABCDABCD", strict=True))


def _colon(word: str) -> str:
    if word[-1] not in ":：" or " " + word[-1] != word[-2:]:
        return re.escape(word)
    return re.escape(word[:-2]) + r"\s*" + re.escape(word[-1])


_PATTERNS = tuple(
    # What must be in the folded text for the pattern to match: a plain search is much faster.
    (
        word.split(" :")[0].split(" ：")[0].rstrip("\u200b").lower(),
        re.compile(f"(?i){pattern}{_LETTERS}"),
    )
    for word in _WORDS
    for pattern in ([r"Answer\s*:" + "\u200b" * 6] if word.endswith("\u200b") else [_colon(word)])
)


def simple_evals(item: Item, response: Response) -> Score:
    """The letter as simple-evals' MMLU reads it, compared with the gold letter as text."""
    fault = what_is_wrong(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    answer = simple_evals_answer(response.text or "")
    return verdict(answer, answer == item.gold_label)


def simple_evals_answer(text: str) -> str | None:
    """What simple-evals extracts: a letter A to D or a to d, another Arabic letter, or None."""
    for markup in _DROPPED:
        text = text.replace(markup, "")
    folded = text.lower().replace("ſ", "s").replace("ı", "i").replace("i̇", "i")
    for word, pattern in _PATTERNS:
        match = pattern.search(text) if word in folded else None
        if match:
            return _MEANING.get(match.group(1), match.group(1))
    return None
