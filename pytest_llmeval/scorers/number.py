"""Extraction of the final number from generated text, and comparison of numbers as numbers.

Candidates are the numbers behind ``####``, in a box, behind an announcement ("the answer is",
"A:"), and the bare ones; the best ranked one is the answer. Reasoning, and everything from an
invented next question on, is cut first. Only bounded stretches of the text are read closely, so
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
from pytest_llmeval.scorers.candidates import Candidate
from pytest_llmeval.scorers.candidates import Extraction
from pytest_llmeval.scorers.candidates import Role
from pytest_llmeval.scorers.languages import ANSWER_WORDS
from pytest_llmeval.scorers.languages import ANSWER_WORDS_UNSPACED
from pytest_llmeval.scorers.languages import BECAUSE
from pytest_llmeval.scorers.languages import BECAUSE_UNSPACED
from pytest_llmeval.scorers.languages import COPULAS
from pytest_llmeval.scorers.languages import DECIMAL_COMMA
from pytest_llmeval.scorers.languages import MINUS
from pytest_llmeval.scorers.numerals import CODES
from pytest_llmeval.scorers.numerals import DIGIT
from pytest_llmeval.scorers.numerals import SIGNS
from pytest_llmeval.scorers.numerals import Numeral
from pytest_llmeval.scorers.numerals import numerals
from pytest_llmeval.scorers.phrases import in_closing_tag
from pytest_llmeval.scorers.phrases import is_its_own
from pytest_llmeval.scorers.phrases import is_supposed
from pytest_llmeval.scorers.reply import from_the_end
from pytest_llmeval.scorers.reply import own_answer
from pytest_llmeval.scorers.reply import verdict
from pytest_llmeval.scorers.reply import what_is_wrong
from pytest_llmeval.scorers.wording import any_of
from pytest_llmeval.scorers.wording import literal

# Of equal rank the last one wins.
_RANKS = {Role.MARKED: 0, Role.BOXED: 1, Role.ANNOUNCED: 1, Role.BARE: 2, Role.SUPPOSED: 3}

_STATEMENTS = 20  # marks and announcements read, from the last
_NUMBERS = 5  # bare numbers listed, from the last
_STRETCH = 1 << 14  # characters before the last digit in which bare numbers are sought
_BEFORE = 160  # characters before an announcement that may qualify it
_REACH = 300  # characters behind an announcement in which its number begins

_MARK = re.compile(r"(?<!#)####(?!#)")
_HEADING = re.compile(r"\s{0,3}\d{1,2}[.)]\s+[^\W\d]")
_DIRECT = re.compile(rf"(?:[\s*_`\"'“‘~≈({{\[\\:=.{SIGNS}]|text|mathrm|approx|{CODES})*")
_ANNOUNCED = re.compile(
    literal(
        ("boxed", "fbox", *ANSWER_WORDS),
        ("\nA:", *(word for word in ANSWER_WORDS_UNSPACED if word[0] not in "选選")),
    )
)
_LINK = re.compile(
    r"(?:\s?\{|>|\s{0,3}(?:[:：=]"
    rf"|(?:[^\s.:：=!?。\d]+\s{{1,3}}){{0,8}}?(?:(?:{any_of(COPULAS)})(?!\w)|[=:：](?!\w))"
    r"|[^\s.:!?。\d]{0,12}?(?:是|为|為|は|은|는|:|：|=)"
    r"|(?=\s{0,3}[$€£]?\d)|\s\(arabic numerals\)\s(?:is)?)"
    r"[\s:：*]{0,6})",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|isn't|isn’t|nicht|pas|no|не|não|ليس)\b|不|n't")
_DENIAL = re.compile(rf"[\s*]{{0,4}}(?:{_NOT.pattern})")
_ASIDE = re.compile(
    r"(?<![-−–+*/×÷=≈^])[*_]{0,2}"
    rf"(?:[,،]?\s(?:{any_of(BECAUSE)})(?!\w)|,\s(?:as|which|not|where)\b"
    rf"|{any_of(BECAUSE_UNSPACED)}"
    # Brackets that close at the end of the statement.
    r"|\s?[(（](?<=\s\(|.（)(?=[^()（）\n]{0,300}[)）][\s.*_$。]{0,6}(?:\n|[.!?。](?:\s|$)|$)))"
)
_NEGATIVE = re.compile(
    rf"[\s*_$({{\[]{{0,6}}(?:(?:{any_of(MINUS)})\s{{1,2}}|[负負](?=\d)|(?<!\n)[-−–]\s(?=\d))",
    re.IGNORECASE,
)
# A worked solution with numbered steps follows, no number.
_STEPS = re.compile(
    r"\s{0,8}[*_#]{0,4}\s?(?:(?:Step|Schritt|Étape|Paso|Passo|Шаг|步骤|步驟|ステップ)\s?\d"
    r"|(?P<first>1[.)])[*_]{0,2}\s+[^\W\d])",
    re.IGNORECASE,
)
_BLANK = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"(?<!\bRs)(?<!\bkr)(?<!\bca)(?<!\bNo)[.!?。！？](?=\s|$)|\n")

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORD_VALUES = {word: number for number, word in enumerate(_SMALL)}
_WORD_VALUES |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}
_WORD_SCALES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "eighth": 8}
_PARTS |= {f"{name}s": part for name, part in _PARTS.items() if part > 2}
_WORD = re.compile(r"[a-z]+")


def number(item: Item, response: Response) -> Score:
    """Score the final number of the text against the gold number; no number is ``unparsed``.

    ``item.fields["language"]`` decides whether "1.234" has a decimal point.
    """
    fault = what_is_wrong(item, response)
    gold = extract_number(item.gold_label)
    if fault is None and gold is None:
        fault = f"the gold answer is no number: {item.gold_label[:60]!r}"
    if fault is not None or gold is None:
        return Score(Outcome.ERROR, error=fault)
    answer = explain_number(response.text or "", item.fields.get("language")).answer
    return verdict(answer, answer is not None and _equal(Decimal(answer), gold))


def extract_number(text: str, *, language: str | None = None) -> Decimal | None:
    """Return the final number of ``text``, or None; a percentage at face value. Never raises.

    ``language`` is the ISO 639-1 code of the text's language where it is known. It matters where
    three digits follow a single point: thousands in languages with a decimal comma.
    """
    answer = explain_number(text, language).answer
    return None if answer is None else Decimal(answer)


def explain_number(text: str, language: str | None = None) -> Extraction:
    """Return the candidates for the final number of ``text``, the best first; see extract_number.

    The last 20 marks and announcements and the last 5 bare numbers are listed. The answer is None
    for a statement of digits that are no number, such as a time.
    """
    reply = own_answer(text)
    if not reply:
        return Extraction("", ())
    comma = (language or "")[:2].lower() in DECIMAL_COMMA
    stated = list(_stated(reply, comma))
    supposed = [candidate for candidate in stated if candidate.role is Role.SUPPOSED]
    found = [*_marked(reply, comma), *stated, *_bare(reply, comma, supposed)]
    return Extraction(reply, tuple(sorted(found, key=lambda candidate: _RANKS[candidate.role])))


def numbers_equal(answer: str, gold: str, *, language: str | None = None) -> bool:
    """Return whether the final number of ``answer`` equals that of ``gold``.

    ``gold`` may be a whole GSM8K solution. A difference of less than 1e-9 (of the gold) is ignored
    only where ten or more decimals show that it comes from floating point.
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
    """The numbers directly behind ``####``, or behind the "=" of a calculation there."""
    for mark in islice(from_the_end(_MARK, text), _STATEMENTS):
        if _HEADING.match(text, mark.end()):
            continue
        line = _line_end(text, mark.end())
        first = next(numerals(text, mark.end(), line, comma=comma), None)
        if first is not None and _DIRECT.fullmatch(text, mark.end(), first.start):
            numeral = _result(text, mark.end(), line, comma) or first
            yield _candidate(numeral, Role.MARKED, 'behind "####"')


