"""Grammar of statements: how replies announce, deny and hedge an answer in any language.

The rules are patterns over word classes (``Tokens.classes``); the first line of ``languages.toml``
lists the letters. A language is only a row in that file. All rules read a bounded number of tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pytest_llmeval.scorers.answer_words import COPULAS
from pytest_llmeval.scorers.answer_words import COPULAS_UNSPACED
from pytest_llmeval.scorers.choice.tokens import Tokens
from pytest_llmeval.scorers.choice.tokens import lex
from pytest_llmeval.scorers.normalization import alternation

How = Literal["boxed", "colon", "copula", "last", "loose"]
Called = Literal["the answer", "correct", "concluded"]

_BACK = 48  # tokens before a label that are read
_AHEAD = 40

_LINK = "[Vvz:-]"
_GAP = "[^XWQx.:;?¶]"  # tokens between "answer" and "is"
_TAIL = "[,mezSVDdTCANOJstlE¶~]{0,8}:?[¶~]{0,2}$"
_STATED = (
    # the answer … is (most likely) …; answer: …; the correct statement … is …
    rf"(?P<noun>(?:(?:N|[CA]J){_GAP}{{0,9}}?|(?<!E)[Os](?:(?!L){_GAP}){{0,9}}?|(?:^|(?<=[.~¶]))C(?=:))"
    rf"{_LINK}[:-]?{_TAIL})"
    # the answer B
    r"|(?P<next>NO?[¶~]{0,2}$)"
    # I choose …; choose …
    rf"|(?P<verb>(?:[IDdT]{_GAP}{{0,3}}?|(?:^|(?<=[.,:;?¶~]))T?)P{_TAIL})"
    # it must be …; therefore …
    rf"|(?P<loose>(?:[Sb][Dd]V|[zTl]){_TAIL})"
)
# In other languages also with words in no column, and with "is" before "answer".
_FOREIGN = (
    rf"|(?P<last>(?:N|[CA]J|(?<!E)[Os]|C){_GAP}{{0,9}}?{_LINK}[^XWQNx.;?¶L]{{0,4}}$"
    r"|V[mwT]{0,2}[CA]?N[CA]?O?$)"
)
# Without "is".
_BARE = r"|(?P<bare>N[^XWQx.;?bLr]{0,6}$|[CP][mwV:-]{0,2}O?[V:]?$)"
_RULES = [re.compile(_STATED + rule) for rule in ("", _FOREIGN, _FOREIGN + _BARE)]  # by reach
_HOW: dict[str, How] = {"last": "last", "bare": "last", "next": "last", "loose": "loose"}
_UNSURE = re.compile(r"(?:Q|XH|X(?:S|m?U)|[Wx][Sm])[^bX.,:;?]{0,3}$")
# Other people's or earlier opinions: "many think that the answer is", "I thought it was".
_HELD = re.compile(r"(?:[eJ][^.,:;?¶~L]{0,4}[HhP]|I[^.,:;?¶~]{0,2}h)[SmCANOJl]{0,5}$|e(?=d)$")
# "Wrong answer", "don't choose".
_WRONG = re.compile(r"(?:[WX]|Ww)$")
# "C: the right answer", which another label may follow.
_SAID_OF = re.compile(r"L[Os]?[Vvz:|-]{0,2}[mezACtTw]{0,4}$")
# "If it were hotter", "had it been": not a premise of this question.
_CONTRARY = re.compile(r"(?:Q[^.?;¶]{0,8}[cv]|[cv][mSI])[^.?;¶T]*$")
_PREMISE = re.compile(rf"Q[^.?;¶]*$|{_CONTRARY.pattern}")


@dataclass(frozen=True, slots=True)
class Announcement:
    """Tokens that announce an answer."""

    how: How
    """Strength: ``last`` and ``loose`` count only if the clause ends after the answer."""
    start: int
    """First token."""
    supposed: bool
    """True if it would be the answer in a different case."""


def announcement(tokens: Tokens, end: int) -> Announcement | None:
    """Return the announcement of the token ``end``, unless doubted, another's, or called wrong."""
    begin = max(0, end - _BACK)
    classes = tokens.classes[begin:end]
    box = re.search(r"B[NOV:]{0,3}$", classes)
    if box:
        return Announcement("boxed", begin + box.start(), False)
    rule = _RULES[tokens.lexicon.reach]
    match = rule.search(classes)
    if match is None or _UNSURE.search(classes, 0, match.start()):
        return None
    kind, start = match.lastgroup or "", match.start()
    of_other_label = kind in ("next", "bare") and _SAID_OF.search(classes, 0, start)
    while later := rule.search(classes, start + 1):
        start = later.start()
    if of_other_label or not _is_own(classes, start):
        return None
    colon = kind == "noun" and tokens.text[tokens.starts[end - 1]] in ":：="
    how: How = "colon" if colon else _HOW.get(kind, "copula")
    return Announcement(how, begin + match.start(), _is_supposed(classes, match))


