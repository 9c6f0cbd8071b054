"""Extraction of the final number from generated text, and comparison of numbers as numbers.

Candidates are the numbers after ``####``, in a box, after an announcement ("the answer is", "A:"),
and bare numbers; the candidate with the best rank is the answer. Reasoning and everything from an
invented next question on are removed first. Only bounded ranges of the text are parsed in detail, so
that the time is linear in the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from collections.abc import Sequence
from decimal import Decimal
from itertools import islice

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers import answer_words
from pytest_llmeval.scorers.choice import phrases
from pytest_llmeval.scorers.choice.reader import Candidate
from pytest_llmeval.scorers.choice.reader import Extraction
from pytest_llmeval.scorers.choice.reader import Role
from pytest_llmeval.scorers.choice.tokens import lex
from pytest_llmeval.scorers.normalization import alternation
from pytest_llmeval.scorers.numerals import CODES
from pytest_llmeval.scorers.numerals import DIGIT
from pytest_llmeval.scorers.numerals import SIGNS
from pytest_llmeval.scorers.numerals import Numeral
from pytest_llmeval.scorers.numerals import numerals
from pytest_llmeval.scorers.response_text import answer_to_item
from pytest_llmeval.scorers.response_text import scoring_fault
from pytest_llmeval.scorers.response_text import text_score

# Of candidates of equal rank, the last one is used.
_RANKS = {Role.MARKED: 0, Role.BOXED: 1, Role.ANNOUNCED: 1, Role.BARE: 2, Role.SUPPOSED: 3}

_STATEMENTS = 20  # number of marks and of announcements that are read, from the last
_NUMBERS = 5  # number of bare numbers that are listed, from the last
_STRETCH = 1 << 12  # characters before the last digit that are searched for bare numbers
_REACH = 300  # characters after an announcement in which its number begins

_MARK = re.compile(r"(?<!#)####(?!#)")
_DIRECT = re.compile(rf"(?:-\s|[\s*_`\"'“‘~≈({{\[\\:=.{SIGNS}]|text|mathrm|approx|{CODES})*")
# Steps or a heading, not a number.
_STEPS = re.compile(
    r"\s{0,8}(?:[*_#]{0,4}\s?(?:Step|Schritt|Étape|Paso|Passo|Шаг|步骤|步驟|ステップ)\s?\d"
    r"|(?:(?<=\n)[*_#]{0,4}1|(?<=####)\s{0,3}\d{1,2})[.)][*_]{0,2}\s+[^\W\d])",
    re.IGNORECASE,
)
# "2. Then …" on a new line
_LIST_ITEM = re.compile(r"(?:\n|\A)[ \t>*#_-]{0,8}(\d\d?)[.)][*_]{0,2}\s+[^\W\d]")
# Over the classes of tokens: a box; "answer is", "answer:", "answer 12"; "A: 12".
_WORD = re.compile("[NB]|(?<=[~¶])a(?=:)")
_LINK = re.compile("B|N(?=#)|N[^XWQx.:;?¶#]{0,9}?[Vvz:]:?[~¶]{0,2}|a:")
_ASIDE = re.compile(
    r"(?<![-−–+*/×÷=≈^])[*_]{0,2}"
    rf"(?:[,،]?\s(?:{alternation(answer_words.BECAUSE)})(?!\w)|,\s(?:as|which|not|where)\b"
    rf"|{alternation(answer_words.BECAUSE_UNSPACED)}"
    # Brackets that close at the end of the statement.
    r"|\s?[(（](?<=\s\(|.（)(?=[^()（）\n]{0,300}[)）][\s.*_$。]{0,6}(?:\n|[.!?。](?:\s|$)|$)))"
)
_NEGATIVE = re.compile(
    rf"[\s*_$({{\[]{{0,6}}(?:(?:{alternation(answer_words.MINUS)})\s{{1,2}}|[负負](?=\d)|(?<!\n)[-−–]\s(?=\d))",
    re.IGNORECASE,
)
# The ends of a box, of a line, and of a sentence, with blank lines before it.
_BOX = re.compile(r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*")
_LINE = re.compile(r"[^\n]*")
_SENTENCE = re.compile(r"\s*(?:[^.!?。！？\n]|[.!?。！？](?=\S)|(?<=\bRs)\.|(?<=\bkr)\.)*")

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: number for number, word in enumerate(_SMALL.split())}
_WORDS |= {word: 10 * number for number, word in enumerate(_TENS.split(), start=2)}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "eighth": 8}
_PARTS |= {f"{name}s": part for name, part in _PARTS.items() if part > 2}
_IN_WORDS = re.compile(
    rf"\b(?P<whole>(?:{alternation(_WORDS)})(?:[\s-]+(?:and\s+)?(?:{alternation(_WORDS | _SCALES)})\b)*)\b"
    rf"(?:\s+(?P<and>and\s+a\s+)?(?P<part>{alternation(_PARTS)})\b)?",
    re.IGNORECASE,
)


def number(item: Item, response: Response) -> Score:
    """Compare the final number of the text with the gold number; no number is ``unparsed``.

    ``item.fields["language"]`` determines whether "1.234" in a reply has a decimal point; in a gold
    answer it always has.
    """
    fault = scoring_fault(item, response)
    gold = extract_number(item.gold_label)
    if fault is None and gold is None:
        fault = f"the gold answer is not a number: {item.gold_label[:60]!r}"
    if fault is not None or gold is None:
        return Score(Outcome.ERROR, error=fault)
    answer = explain_number(response.text or "", item.fields.get("language")).answer
    return text_score(answer, answer is not None and _equal(Decimal(answer), gold))


def extract_number(text: str, *, language: str | None = None) -> Decimal | None:
    """Return the final number of ``text``, or None; never raises.

    A percentage is returned at face value. ``language``: ISO 639-1 code of the text's language, if
    known. In languages with a decimal comma, three digits after a single point are thousands.
    """
    answer = explain_number(text, language).answer
    return None if answer is None else Decimal(answer)


def explain_number(text: str, language: str | None = None) -> Extraction:
    """Return the candidates for the final number of ``text``, best first; see ``extract_number``.

    They are the last 20 marks, 20 announcements and 5 other numbers. The answer is None for a
    statement of digits that are not a number, such as a time.
    """
    reply = answer_to_item(text)
    if not reply:
        return Extraction("", ())
    comma = (language or "")[:2].lower() in answer_words.DECIMAL_COMMA
    candidates = [*_marked(reply, comma), *_stated(reply, comma)]
    candidates.extend(_bare(reply, comma, candidates))
    return Extraction(reply, tuple(sorted(candidates, key=lambda entry: _RANKS[entry.role])))


def numbers_equal(answer: str, gold: str, *, language: str | None = None) -> bool:
    """Return True if the final number of ``answer`` equals that of ``gold``.

    ``gold`` may be a whole GSM8K solution. A difference of up to 1e-9 (relative to the gold) is
    ignored only if ten or more decimals indicate floating-point arithmetic.
    """
    value, target = extract_number(answer, language=language), extract_number(gold)
    return value is not None and target is not None and _equal(value, target)


def _equal(value: Decimal, gold: Decimal) -> bool:
    if value == gold:
        return True
    exponents = [number.as_tuple().exponent for number in (value, gold)]
    if not any(isinstance(exponent, int) and exponent <= -10 for exponent in exponents):
        return False
    return abs(value - gold) <= Decimal("1e-9") * max(abs(gold), Decimal(1))


def _candidate(numeral: Numeral, role: Role, rule: str) -> Candidate:
    value = numeral.value
    if value is None:
        return Candidate(None, role, numeral.start, numeral.end, f"{rule}; not a single number")
    answer = str(value) if abs(value.adjusted()) > 40 else f"{value:f}"
    return Candidate(answer, role, numeral.start, numeral.end, rule)


def _marked(text: str, comma: bool) -> Iterator[Candidate]:
    """Yield the numbers directly after ``####``, or after the "=" of a calculation there."""
    for mark in reversed(list(_MARK.finditer(text))[-_STATEMENTS:]):
        if _STEPS.match(text, mark.end()):
            continue
        line = _end(_LINE, text, mark.end())
        first = next(numerals(text, mark.end(), line, comma=comma), None)
        if first is not None and _DIRECT.fullmatch(text, mark.end(), first.start):
            numeral = _of_statement(text, mark.end(), line, comma) or first
            yield _candidate(numeral, Role.MARKED, 'after "####"')