def _stated(text: str, comma: bool) -> Iterator[Candidate]:
    """The numbers of boxes and announcements, in digits or in words, the last first."""
    for word in islice(from_the_end(_ANNOUNCED, text), _STATEMENTS):
        if not is_its_own(text, word):
            continue
        said = word.end() - word.group().endswith(":")  # the colon of "A:" is the link
        link = _LINK.match(text, said, said + 120)
        if link is None or _NOT.search(link.group()) or in_closing_tag(text, word.start()):
            continue
        start = link.end()
        if _DENIAL.match(text, start) or _steps_follow(text, said, start):
            continue
        boxed = link.group().strip() == "{"
        end = _brace_end(text, start) if boxed else _clause_end(text, start)
        numeral = _of_statement(text, start, end, comma)
        if numeral is None:
            continue
        announcement = " ".join(text[word.start() : start].split())
        if is_supposed(text[max(0, word.start() - _BEFORE) : start]):
            yield _candidate(numeral, Role.SUPPOSED, f'behind "{announcement}", of another case')
        elif boxed:
            yield _candidate(numeral, Role.BOXED, f"in \\{word.group()}{{…}}")
        else:
            yield _candidate(numeral, Role.ANNOUNCED, f'behind "{announcement}"')


def _bare(text: str, comma: bool, supposed: Sequence[Candidate]) -> Iterator[Candidate]:
    """The last numbers of the text, the last first; not those of a supposed statement."""
    digit = next(from_the_end(DIGIT, text), None)
    if digit is None:
        return
    start = max(0, digit.end() - _STRETCH)
    found = numerals(text, start, comma=comma)
    # The first numeral of a stretch may have begun before it.
    whole = islice(found, 1, None) if start else found
    kept = (
        numeral
        for numeral in whole
        if numeral.value is not None
        and not any(other.start <= numeral.start < other.end for other in supposed)
    )
    for place, numeral in enumerate(reversed(deque(kept, _NUMBERS))):
        rule = "an earlier number of the text" if place else "the last number of the text"
        yield _candidate(numeral, Role.BARE, rule)