def _is_own(classes: str, start: int) -> bool:
    """Return True unless the answer is another's, an abandoned one, or called wrong."""
    before = classes[:start]
    if _HELD.search(before) or (before.endswith("e") and classes[start : start + 1] == "d"):
        return False
    return classes[start : start + 1] not in "NP" or _WRONG.search(before) is None


def _is_supposed(classes: str, match: re.Match[str]) -> bool:
    premise = _PREMISE if "d" in match.group() and match["loose"] else _CONTRARY
    return premise.search(classes, 0, match.start()) is not None


def is_supposed(tokens: Tokens, end: int) -> bool:
    """Return True if the answer announced before the token ``end`` applies to a different case."""
    classes = tokens.classes[max(0, end - _BACK) : end]
    match = _RULES[tokens.lexicon.reach].search(classes)
    return match is not None and _is_supposed(classes, match)


def is_assertion(tokens: Tokens, number: int) -> bool:
    """Return True unless the announcement that begins with this token is doubted or another's."""
    classes = tokens.classes[max(0, number - _BACK) : number + 1]
    return _is_own(classes, len(classes) - 1) and not _UNSURE.search(classes[:-1])


# After a label. The first of several rules applies to every reply, the others by reach.

_FORMULA = re.compile(
    r"[\s)}\]$]{0,6}(?:[=^+>·×≤≥≈]|<(?![/|])|\\(?:cdot|times|cap|cup|in|to)\b)(?![>/])"
)
_BOX_AFTER = re.compile(r"[\s)\].:*$]{0,6}(?:\}|[.:)\]\\}][^{}]{0,3}[\s{\\(])")
_ENDS = r"(?:[.,;:?~¶|bT-]|$)"
_CLAUSE = [re.compile(rule + _ENDS) for rule in ("", "(?:[OsCJNVw]{0,2}|O[^XWQLrn?.]{0,4})")]
_DENIED = [re.compile(rule + "[XW]") for rule in ("[Os]?[VvDdy]{0,2}m?", "[Osw]?[VvDdymCNw]{0,3}")]
_IS = "[Os]?[Dd]?[Vv](?:mV)?"
_CALLED: dict[Called, list[re.Pattern[str]]] = {
    "the answer": [
        re.compile(rf"{_IS}[meACtTlU]{{1,7}}[NOs]"),
        re.compile(rf"{_IS}[mwCA]{{0,4}}N"),
        re.compile(r"[^XWQL.,;:?~¶rbnxN]{0,5}N(?![Vv]?X)"),
    ],
    "correct": [
        re.compile(rf"{_IS}[meATlS]{{0,5}}C(?![SQmVv]|b[mS]?X)"),
        re.compile(r"[Os]?[Vv][mwA]{0,3}C(?![Vv]?X)"),
        re.compile(r"[^XWQL.,;:?~¶rbnN]{0,4}C[VvmCtw]{0,2}(?:[.,;:?~¶|bT]|$)"),
    ],
}
_INVERTED = re.compile("[Vv]L[mwCA]{0,4}[NC]")  # "daher ist C die richtige Antwort"
_QUESTION = re.compile(r"[^.;~¶]{0,12}\?")
# Denied, supposed, or one of several: "not B", "A or B", "A, B".
_NOT_SAID = re.compile(
    r"(?:[XQ][wmVHD]{0,2}[OsNJSm]?|L[^.;:?~¶WC]{0,8}r[mO]{0,2}|LO?[,/n]{1,2}[mO]{0,2})$"
)
_CONCLUDED = re.compile("T,?m?[Os]?$")


def is_answer(tokens: Tokens, number: int, behind: int, how: How) -> bool:
    """Return True if the tokens after an announced label confirm that it is an answer.

    ``behind``: the token after the label, or after the text of its option if that follows.
    """
    classes, text, end = tokens.classes, tokens.text, tokens.ends[number]
    if _FORMULA.match(text, end) or (how == "boxed" and not _BOX_AFTER.match(text, end)):
        return False
    if how != "colon" and classes[behind : behind + 1] == "?":
        return False
    if behind > number + 1:
        return True
    foreign = tokens.lexicon.reach > 0
    if _DENIED[foreign].match(classes, behind) or _is_a_word(tokens, number, how):
        return False
    return how not in ("loose", "last") or bool(_CLAUSE[foreign].match(classes, behind))


