"""Scorers that reproduce how published tools extract answers, including their faults.

The tools are lm-evaluation-harness 0.4.13 (``lmeval_*``, ``mmlu_pro_lmeval``), MMLU-Pro's scripts
(``mmlu_pro_official*``), simple-evals (``simple_evals``), and the code behind "Large Language Models
are Zero-Shot Reasoners" (``zero_shot_cot``).
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
from pytest_llmeval.scorers.response_text import scoring_fault
from pytest_llmeval.scorers.response_text import text_score

_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_COT_STRICT = re.compile(r"The answer is (\-?[0-9\.\,]+).")
_FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_MMLU_PRO = re.compile(r"answer is \(?([ABCDEFGHIJ])\)?")
_LAST_STOP = re.compile(r"\.$")


def lmeval_strict(item: Item, response: Response) -> Score:
    """Extract the first number after ``#### ``: the strict filter of lm-eval's ``gsm8k``.

    Answers are compared as by its ``exact_match``: as text, without commas, dollar signs and a final
    full stop, so that ``29.00`` does not equal ``29``.
    """
    return _first(_STRICT, item, response)


def lmeval_cot_strict(item: Item, response: Response) -> Score:
    """Extract the first number after "The answer is": the strict filter of lm-eval's ``gsm8k_cot``.

    Its pattern needs one more character after the number: "The answer is 18" without a full stop
    gives ``1``. Answers are compared as in ``lmeval_strict``.
    """
    return _first(_COT_STRICT, item, response)


def lmeval_flexible(item: Item, response: Response) -> Score:
    """Extract the last match of a number: the flexible filter of lm-eval's ``gsm8k``.

    Its pattern also matches a lone ``$.``. Answers are compared as in ``lmeval_strict``.
    """
    fault = scoring_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    last = deque(_FLEXIBLE.finditer(response.text or ""), maxlen=1)
    return _compared(item, last[0].group() if last else None)


def mmlu_pro_lmeval(item: Item, response: Response) -> Score:
    """Extract the letter of the first "answer is (X)", as lm-eval's ``mmlu_pro`` does.

    The letter may begin a word and need not be an option.
    """
    fault = scoring_fault(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    match = _MMLU_PRO.search(response.text or "")
    answer = match.group(1) if match else None
    return text_score(answer, answer == item.gold_label)


def gsm8k_normal(text: str) -> str:
    """Normalize an answer as lm-eval's ``gsm8k`` does before the comparison."""
    text = text.replace(",", "").replace("$", "")
    # lm-eval's pattern is `(?s).*#### `, which is quadratic in the length of a text without the mark.
    text = text.rpartition("#### ")[2]
    return _LAST_STOP.sub("", text).lower()


def _first(pattern: re.Pattern[str], item: Item, response: Response) -> Score:
    fault = scoring_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    match = pattern.search(response.text or "")
    return _compared(item, match.group(1) if match else None)


def _compared(item: Item, extracted: str | None) -> Score:
    if extracted is None:
        return text_score(None, False)
    answer = gsm8k_normal(extracted.strip())
    return text_score(answer, answer == gsm8k_normal(item.gold_label))


_STATED = re.compile(r"answer is \(?([A-J])\)?")
_COLON = re.compile(r"[aA]nswer:(?=\s*([A-J]))")
_LONE = re.compile(r"\b[A-J]\b")


def mmlu_pro_official(item: Item, response: Response) -> Score:
    """Extract "answer is (X)", else "answer: X", else the last lone capital A to J.

    This is the chain of three patterns of MMLU-Pro's scripts. The published answers of
    gemini-1.5-flash were extracted by the chain, those of Llama-2-7b and Llama-3-8B by its first
    pattern (``mmlu_pro_official_first``). Unparsed answers are not guessed, see
    ``with_random_guesses``.
    """
    text = response.text or ""
    return _scored(item, response, official_answer(text))


def mmlu_pro_official_first(item: Item, response: Response) -> Score:
    """Extract the first "answer is (X)": the first pattern of ``mmlu_pro_official``."""
    match = _STATED.search(response.text or "")
    return _scored(item, response, match.group(1) if match else None)


def official_answer(text: str) -> str | None:
    """Return the letter that the chain extracts, in time linear in the text.

    The published second pattern begins with ``.*`` and the third looks ahead to the end of the text
    from every letter, so that both take quadratic time. Equivalent are the last occurrence on the
    first line that has one, and the last lone letter.
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
    """Return the answers of a results file, with MMLU-Pro's random guess for each missing one.

    ``options``: the options of each item, in the same order. The generator is seeded once, so that a
    guess depends on every missing answer before it: only the published order reproduces the
    published score. Raises ValueError for lists of unequal length.
    """
    generator = random.Random(seed)
    return [
        answer or LABELS[generator.randint(0, len(item_options) - 1)]
        for answer, item_options in zip(answers, options, strict=True)
    ]


def _scored(item: Item, response: Response, answer: str | None) -> Score:
    fault = scoring_fault(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    return text_score(answer, answer == item.gold_label)


# Removed in this order.
_DROPPED = (
    "**", "$\\boxed{", "}$", "\\$", "$\\text{", "$", "\\mathrm{", "\\{", "\\text", "\\(",
    "\\mathbf{", "{", "\\boxed",
)  # fmt: skip
# Tried in this order; a word with a space before its colon allows any white space there.
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
    # A string that the case-folded text must contain for the pattern to match: faster to search.
    (
        word.split(" :")[0].split(" ：")[0].rstrip("\u200b").lower(),
        re.compile(f"(?i){pattern}{_LETTERS}"),
    )
    for word in _WORDS
    for pattern in ([r"Answer\s*:" + "\u200b" * 6] if word.endswith("\u200b") else [_colon(word)])
)


def simple_evals(item: Item, response: Response) -> Score:
    """Compare the letter that simple-evals extracts for MMLU with the gold letter, as text.

    A lower-case letter is extracted, but never right.
    """
    fault = scoring_fault(item, response, options=True)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    answer = simple_evals_answer(response.text or "")
    return text_score(answer, answer == item.gold_label)


def simple_evals_answer(text: str) -> str | None:
    """Return the letter after "Answer:" as simple-evals extracts it, or None.

    Markup is removed first. The words for "Answer:" are tried in the tool's order, so that an
    earlier word of the list takes precedence over an earlier position in the text. The letter may
    begin a word ("Answer: Don't know" gives D). It is A to D, a to d, or an Arabic letter.
    """
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
    """Extract the first number after the trigger, or the first letter for an item with options.

    As in the logs of "Large Language Models are Zero-Shot Reasoners": the model is queried for its
    reasoning and then, after a trigger sentence, for the answer. The letter is the first of A to E
    at any position ("probably (A), (B), (C), or (D)." gives A). Numbers are compared as text, and
    commas are removed on one side only: a gold answer of 2,125 is never right in the published
    figures.
    """
    fault = scoring_fault(item, response)
    if fault is not None:
        return Score(Outcome.ERROR, error=fault)
    text = after_trigger(response.text or "")
    if item.options:
        match = _LETTER.search(text)
        answer = match.group() if match else None
    else:
        match = _NUMBER.search(text.replace(",", ""))
        answer = match.group().removesuffix(".") if match else None
    # The gold answer as in the data set, for an item that contains the whole solution.
    original = item.fields.get("answer", "").rpartition("#### ")[2].strip()
    return text_score(answer, answer == (original or item.gold_label))


def after_trigger(text: str) -> str:
    """Return the text after the first trigger sentence, if there is one, without colons."""
    match = _TRIGGER.search(text)
    return text[match.end() if match else 0 :].replace(":", "")
