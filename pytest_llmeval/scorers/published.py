"""Scorers that reproduce how published tools read answers, with their faults.

What lm-evaluation-harness 0.4.13 reads out of GSM8K and MMLU-Pro answers, with its faults.

``lmeval_strict`` and ``lmeval_flexible`` are the two filters of its ``gsm8k``,
``lmeval_cot_strict`` the strict one of ``gsm8k_cot``; all compare as its ``exact_match`` does: as
text, without commas, dollar signs and a final full stop. So ``29.00`` is not ``29`` there, and
"The answer is 18" without a full stop gives ``1``.

What MMLU-Pro's own scripts read out of an answer, and their random guesses.

``mmlu_pro_official`` is the chain of three patterns; ``mmlu_pro_official_first`` the first of them
alone. Published outputs exist of both kinds: the answers recorded for Llama-2-7b and Llama-3-8B are
those of the first pattern, the ones for gemini-1.5-flash those of the chain. Where nothing can be
read, the scripts guess; no scorer here does (a guess is no answer), but ``with_random_guesses``
repeats theirs over a whole file.

What simple-evals reads out of an MMLU answer: the letter behind the first "Answer:".

The words are tried in the tool's order, so an earlier word of the list outranks an earlier place
in the text. Markup is dropped first. The letter may begin a word ("Answer: Don't know" is D) and
a small letter is read, but never right.

The extraction that the logs of "Large Language Models are Zero-Shot Reasoners" show.

The model is asked twice: for its reasoning, then for the answer behind a trigger sentence. What
follows the trigger is read: the first number, or the first of the letters A to E wherever it
stands ("probably (A), (B), (C), or (D)." is A). Numbers are compared as text, without commas on the
one side only: a gold answer of 2,125 is never right in the published figures.
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


_TRIGGER = re.compile(
    r"(?:the answer \(arabic numerals\) is|among [A-Z] through [A-Z], the answer is)", re.IGNORECASE
)
_NUMBER = re.compile(r"-?\d+\.?\d*")
_LETTER = re.compile(r"[A-E]")


def zero_shot_cot(item: Item, response: Response) -> Score:
    """The first number, or for an item with options the first letter, after the trigger."""
    fault = what_is_wrong(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    said = after_trigger(response.text or "")
    if item.options:
        match = _LETTER.search(said)
        answer = match.group() if match else None
    else:
        match = _NUMBER.search(said.replace(",", ""))
        answer = match.group().removesuffix(".") if match else None
    # The gold as the data set writes it, where the item holds the whole solution.
    written = item.fields.get("answer", "").rpartition("#### ")[2].strip()
    return verdict(answer, answer == (written or item.gold_label))


def after_trigger(text: str) -> str:
    """What follows the first trigger sentence, without colons; all of a text without one."""
    match = _TRIGGER.search(text)
    return text[match.end() if match else 0 :].replace(":", "")
