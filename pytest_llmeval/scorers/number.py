"""Reading the final number out of generated text, and comparing numbers as numbers.

Which number: the one after the last ``####``; else the one after the last explicit statement
("the answer is", a box, "A:"); else the last. Before that, reasoning and everything from an
invented next question on is cut. Only bounded stretches of the text are read closely, so the
time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from decimal import DecimalException
from itertools import islice

from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Response
from pytest_llmeval.core import Score
from pytest_llmeval.scorers.languages import ANSWER_WORDS
from pytest_llmeval.scorers.languages import ANSWER_WORDS_UNSPACED
from pytest_llmeval.scorers.languages import BECAUSE
from pytest_llmeval.scorers.languages import BECAUSE_UNSPACED
from pytest_llmeval.scorers.languages import COPULAS
from pytest_llmeval.scorers.languages import DECIMAL_COMMA
from pytest_llmeval.scorers.languages import MINUS
from pytest_llmeval.scorers.phrases import in_closing_tag
from pytest_llmeval.scorers.phrases import is_its_own
from pytest_llmeval.scorers.phrases import is_supposed
from pytest_llmeval.scorers.reply import from_the_end
from pytest_llmeval.scorers.reply import own_answer
from pytest_llmeval.scorers.reply import verdict
from pytest_llmeval.scorers.reply import what_is_wrong
from pytest_llmeval.scorers.wording import any_of
from pytest_llmeval.scorers.wording import literal

_STEP = 1 << 12  # characters searched for a number at a time, from the end of the text
_STRETCHES = 16
_LONGEST = 400  # digits; more are no number that anybody asked for
_STATEMENTS = 20  # announcements looked at, from the last
_BEFORE = 160  # characters before an announcement that may say whose or what it is
_REACH = 300  # characters behind an announcement in which its number must stand

_VULGAR = {
    "½": (1, 2),
    "⅓": (1, 3),
    "⅔": (2, 3),
    "¼": (1, 4),
    "¾": (3, 4),
    "⅕": (1, 5),
    "⅖": (2, 5),
    "⅗": (3, 5),
    "⅘": (4, 5),
    "⅙": (1, 6),
    "⅛": (1, 8),
    "⅜": (3, 8),
    "⅝": (5, 8),
    "⅞": (7, 8),
}
_VULGAR_CHARS = "".join(_VULGAR)
_CURRENCY = r"(?:US|R|C|A|HK|NT)?[$€£¥₹₽₩฿₦]|(?:USD|EUR|GBP|INR|RMB|Rs\.?|RM|£)"
_GROUP = r"(?:,|\{,\}|\\,|\\!|'|’|_|\u00a0|\u2009|\u202f|٬|，)"
_NUMBER = re.compile(
    rf"""
    (?P<sign>(?<![A-Za-z\d_\u00c0-\u052f)\]}}.%])[-−–](?:\\?(?:{_CURRENCY})\ ?)?
       (?=\.?\d|\\[dt]?frac|[{_VULGAR_CHARS}]))?
    (?:(?P<frac>\\[dt]?frac\s?\{{\s?(?P<over>\d{{1,40}})\s?\}}\s?\{{\s?(?P<under>\d{{1,40}})\s?\}})
      |(?:(?<![A-Za-z_^\d])|(?<=Rs)|(?<=RM)|(?<=USD)|(?<=EUR)|(?<=GBP)|(?<=INR))
       (?<![A-Za-z]-)(?<!\^\{{)(?<!\d[.])
       (?P<digits>(?!0)\d{{1,3}}(?:{_GROUP}\d{{2,3}}){{0,20}}{_GROUP}\d{{3}}(?!\d)
         |(?!0)\d{{1,3}}(?:\.\d{{3}}){{2,20}}(?![.]?\d)|\d+|(?=\.\d))
       (?P<decimals>[.٫．]\d+)?
       (?:[eE](?P<exponent>[-+−]?\d{{1,3}})(?![\w])
         |\s?(?:×|\\times|\*|x)\s?10\s?\^\s?\{{?(?P<power>[-−]?\d{{1,3}})\}}?
         |\^\{{?(?P<raised>[-−]?\d{{1,3}})(?!\d)\}}?|(?P<superscript>[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}}))?
       (?P<slash>\s?[/⁄]\s?(?P<divisor>\d{{1,40}})(?![\d.,/]*\d))?
       (?P<mixed>\ (?P<part>\d{{1,3}})/(?P<whole>\d{{1,3}})(?![\d/])
         |\ ?\\[dt]?frac\{{(?P<texpart>\d{{1,3}})\}}\{{(?P<texwhole>\d{{1,3}})\}})?
       (?P<vulgar>[{_VULGAR_CHARS}])?
       (?P<scale>\s?(?:thousand|million|billion|trillion)\b
         |\s?(?:万|萬|만)(?P<rest>\d{{1,4}}(?!\d))?|\s?[亿億억])?
      |(?P<lone>[{_VULGAR_CHARS}]))
    """,
    re.VERBOSE,
)
# With a decimal comma: 1.234,5 and 1 234,5. Three digits behind a lone separator are thousands.
_NUMBER_COMMA = re.compile(
    _NUMBER.pattern.replace(_GROUP, r"(?:[.\ ]|" + _GROUP[3:]).replace(
        "[.٫．]", r"(?:,|\{,\}|[.٫．])"
    ),
    re.VERBOSE,
)
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "万": 4, "萬": 4, "만": 4}
_SCALES |= {"亿": 8, "億": 8, "억": 8}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SEPARATORS = re.compile(r"[^\d]+")

_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORD_VALUES = {word: number for number, word in enumerate(_SMALL)}
_WORD_VALUES |= {word: 10 * number for number, word in enumerate(_TENS, start=2)}
_WORD_SCALES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "eighth": 8}
_PARTS |= {f"{name}s": part for name, part in _PARTS.items() if part > 2}
_WORDS = re.compile(r"[a-z]+")

_MARK = re.compile(r"(?<!#)####(?!#)")
# Directly behind the mark, or behind the "=" of a calculation.
_HEADING = re.compile(r"\s{0,3}\d{1,2}[.)]\s+[^\W\d]")
_DECORATION = r"[\s*_`\"'“‘~≈({\[$\\:=]{0,12}"
_DIRECT = re.compile(
    rf"{_DECORATION}(?:text\{{|mathrm\{{|approx)?{_DECORATION}(?:{_CURRENCY})?\s?"
    r"(?=[-−–.]?[\d½¼¾⅓]|[-−–]?\\?\$|[-−–]?\\[dt]?frac)"
)
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
    # Brackets that close where the statement ends.
    r"|\s?[(（](?<=\s\(|.（)(?=[^()（）\n]{0,300}[)）][\s.*_$。]{0,6}(?:\n|[.!?。](?:\s|$)|$)))"
)
_NEGATIVE = re.compile(
    rf"[\s*_$({{\[]{{0,6}}(?:(?:{any_of(MINUS)})\s{{1,2}}|[负負](?=\d))", re.IGNORECASE
)
# A worked solution follows, no number: its steps are numbered.
_STEPS = re.compile(
    r"\s{0,8}[*_#]{0,4}\s?(?:(?:Step|Schritt|Étape|Paso|Passo|Шаг|步骤|步驟|ステップ)\s?\d"
    r"|(?P<first>1[.)])[*_]{0,2}\s+[^\W\d])",
    re.IGNORECASE,
)
_DIGIT = re.compile(rf"[\d{_VULGAR_CHARS}]")
_BLANK = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|\n")


def number(item: Item, response: Response) -> Score:
    """The final number of the text equals the gold number; no number is ``unparsed``.

    ``item.fields["language"]`` decides whether a comma may be a decimal comma.
    """
    fault = what_is_wrong(item, response)
    gold = extract_number(item.gold_label)
    if fault is None and gold is None:
        fault = f"the gold answer is no number: {item.gold_label[:60]!r}"
    if fault is not None or gold is None:
        return Score(Outcome.ERROR, error=fault)
    value = extract_number(response.text or "", language=item.fields.get("language"))
    if value is None:
        return verdict(None, False)
    return verdict(_written(value), _equal(value, gold))


def extract_number(text: str, *, language: str | None = None) -> Decimal | None:
    """The number that ``text`` ends up with, or None; a percentage at face value. Never raises.

    ``language`` (ISO 639-1) is that of the text where it is known: only then is a comma read as
    a decimal comma, and only in a language that has it.
    """
    reply = own_answer(text)
    if not reply:
        return None
    pattern = _NUMBER_COMMA if (language or "")[:2].lower() in DECIMAL_COMMA else _NUMBER
    for candidate in (_marked(reply, pattern), _stated(reply, pattern)):
        if candidate is not None:
            return candidate.value
    for found in _from_the_end(reply, pattern):
        return found.value
    return None


def numbers_equal(answer: str, gold: str, *, language: str | None = None) -> bool:
    """Whether the number that ``answer`` ends up with equals that of ``gold``.

    ``gold`` may be a whole GSM8K solution. Equal is equal: what differs by less than 1e-9 (of the
    gold) counts as equal only where ten or more decimals show that it comes from floating point.
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


def _written(value: Decimal) -> str:
    return str(value) if abs(value.adjusted()) > 40 else f"{value:f}"


@dataclass(frozen=True, slots=True)
class _Number:
    value: Decimal
    start: int
    end: int


def _read(match: re.Match[str]) -> _Number | None:
    """The value of a match of ``_NUMBER``; None where it is none (a zero below the line)."""
    try:
        value = _value(match)
    except (ValueError, ArithmeticError, DecimalException):
        return None
    if match["sign"]:
        value = value.copy_negate()  # not rounded, as -value would be
    return _Number(value, match.start(), match.end())


def _value(match: re.Match[str]) -> Decimal:
    if match["frac"]:
        return Decimal(match["over"]) / Decimal(match["under"])
    if match["lone"]:
        return _ratio(match["lone"])
    if len(match["digits"]) > _LONGEST or len(match["decimals"] or "") > _LONGEST:
        raise ValueError("too long")
    digits = _SEPARATORS.sub("", match["digits"]) or "0"
    decimals = match["decimals"]
    if decimals:
        digits += "." + _SEPARATORS.sub("", decimals)
    exponent = match["exponent"] or match["power"]
    if exponent:
        digits += "e" + exponent.replace("−", "-")
    value = Decimal(digits)
    raised = match["raised"] or (match["superscript"] or "").translate(_SUPERSCRIPTS)
    if raised:
        value = _power(value, int(raised.replace("−", "-")))
    if match["slash"]:
        value /= Decimal(match["divisor"])
    if match["mixed"]:
        part, whole = match["part"] or match["texpart"], match["whole"] or match["texwhole"]
        value += Decimal(part) / Decimal(whole)
    if match["vulgar"]:
        value += _ratio(match["vulgar"])
    if match["scale"]:
        word = re.sub(r"[\s\d]+", "", match["scale"])
        value = value * 10 ** _SCALES[word] + Decimal(match["rest"] or 0)
    return value or Decimal(0)  # there is no negative nought


def _power(base: Decimal, exponent: int) -> Decimal:
    """Exact for a whole exponent from 0, however many digits that takes (up to a limit)."""
    _, digits, places = base.as_tuple()
    assert isinstance(places, int)
    if len(digits) * abs(exponent) > _LONGEST:
        raise ValueError("too long")
    whole = int("".join(map(str, digits))) ** abs(exponent)
    value = Decimal(f"{whole}e{places * abs(exponent)}")
    return value if exponent >= 0 else 1 / value


def _ratio(char: str) -> Decimal:
    over, under = _VULGAR[char]
    return Decimal(over) / Decimal(under)


def _numbers(text: str, pattern: re.Pattern[str], start: int, end: int) -> Iterator[_Number]:
    for match in pattern.finditer(text, start, end):
        found = _read(match)
        if found is not None:
            yield found


def _marked(text: str, pattern: re.Pattern[str]) -> _Number | None:
    """The number after the last ``####`` that a number follows; headings are passed over."""
    position = len(text)
    for _ in range(_STATEMENTS):
        position = text.rfind("####", 0, position)
        if position < 0:
            return None
        if not _MARK.match(text, position) or (text[max(0, position - 1)] == "#" and position):
            continue
        start = position + 4
        if _HEADING.match(text, start):
            continue
        end = _line_end(text, start)
        if _DIRECT.match(text, start, end + 1):
            return _of_calculation(text, pattern, start, end)
    return None


def _stated(text: str, pattern: re.Pattern[str]) -> _Number | None:
    """The number of the last explicit statement, which may be written in words."""
    for match in islice(from_the_end(_ANNOUNCED, text), _STATEMENTS):
        if not is_its_own(text, match):
            continue
        said = match.end() - match.group().endswith(":")  # the colon of "A:" is the link
        link = _LINK.match(text, said, said + 120)
        if link is None or _NOT.search(link.group()) or in_closing_tag(text, match.start()):
            continue
        start = link.end()
        if _DENIAL.match(text, start) or _steps_follow(text, said, start):
            continue
        boxed = link.group().strip() == "{"
        end = _brace_end(text, start) if boxed else _clause_end(text, start)
        found = _of_statement(text, pattern, start, end)
        if found is None:
            continue
        if not is_supposed(text[max(0, match.start() - _BEFORE) : start]):
            return found
    return None


def _of_statement(text: str, pattern: re.Pattern[str], start: int, end: int) -> _Number | None:
    """The number that is stated from ``start`` on, in digits or in words."""
    negative = _NEGATIVE.match(text, start, end)
    start = negative.end() if negative else start
    found = _of_calculation(text, pattern, start, end)
    if found is None:
        words = _in_words(text[start:end])
        found = None if words is None else _Number(words, start, end)
    if negative is None or found is None:
        return found
    return _Number(found.value.copy_negate(), found.start, found.end)


def _steps_follow(text: str, said: int, start: int) -> bool:
    """Whether steps stand at ``start``, behind an announcement that ends at ``said``."""
    steps = _STEPS.match(text, start)
    return steps is not None and (not steps["first"] or "\n" in text[said : steps.start("first")])


def _in_words(text: str) -> Decimal | None:
    """The first English number written in words, such as "one hundred and eighty"."""
    total = part = 0
    seen = False
    words = _WORDS.findall(text.lower())
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
    """A number with what stands behind it: two "and a half", three "quarters".

    ``words`` from the one before.
    """
    # "twenty-fifth" is none.
    if words[1] in _PARTS and words[0] != "and" and (value == 1) != words[1].endswith("s"):
        return value / _PARTS[words[1]]
    if words[:2] == ["and", "a"] and words[-1] in _PARTS:
        return value + Decimal(1) / _PARTS[words[-1]]
    return value


def _of_calculation(text: str, pattern: re.Pattern[str], start: int, end: int) -> _Number | None:
    """The number that a statement gives: its result where it calculates, else the first.

    A reason or a remark behind it ("12, because 3 × 3 = 9 is too few") calculates something else.
    """
    for aside in _ASIDE.finditer(text, start, end):
        if _DIGIT.search(text, start, aside.start()):
            end = aside.start()
            break
    equals = max(text.rfind(sign, start, end) for sign in "=≈")
    if equals >= 0:
        for found in _numbers(text, pattern, equals + 1, end):
            return found
    return next(_numbers(text, pattern, start, end), None)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start, start + _REACH)
    return min(len(text), start + _REACH) if end < 0 else end


def _clause_end(text: str, start: int) -> int:
    """The end of the sentence that starts at ``start``, blank lines before it left out."""
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


def _from_the_end(text: str, pattern: re.Pattern[str]) -> Iterator[_Number]:
    """The numbers of the text, last first, from the last stretches that have any digit."""
    end = len(text)
    stretches = 0
    while end > 0 and stretches < _STRETCHES:
        start = max(0, end - _STEP)
        if _DIGIT.search(text, start, end) is None:
            end = start
            continue
        stretches += 1
        # A number that began further left is read where it begins.
        begin = max(0, start - _LONGEST)
        found = [
            number
            for number in _numbers(text, pattern, begin, min(len(text), end + _LONGEST))
            if start <= number.start < end or (begin == 0 and number.start < end)
        ]
        yield from reversed(found)
        end = start if begin else 0