def _stated(text: str, comma: bool) -> Iterator[Candidate]:
    """Yield the numbers of boxes and announcements, in digits or in words, last first."""
    tokens = lex(text)
    words = [word.start() for word in _WORD.finditer(tokens.classes)]
    for word in reversed(words[-_STATEMENTS:]):
        link = _LINK.match(tokens.classes, word)
        if link is None or not phrases.is_assertion(tokens, word):
            continue
        if link[0] == "a:" and not text.startswith("\nA:", tokens.starts[word] - 1):
            continue
        start = tokens.ends[link.end() - 1]
        if tokens.classes[link.end() : link.end() + 1] == "X" or _STEPS.match(text, start):
            continue
        boxed = link.group() == "B"
        start = text.find("{", start, start + 4) + 1 if boxed else start
        end = _end(_BOX if boxed else _SENTENCE, text, start)
        numeral = _of_statement(text, start, end, comma)
        if numeral is None:
            continue
        announcement = " ".join(text[tokens.starts[word] : start].split())
        if phrases.is_supposed(tokens, link.end()):
            yield _candidate(numeral, Role.SUPPOSED, f'after "{announcement}", for another case')
        elif boxed:
            yield _candidate(numeral, Role.BOXED, f"in {announcement}…}}")
        else:
            yield _candidate(numeral, Role.ANNOUNCED, f'after "{announcement}"')