def _is_a_word(tokens: Tokens, number: int, how: How) -> bool:
    """Return True if the letter is a word of its language ("A metal", "I think"), not a label."""
    text, start, end = tokens.text, tokens.starts[number], tokens.ends[number]
    if text[start:end] in ("A", "I"):
        goes_on = "bnrVXQ" + "OCWN" * (tokens.lexicon.reach > 0)
        behind = tokens.classes[number + 1 : number + 2]
        return behind.isalpha() and behind not in goes_on and text[end : end + 1] in " \t"
    # "The answer is a" may have been cut off before its noun.
    cut_off = not text[end:].strip() and text[start - 1 : start].isspace()
    return text[start:end] == "a" and how != "colon" and cut_off


def label_verdict(tokens: Tokens, number: int) -> Called | None:
    """Return the verdict on the label at token ``number``, or None."""
    classes, end, reach = tokens.classes, number + 1, tokens.lexicon.reach
    if _NOT_SAID.search(classes, max(0, number - 12), number) or _QUESTION.match(classes, end):
        return None
    for what, rules in _CALLED.items():
        if any(rule.match(classes, end, end + _AHEAD) for rule in rules[: reach + 1]):
            concluded = what == "correct" and _CONCLUDED.search(classes, max(0, number - 8), number)
            return "concluded" if concluded else what
    return "correct" if reach and number and _INVERTED.match(classes, number - 1) else None


# A row of a list or table: its beginning and its verdict.
_ROW_BEFORE = re.compile(r"(?:^|[~¶|.;,CWtXx:])[nm]?O?$")
_ROW_AFTER = re.compile(r"[*_]{0,3}[)\].:：）】．]|[*_]{0,3}\s{0,2}(?:\||[–—-]\s)")
_VERDICT_OF_A_ROW = re.compile(
    r"(?P<wrong>X[mwVvA]{0,2}[Ct]|[Ct]w?[Vv]?X)|(?P<right>XW|^[:|.-]{0,2}m?N(?=[.,;:~¶|-]|$))"
    rf"|(?:^[:|.~¶-]{{0,3}}|^[Vv]|(?<=z)|(?<=[SOs][Vv]))(?:(?P<true>[Ct])|(?P<false>W))(?!\?)"
    rf"|(?P<word>[CW])(?=[NOsJ]?[VvmC]?(?!\?){_ENDS})"
    r"|(?:^|(?<=[:|.-]))(?P<never>[xX])(?=[.,;:~¶|-]|$)"
)
_PREDICATE = re.compile(r"[Vvz:|.,~¶OsJ-][maeA]{0,2}$")
_ROW = re.compile("(?:[:.-]?[~¶]{1,2})?([^~¶]*)")
_MARKED_ROW = re.compile(r"(?:^|[~¶|])[CW]$")


def opens_a_row(tokens: Tokens, number: int) -> bool:
    """Return True if the label at token ``number`` begins an entry of a list or a row of a table."""
    if not _ROW_BEFORE.search(tokens.classes, max(0, number - 4), number):
        return False
    behind = tokens.classes[number + 1 : number + 2]
    if _MARKED_ROW.search(tokens.classes, max(0, number - 2), number):
        return behind in tuple("~¶|.,:;") or not behind
    return bool(_ROW_AFTER.match(tokens.text, tokens.ends[number])) or behind in tuple(":CWtVv")


def row_verdict(tokens: Tokens, number: int, start: int, end: int) -> bool | None:
    """Return True if the row of the label calls its option correct, False for wrong, None for neither.

    ``start``: the token after the text of the option. ``end``: the next row, or the end.
    """
    if _MARKED_ROW.search(tokens.classes, max(0, number - 2), number):
        return tokens.classes[number - 1] == "C"
    # Text below the option's line counts if the line itself has none.
    lines = _ROW.search(tokens.classes, start, end)
    row, start = ("", end) if lines is None else (lines[1], lines.start(1))
    for match in _VERDICT_OF_A_ROW.finditer(row):
        at = start + match.start()
        if match.lastgroup != "word":
            return match.lastgroup in ("right", "true")
        marked = tokens.text[tokens.starts[at] - 1] in "([*_（【"
        if marked or tokens.lexicon.reach > 1 or _PREDICATE.search(row, 0, match.start()):
            return match.group() == "C"
    return None


