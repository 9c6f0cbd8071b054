r"""Numerals in text and their values.

A numeral is read as a whole or not at all. Digits and the separators between them form a run, which
is a number if it has one of a few shapes; otherwise it is a date, a time, a version or a list. A
single comma is a decimal comma unless exactly three digits follow (``3,75``, ``1,234``); a single
point is a decimal point, except before three digits in a language with a decimal comma.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context
from decimal import Decimal
from unicodedata import normalize

from pytest_llmeval.scorers.normalization import alternation

_LONGEST = 400  # digits of a number
_LONGEST_RUN = 2000  # characters of a number with its separators
_EXACT = Context(prec=2 * _LONGEST)

_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
DIGIT = re.compile(rf"[\d{_VULGAR}]")
CODES = "USD|EUR|GBP|INR|RMB|CNY|JPY|CHF|US|Rs|RM|kr"  # written directly before digits
SIGNS = "$€£¥₹₽₩฿₦"
_CURRENCY = rf"(?:(?:{CODES})?\\?[{SIGNS}]|(?:{CODES})\.?)"
_LETTER = r"A-Za-z\u00b5\u00c0-\u052f"  # of scripts with units and exponents next to digits

# Power of ten → its words.
_WORDS = {
    2: "hundred hundert",
    3: "thousand tausend tsd duizend tusen tusind mille mila mil тыс тысяча тысячи тысяч nghìn ngàn"
    " ribu tys ألف آلاف هزار हज़ार हजार হাজার వేలు వేల",
    5: "lakh lakhs लाख লাখ লক্ষ లక్షలు లక్షల",
    6: "million millions millionen mio mln millón millones milhão milhões milione milioni miljoen"
    " miljoner миллион миллиона миллионов млн triệu juta مليون ملايين میلیون",
    7: "crore crores करोड़ কোটি కోట్లు కోట్ల",
    9: "billion billions milliard milliards milliarde milliarden mrd miliardo miliardi miljard"
    " bilhão bilhões миллиард миллиарда миллиардов млрд tỷ miliar مليار میلیارد",
    12: "trillion trillions billionen billones trilhão trilhões триллион триллионов трлн",
}
_SCALES = {word: power for power, words in _WORDS.items() for word in words.split()}
# Without spaces around them; a small one may precede a large one.
_SMALL = {"百": 2, "백": 2, "千": 3, "천": 3}
_LARGE = {"万": 4, "萬": 4, "만": 4, "億": 8, "亿": 8, "억": 8, "兆": 12, "조": 12}
_UNSPACED = _SMALL | _LARGE | {a + b: _SMALL[a] + _LARGE[b] for a in _SMALL for b in _LARGE}
_POWERS = _SCALES | _UNSPACED
_SCALE = (
    rf"(?:(?i:{alternation(_SCALES)})(?![^\W_])"
    # Not in 千克 (kilogram), 百分点 (percentage point), 兆字节 (megabyte).
    rf"|(?:{alternation(_UNSPACED)})(?![克米瓦卡焦帕赫字分科]))"
)

# Marks between digits: a comma, a point, one that only separates groups (written ' below), others.
_KINDS = {r",\!": ",", "{,}": ",", "،": ",", "．": ".", "{.}": "."}
_KINDS |= {mark: mark for mark in ",.٫:h~"}  # 12h30
_GROUP_MARK = (
    r"[\ \u00a0\u2002-\u200a\u202f'’‘´_٬，]|\{?\\[,;:!\ ]\}?|&(?:nbsp|thinsp|\#160|\#8239);"
)
# A space only between groups of three digits: not in 2024 100, 0.5 100.
_MARK = (
    rf"(?:{alternation(set(_KINDS) - {'~'})}|~(?=\d{{3}}(?!\d))"
    rf"|(?<!\d{{4}})(?<!\b0)(?<![.,٫]\d)(?<![.,٫]\d\d)"
    rf"(?:{_GROUP_MARK})(?=\d{{3}}(?!\d|/\d{{3}})))"
)
_MARKS = re.compile(_MARK, re.VERBOSE)
_RUN = rf"(?:\d+|(?<![{_LETTER}\d_.])\.\d+)(?:{_MARK}\d+)*"
_HEAD = r"[1-9]\d{0,2}"
_BLANKS, _COMMAS, _POINTS = (rf"{_HEAD}(?:{mark}\d{{3}})+" for mark in ("'", ",", r"\."))
_LAKHS = r"[1-9]\d?(?:,\d\d)+,\d{3}"
_POINTED = rf"(?:\d*|{_BLANKS}|{_COMMAS}|{_LAKHS})(?:[.٫](?P<a>\d+|\d{{3}}(?:'\d{{3}})+))?"
_THOUSANDS = rf"(?:{_BLANKS}|{_POINTS})(?:[,٫](?P<b>\d+))?"
_DECIMAL_COMMA = r"(?:\d{1,3},(?!\d{3}\Z)|0,|\d{4,},(?!\d{3}))(?P<c>\d+)"
# The decimals are a group; of two possible readings the first is used. Without a language, 1234,567
# may also be a list.
_SHAPES = {
    False: re.compile(rf"{_POINTED}|{_THOUSANDS}|{_DECIMAL_COMMA}"),
    True: re.compile(rf"{_THOUSANDS}|{_POINTED}|{_DECIMAL_COMMA}|\d+,(?P<d>\d+)"),
}

_EXPONENT = r"[-−]?\d{1,3}(?:\.\d+)?(?!\d)"
_RAISED = rf"(?:\ ?(?:\^|\*\*)\ ?\{{?\ ?{_EXPONENT}\ ?\}}?|⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}})"
_PART = r"(?:\{[^{}]{1,60}\}|\d)"
_FRACTION = rf"(?:\\[dt]?frac\ ?{_PART}\ ?{_PART}|[{_VULGAR}])"
_NUMERAL = re.compile(
    rf"""
    (?P<sign>(?:(?<![{_LETTER}\d_)\]}}.%—])[-−–—‐‑‒﹣－]|(?<=[=≈]\ )[-−–]\ )(?:{_CURRENCY}\ ?)?
       (?=[.]?\d|\\[dt]?frac|[{_VULGAR}]))?
    (?:(?P<fraction>{_FRACTION})
      |(?P<pair>(?:(?<=[(\[])|(?<=[(\[][-−])|(?<=\\\{{))\d+,\d\d?(?=(?:\\right)?[)\]]|\\\}}))
      |(?P<run>{_RUN})
       (?:[eE](?P<e>[-+−]?\d{{1,3}})(?!\w)
         |\ ?(?:×|\\times|\*|x|·|⋅|\\cdot)\ ?10(?P<power>{_RAISED})
         |(?!\*|\ )(?P<raised>{_RAISED}))?
       (?:(?P<none>(?:/\d+){{2,}}|(?:[-–‐‑]\d[\d.,]*){{2,}}|\)\ ?\d{{3}}-\d{{4}}(?!\d))
         |\ ?[/⁄]\ ?(?P<divisor>{_RUN})
         |(?P<mixed>\ \d{{1,3}}[/⁄]\d{{1,4}}(?!\d)|\ ?{_FRACTION}))?
       (?:[-\ \u00a0\u202f]?(?:\\text\{{\ ?)?(?P<scale>{_SCALE})
         (?P<rest>(?:\ ?\d[\d.,]*\ ?{_SCALE}){{0,3}}
           (?:(?<=[{"".join(_LARGE | _SMALL)}])(?:\d{{1,4}}|\d,\d{{3}}|\ \d{{3,4}})(?![\d.,]*\d))?))?)
    """,
    re.VERBOSE,
)
_RATIO = re.compile(
    rf"\ ?(?:\\[dt]?frac)?\ ?\{{?\ ?([-−]?)({_RUN})\ ?\}}?\ ?[/⁄]?\ ?\{{?\ ?({_RUN})\ ?\}}?",
    re.VERBOSE,
)
_INTEGER = re.compile(r"[-−]?\d+(?:\.\d+)?")
_BESIDE = [*CODES.split("|"), r"\\times", r"\\cdot", r"\\approx", "sterling", "euro", r"\\pounds"]
# Digits directly after one of these are part of a name, an exponent or an index.
_NAME = re.compile(
    rf"(?:[{_LETTER}_^]{''.join(f'(?<!{code})' for code in _BESIDE)}|[A-Za-z]-|[\^_]\{{)\Z"
)


@dataclass(frozen=True, slots=True)
class Numeral:
    """Numeral at ``text[start:end]``; ``value`` is None for digits that are not a number."""

    value: Decimal | None
    start: int
    end: int


def numerals(
    text: str, start: int = 0, end: int | None = None, *, comma: bool = False
) -> Iterator[Numeral]:
    """Yield the numerals that begin in ``text[start:end]``, in order.

    ``comma``: the text is in a language with a decimal comma. The time is linear in the text.
    """
    end = len(text) if end is None else end
    for match in _NUMERAL.finditer(text, start, min(len(text), end + 2 * _LONGEST_RUN)):
        if match.start() >= end:
            break
        if not _NAME.search(text, max(0, match.start() - 3), match.start()):
            yield Numeral(_value(match, comma), match.start(), match.end())


def _value(match: re.Match[str], comma: bool) -> Decimal | None:
    try:
        value = _unsigned(match, comma)
    except (ValueError, ArithmeticError):
        return None
    return value.copy_negate() if match["sign"] and value else value


def _unsigned(match: re.Match[str], comma: bool) -> Decimal:
    """Return the value without its sign; raises ValueError or ArithmeticError if it is not a number."""
    if match["fraction"]:
        return _ratio(match["fraction"], comma)
    if match["none"] or (match["pair"] and not comma):
        raise ValueError("several numbers")
    value = _of_run(match["pair"] or match["run"], comma)
    if match["e"] or match["power"]:
        value = value.scaleb(_exponent(match["e"] or match["power"]), _EXACT)
    elif match["raised"]:
        value = _power(value, _exponent(match["raised"]))
    if match["divisor"]:
        value /= _of_run(match["divisor"], comma)
    elif match["mixed"]:
        value += _ratio(match["mixed"], comma)
    if match["scale"]:
        scale = _POWERS[match["scale"].casefold()]
        rest = sum(numeral.value or 0 for numeral in numerals(match["rest"], comma=comma))
        if rest >= 10**scale:
            raise ValueError("several numbers")
        value = _EXACT.add(value.scaleb(scale, _EXACT), rest)
    return value


def _of_run(run: str, comma: bool) -> Decimal:
    if len(run) > _LONGEST_RUN:
        raise ValueError("too long")
    plain = _MARKS.sub(lambda mark: _KINDS.get(mark[0], "'"), run.replace("~0", "'0"))
    if not plain.isascii():
        plain = re.sub(r"\d", lambda digit: str(int(digit[0])), plain)
    shape = _SHAPES[comma].fullmatch(plain)
    if shape is None:
        raise ValueError("not a number")
    decimals = shape[shape.lastgroup] if shape.lastgroup else ""
    digits = [re.sub(r"\D", "", part) for part in (plain[: len(plain) - len(decimals)], decimals)]
    if sum(map(len, digits)) > _LONGEST:
        raise ValueError("too long")
    return Decimal(".".join(digits))


def _ratio(text: str, comma: bool) -> Decimal:
    match = _RATIO.fullmatch(normalize("NFKC", text))
    if match is None:
        raise ValueError("numerator or denominator is not a number")
    value = _of_run(match[2], comma) / _of_run(match[3], comma)
    return -value if match[1] else value


def _exponent(text: str) -> int:
    return int(_INTEGER.findall(normalize("NFKC", text))[0].replace("−", "-"))


def _power(base: Decimal, exponent: int) -> Decimal:
    """Return the power, exact for exponents from 0; raises ValueError for too many digits."""
    if len(base.as_tuple().digits) * abs(exponent) > _LONGEST:
        raise ValueError("too long")
    value = _EXACT.power(base, abs(exponent))
    return value if exponent >= 0 else 1 / value
