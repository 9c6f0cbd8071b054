"""A reply as a row of word classes, a letter for each token: what the grammar of statements reads.

With the labels A to D ``The answer isn't B.`` is ``mNXL.``. The classes are the columns of
``languages.toml``, so that one grammar serves every language. The time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pytest_llmeval.scorers.answer_words import LETTERS
from pytest_llmeval.scorers.answer_words import Lexicon
from pytest_llmeval.scorers.answer_words import languages_of
from pytest_llmeval.scorers.answer_words import lexicon
from pytest_llmeval.scorers.normalization import any_of

# Blanks, punctuation and symbols: what ends a word.
_SIGNS = (
    r"\x00-\x1f\s!-/:-@\[-`{-~\u00a0-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf×÷\u200b\u200e-\u2017\ufeff\u201a-\u203f"
    r"\u2041-\u20cf\u2190-\u2bff\u3000-\u3004\u3007-\u303f\u30fb\ufe30-\ufe4f\uff01-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65،؛؟۔٪-٭।॥։՝՜՞፡-፨"
)
# Written without blanks: Thai, Lao, Myanmar, Khmer; kana and Chinese characters.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005\u3006\u3040-\u30ff\u3400-\u9fff"
)
_CHAR = rf"[^{_SIGNS}{_UNSPACED}]"
_WORD = rf"(?!\d){_CHAR}+(?:['’‘ʼ‐-]{_CHAR}+)*"
_WORDS = re.compile(_WORD)
_MARKS = {
    **dict.fromkeys("!。！।॥։۔።", "."),
    **dict.fromkeys("？؟՞", "?"),
    **dict.fromkeys("：=→՝፡", ":"),
    **dict.fromkeys("；؛", ";"),
    **dict.fromkeys("，،、", ","),
    **dict.fromkeys("&+", "n"),
    **dict.fromkeys("✓✔✅☑", "C"),
    **dict.fromkeys("✗✘❌✖", "W"),
}
# What a letter beside which makes it none: "SB", "S.B", "S-B", "B's", "B-52", "B.Sc", "B=".
_LATIN = "A-Za-z0-9_\u00b5\u00c0-\u024f\u0370-\u052f"
# Signs that combine with a letter and are no letters to `re`.
_COMBINING = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
)
_CLAUSE_END = r"(?=[*_`$\"'’”}\])>\s]{0,6}(?:[)\],;:!?}。，、）」】।]|\.(?!\w)|\n|$|</|\\\)))"
_ENDING = r"(?:['’-]|:(?=[a-zäö]))[^\W\d_]{1,5}(?!\w)"  # of a letter: C'dir, C-ն, C:n
# Before a number, a root or a lone letter a dash is a minus; so are those in "is -x", "is - 5".
_DASH = r"[–—-]+(?![–—\d.\\√∞-]|\$[\d\\]|[a-z]\b)"
_MINUS = re.compile(r"\S| \.?\d")
_SKIPPED = (
    r"\\(?:text|math)\w{0,4}|\\(?:bf|rm|bm|boldsymbol|[lL]arge|huge|left|right|quad)"
    r"|</?(?!answer)[A-Za-z]{1,10}/?>|&(?:quot|apos|lt|gt|nbsp|#0?39|#x27|#34);"
)
_CHINESE = "零一二三四五六七八九十"
_COUNTED = re.compile(r"\s?(?:번|番|[项項号號])")


@dataclass(frozen=True, slots=True)
class Tokens:
    """``classes[n]`` is the class of the token at ``text[starts[n]:ends[n]]``.

    Besides the columns: L a label, # another number, B a box, w another word, . , : ; ? - / | as
    they are, ~ a line break, ¶ a new paragraph or item.
    """

    text: str
    classes: str
    starts: list[int]
    ends: list[int]
    labels: dict[int, str]  # by the number of the token
    lexicon: Lexicon


def lex(text: str, labels: str = "", texts: Container[str] = ()) -> Tokens:
    """The tokens of ``text``; "option 2" names a label unless 2 is one of the options' ``texts``."""
    words = lexicon(languages_of(set(_WORDS.findall(text)), text))
    pattern, meaning = _grammar(labels, words)
    classes: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    by_number: dict[int, str] = {}
    tables = {"sign": _MARKS, "known": words.unspaced, "phrase": words.phrases}
    for match in pattern.finditer(text):
        kind, said = match.lastgroup or "", match.group()
        start, end = match.span()
        before = classes[-1] if classes else ""
        symbol = _SYMBOLS.get(kind, "w")
        if kind == "word":
            symbol = words.class_of(said)
            article = words.article and before == "L" and text[starts[-1] : start] == "A "
            if article and symbol not in "VvmXnrb":  # "A resposta", "A helyes válasz"
                classes[-1] = "m"
                del by_number[len(classes) - 1]
        elif kind in tables:
            symbol = tables[kind].get(" ".join(said.lower().split()), said)
        elif kind == "letter":
            by_number[len(classes)] = meaning[said[0]]
        elif kind == "number" and 0 < (place := _place(said)) <= len(labels):
            if _COUNTED.match(text, end) or (before == "O" and said not in texts):
                symbol, by_number[len(classes)] = "L", labels[place - 1]
        elif kind == "char" and before == "w" and ends[-1] == start:
            ends[-1] = end
            continue
        elif kind == "skip" or (kind == "dash" and before == "V" and _MINUS.match(text, end)):
            continue
        classes.append(symbol)
        starts.append(start)
        ends.append(end)
    return Tokens(text, "".join(classes), starts, ends, by_number, words)