# "The answer is A, B and C are wrong", "故选A，B、C均错误".
_THEY_ARE_WRONG = re.compile(r"(?:[,/nr]{1,2}L){0,9}[,O]?[Vvm]{0,3}w?[OVvmw]{0,2}[XW]")
_OTHER = re.compile(r"[;,/|nr]{1,2}[muNO]{0,2}(?=L)")
_GOES_ON = re.compile(r"[.,;:?~¶|/nrVvb-]|m?$")


def other_label(tokens: Tokens, end: int, behind: Callable[[int], int]) -> int | None:
    """Return the token of a second label that is offered from ``end`` on ("or B", ", C"), or None.

    ``behind``: token of a label → the token after it and the text of its option. Alternatives ("or
    B depending on …") may be followed by any text.
    """
    classes = tokens.classes
    joined = _OTHER.match(classes, end)
    if joined is None or _THEY_ARE_WRONG.match(classes, joined.end() + 1):
        return None
    other = joined.end()
    firm = re.search("[r/]", joined.group()) and tokens.text[tokens.starts[other]] not in "AI"
    return other if firm or _GOES_ON.match(classes, behind(other)) else None


# Texts of options

_REFUSED = re.compile("[Xxu]|I[VD]?[Xxu]")
_AFTER_WORD = re.compile(
    rf"(?:N{_GAP}{{0,9}}?|(?<!L)O[^XWQx.:;?¶L]{{0,9}}?|[CA]J)[Vvz:-][:-]?([meSVCANOl]{{0,4}}[¶~]*)"
    r"|B()|N()(?=[¶~])"
)
_BETWEEN = re.compile("[wmS]{1,3}")
_OPENING = re.compile(r"[\s*_`$\"“‘'({\[（「]{0,12}")


def announced_at(tokens: Tokens, number: int) -> list[int]:
    """Return the positions at which the answer announced by the token ``number`` may start.

    They are before and after filler words ("only I and II", "the iron"), in other languages also
    after words in no column, and directly after the token in languages without "is".
    """
    classes, reach = tokens.classes, tokens.lexicon.reach
    match = _AFTER_WORD.match(classes, number, number + 24)
    if not is_assertion(tokens, number):
        return []
    behind = [] if match is None else [match.start(match.lastindex or 1), match.end()]
    if reach and match is not None:
        between = _BETWEEN.match(classes, match.end())
        behind.extend(range(match.end() + 1, between.end() + 1 if between else 0))
    if reach > 1 and classes[number] == "N":
        behind.append(number + 1)
    openings = (_OPENING.match(tokens.text, tokens.ends[place - 1]) for place in behind)
    return list(dict.fromkeys(opening.end() for opening in openings if opening))


def is_refusal(tokens: Tokens, at: int) -> bool:
    """Return True if the text at this position is a refusal: "unknown", "I cannot …"."""
    return bool(_REFUSED.match(tokens.classes, bisect_left(tokens.starts, at)))


_LED_UP_TO = re.compile(r"[Vvzg:][mATSNa]*$")
_NOT_LED = re.compile(r"[XWQrx]|[eJ][^.,:;?]{0,4}[Hh]|I.{0,2}h")


def leads_up_to(before: str) -> bool:
    """Return True if the beginning of a sentence ends in "is" or similar, without doubt or denial."""
    classes = lex(before).classes
    return bool(_LED_UP_TO.search(classes)) and not _NOT_LED.search(classes)


COMPLETE = re.compile(r"[.!?。！？।][\s)\]*_`\"'”’}$]{0,8}$")
_COPULAS = (word for word in COPULAS + COPULAS_UNSPACED if not word.isascii())
_CLAUSE_BREAK = re.compile(
    r" ?(?:$|[.,;:!?。，、；！？।](?!\d)|[-–—] "
    r"|(?:because|since|as|which|and|but|due|so|not|rather|instead|or|is the)\b"
    rf"| ?(?:{alternation(_COPULAS)})(?!\w)|['’](?!s\b)\w{{1,4}}(?!\w))"
)


def clause_ends_at(plain: str, position: int) -> bool:
    """Return True if a clause of plain text ends at ``position``."""
    return bool(_CLAUSE_BREAK.match(plain, position))


def offers_text(rest: str, option: str) -> bool:
    """Return True if ``rest``, which follows an option's plain text, offers another option's text."""
    joined = re.match(r" ?(?:,|or|and|/|oder|ou|o|или|或)(?: either)? ?(?=\S)", rest)
    return bool(joined) and rest.startswith(option, joined.end() if joined else 0)