def _of_statement(text: str, start: int, end: int, comma: bool) -> Numeral | None:
    """The number of a statement in ``text[start:end]``, in digits or in words."""
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
    """The number of a statement: the result of its calculation, else the first.

    A reason or a remark behind it ("12, because 3 × 3 = 9 is too few") is another calculation.
    """
    for aside in _ASIDE.finditer(text, start, end):
        if DIGIT.search(text, start, aside.start()):
            end = aside.start()
            break
    equals = max(text.rfind(sign, start, end) for sign in "=≈")
    first = next(numerals(text, start, end, comma=comma), None)
    return next(numerals(text, equals + 1, end, comma=comma), first) if equals >= 0 else first


def _steps_follow(text: str, said: int, start: int) -> bool:
    """Whether steps begin at ``start``, behind an announcement that ends at ``said``."""
    steps = _STEPS.match(text, start)
    return steps is not None and (not steps["first"] or "\n" in text[said : steps.start("first")])


def _in_words(text: str) -> Decimal | None:
    """The first English number written in words, such as "one hundred and eighty"."""
    total = part = 0
    seen = False
    words = _WORD.findall(text.lower())
    for place, word in enumerate(words):
        if word in _WORD_VALUES:
            part += _WORD_VALUES[word]
        elif seen and word == "hundred":
            part *= 100
        elif seen and word in _WORD_SCALES:
            total, part = total + part * _WORD_SCALES[word], 0
        elif not (seen and word == "and"):
            if seen:
                return _with_part(Decimal(total + part), words[place - 1 : place + 2])
            continue
        seen = True
    return Decimal(total + part) if seen else None


def _with_part(value: Decimal, words: Sequence[str]) -> Decimal:
    """A number with the part named behind it: two "and a half", three "quarters".

    ``words`` begin with the last one of the number.
    """
    # "twenty-fifth" has no part.
    if words[1] in _PARTS and words[0] != "and" and (value == 1) != words[1].endswith("s"):
        return value / _PARTS[words[1]]
    if words[:2] == ["and", "a"] and words[-1] in _PARTS:
        return value + Decimal(1) / _PARTS[words[-1]]
    return value


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + _REACH)
    return min(len(text), start + _REACH) if end < 0 else end


def _clause_end(text: str, start: int) -> int:
    """The end of the sentence that begins at ``start``, blank lines before it left out."""
    blank = _BLANK.match(text, start, start + _REACH)
    start = blank.end() if blank else start
    end = _SENTENCE_END.search(text, start, start + _REACH)
    return min(len(text), start + _REACH) if end is None else end.start()


def _brace_end(text: str, start: int) -> int:
    depth = 1
    for position in range(start, min(len(text), start + _REACH)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return min(len(text), start + _REACH)