def _place(number: str) -> int:
    """The number that names an option, from 1; 0 for one that can name none."""
    return int(number) if number.isdecimal() and len(number) < 3 else _CHINESE.find(number)


_KINDS = ("paragraph", "line", "close", "tag", "box", "dash", "letter", "number")
_SYMBOLS = dict(zip(_KINDS, "¶~.:B-L#", strict=True))


@lru_cache(maxsize=64)
def _meaning(labels: str) -> tuple[Mapping[str, str], str, str]:
    """Which label each form of a label is; the capitals and the small letters among the forms."""
    meaning = {label: label for label in labels}
    for letter, label in (
        (a, b) for letters in LETTERS for a, b in zip(letters, labels, strict=False)
    ):
        if letter != " ":
            meaning.setdefault(letter, label)
    small = {label.lower(): label for label in labels if label.lower() not in meaning}
    meaning.update(small)
    large = {label.upper(): label for label in labels if label.upper() not in meaning}
    meaning.update(large)
    return meaning, labels + "".join(large), "".join(small)


@lru_cache(maxsize=256)
def _grammar(labels: str, words: Lexicon) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """The pattern of a token, and which label each form of a label is."""
    meaning, capitals, small = _meaning(labels)
    parts = {
        "paragraph": r"\n[ \t]{0,8}\n\s*(?:[*•-][ \t])?|\n[ \t]{0,8}[*•-][ \t]|【(?=[^\W】]{2,6}】)",
        "line": r"\n",
        "close": r"</\w{0,20}answer>",
        "tag": r"(?<=answer)>",
        "box": r"\\f?box(?:ed)?",
        "skip": _SKIPPED,
        "phrase": _phrase(words.phrases),
        "letter": _letter(capitals, small, meaning, words.ending),
        "word": _WORD,
        "known": any_of(words.unspaced),
        "number": r"\d+(?:[.,]\d+)*|(?<=第)[一二三四五六七八九十](?!\w*十)",
        "char": f"[{_UNSPACED}]",
        "dash": _DASH,
        "sign": r"[.,:;?/|!。！।॥։۔።？؟՞：=→՝፡；؛，،、&+✓✔✅☑✗✘❌✖]",
    }
    groups = (rf"(?P<{name}>{part})" for name, part in parts.items() if part)
    return re.compile("|".join(groups), re.DOTALL), meaning


def _phrase(phrases: Iterable[str]) -> str:
    firsts = "".join(sorted({char for p in phrases for char in (p[0], p[0].upper())}))
    words = any_of(phrases).replace(r"\ ", r"\s{1,3}")
    return rf"(?<!\w)(?=[{re.escape(firsts)}])(?i:{words})(?!\w)"


def _letter(capitals: str, small: str, forms: Iterable[str], ending: bool) -> str:
    """The pattern of a label that stands by itself.

    A capital is one that is no part of a word; a small letter counts only where a clause ends
    behind it. The other forms are letters of other scripts.
    """
    if not capitals:
        return ""
    tail = rf"{_ENDING}|(?![{_LATIN}]" if ending else rf"(?![{_LATIN}]"
    alone = (
        rf"(?<![{_LATIN}].)(?<![A-Za-z]['’].)(?<![A-Za-z]\..)(?<![a-z]-.)(?<![~¬].)"
        rf"(?:{tail}|['’]\w|[-–]\w|\.[A-Za-z]\b|\.\d|\ ?[=^+#]))"
    )
    others = [form for form in forms if form not in capitals and form not in small]
    signs = [form for form in others if "\u2460" <= form <= "\u24ff"]  # circled
    latin = [form for form in others if form > "\uff00"]  # full-width, bold
    unspaced = [form for form in others if "\u3000" <= form <= "\ud7ff"]
    spaced = [form for form in others if form not in (*signs, *latin, *unspaced)]
    parts = [
        rf"[{re.escape(capitals + ''.join(latin))}]{alone}",
        rf"[{re.escape(small)}](?!\s?[{_LATIN}]){alone}{_CLAUSE_END}" if small else "",
        rf"[{re.escape(''.join(signs))}]" if signs else "",
        rf"[{re.escape(''.join(spaced))}](?<![^\W_].)(?<![{_COMBINING}].)(?![^\W_]|[{_COMBINING}])",
        rf"[{re.escape(''.join(unspaced))}](?<![A-Za-z\uac00-\ud7a3].)(?<![A-Za-z][)\]*」】].)(?<![A-Za-z]\*\*.)"
        r"(?:(?![^\W_])|(?=です|である|입니다|이다|[项項]))",
    ]
    every = re.escape("".join((*capitals, *small, *others)))
    return rf"(?=[{every}])(?:{'|'.join(filter(None, parts))})"