def _bare(text: str, comma: bool, listed: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield the other numbers of the text, last first, without the numbers of its lists."""
    digit = deque(DIGIT.finditer(text), maxlen=1)
    start = max(0, digit[0].end() - _STRETCH) if digit else len(text)
    items = list(_LIST_ITEM.finditer(text, start))
    numbers = {0, *(int(item[1]) for item in items)}
    excluded = {item.start(1) for item in items if int(item[1]) - 1 in numbers}
    excluded.update(*(range(candidate.start, candidate.end) for candidate in listed))
    # The first numeral of the range may begin before it.
    complete = islice(numerals(text, start, comma=comma), min(start, 1), None)
    valid = (numeral for numeral in complete if numeral.value is not None)
    last = deque((numeral for numeral in valid if numeral.start not in excluded), _NUMBERS)
    for place, numeral in enumerate(reversed(last), start=1):
        yield _candidate(numeral, Role.BARE, f"number {place} from the end, without context")


def _of_statement(text: str, start: int, end: int, comma: bool) -> Numeral | None:
    """Return the number of a statement in ``text[start:end]``, in digits or in words."""
    negative = _NEGATIVE.match(text, start, end)
    start = negative.end() if negative else start
    numeral = _result(text, start, end, comma)
    if numeral is None:
        words = _in_words(text[start:end])
        numeral = None if words is None else Numeral(words, start, end)
    if negative is None or numeral is None or numeral.value is None:
        return numeral
    return Numeral(numeral.value.copy_negate(), negative.start(), numeral.end)


def _result(text: str, start: int, end: int, comma: bool) -> Numeral | None:
    """Return the result of a statement's calculation, or else its first number.

    A reason or a remark after it ("12, because 3 × 3 = 9 is too few") does not belong to it.
    """
    for aside in _ASIDE.finditer(text, start, end):
        if DIGIT.search(text, start, aside.start()):
            end = aside.start()
            break
    equals = max(text.rfind(sign, start, end) for sign in "=≈")
    first = next(numerals(text, start, end, comma=comma), None)
    return next(numerals(text, equals + 1, end, comma=comma), first) if equals >= 0 else first


def _in_words(text: str) -> Decimal | None:
    """Return the first English number in words, such as "one hundred and eighty"."""
    match = _IN_WORDS.search(text)
    if match is None:
        return None
    total = part = 0
    for word in re.findall(r"\w+", match["whole"].lower()):
        scale = _SCALES.get(word, 1)
        part = part * scale + _WORDS.get(word, 0)
        if scale > 100:
            total, part = total + part, 0
    value, name = Decimal(total + part), (match["part"] or "").lower()
    if match["and"]:
        return value + Decimal(1) / _PARTS[name]
    # "one third", "three quarters"
    return value / _PARTS[name] if name and (value == 1) != name.endswith("s") else value


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the end of the pattern's match at ``start``, limited to ``_REACH`` characters."""
    match = pattern.match(text, start, start + _REACH)
    return start if match is None else match.end()
