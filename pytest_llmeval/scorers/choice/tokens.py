"""Tokens of a reply as a string of word classes, one letter per token, for the grammar of statements.

With the labels A to D, ``The answer isn't B.`` is ``mNXL.``. The classes are the columns of
``languages.toml``, so that one grammar covers all languages. The time is linear in the text.
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
from pytest_llmeval.scorers.normalization import alternation

# White space, punctuation and symbols, which end a word.
_SIGNS = (
    r"\x00-\x1f\s!-/:-@\[-`{-~\u00a0-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf×÷\u200b\u200e-\u2017\ufeff\u201a-\u203f"
    r"\u2041-\u20cf\u2190-\u2bff\u3000-\u3004\u3007-\u303f\u30fb\ufe30-\ufe4f\uff01-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65،؛؟۔٪-٭।॥։՝՜՞፡-፨"
)
# Scripts without spaces: Thai, Lao, Myanmar, Khmer; kana and Chinese characters.
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
# A letter next to one of these is not a label: "SB", "S.B", "S-B", "B's", "B-52", "B.Sc", "B=".
_LATIN = "A-Za-z0-9_\u00b5\u00c0-\u024f\u0370-\u052f"
# Combining signs, which are not letters for `re`.
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
    """Tokens of a text; token ``n`` is ``text[starts[n]:ends[n]]``."""

    text: str
    classes: str
    """One letter per token: a column of ``languages.toml``, or L a label, # another number, B a box,
    w another word, . , : ; ? - / | themselves, ~ a line break, ¶ a new paragraph or item."""
    starts: list[int]
    ends: list[int]
    labels: dict[int, str]
    """Number of a token → label."""
    lexicon: Lexicon


def lex(text: str, labels: str = "", texts: Container[str] = ()) -> Tokens:
    """Split ``text`` into tokens; "option 2" is a label unless 2 is in ``texts``, the options' texts."""
    words = lexicon(languages_of(set(_WORDS.findall(text)), text))
    pattern, meaning = _grammar(labels, words)
    classes: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    by_number: dict[int, str] = {}
    tables = {"sign": _MARKS, "known": words.unspaced, "phrase": words.phrases}
    for match in pattern.finditer(text):
        kind, token = match.lastgroup or "", match.group()
        start, end = match.span()
        before = classes[-1] if classes else ""
        symbol = _SYMBOLS.get(kind, "w")
        if kind == "word":
            symbol = words.class_of(token)
            article = words.article and before == "L" and text[starts[-1] : start] == "A "
            if article and symbol not in "VvmXnrb":  # "A resposta", "A helyes válasz"
                classes[-1] = "m"
                del by_number[len(classes) - 1]
        elif kind in tables:
            symbol = tables[kind].get(" ".join(token.lower().split()), token)
        elif kind == "letter":
            by_number[len(classes)] = meaning[token[0]]
        elif kind == "number" and 0 < (place := _place(token)) <= len(labels):
            if _COUNTED.match(text, end) or (before == "O" and token not in texts):
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
    """Return the position, from 1, of the option that a number names; 0 if it names none."""
    return int(number) if number.isdecimal() and len(number) < 3 else _CHINESE.find(number)


_KINDS = ("paragraph", "line", "close", "tag", "box", "dash", "letter", "number")
_SYMBOLS = dict(zip(_KINDS, "¶~.:B-L#", strict=True))


@lru_cache(maxsize=64)
def _meaning(labels: str) -> tuple[Mapping[str, str], str, str]:
    """Return form → label, and the capital and the small letters among the forms."""
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
    """Return the pattern of a token, and form → label."""
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
        "known": alternation(words.unspaced),
        "number": r"\d+(?:[.,]\d+)*|(?<=第)[一二三四五六七八九十](?!\w*十)",
        "char": f"[{_UNSPACED}]",
        "dash": _DASH,
        "sign": r"[.,:;?/|!。！।॥։۔።？؟՞：=→՝፡；؛，،、&+✓✔✅☑✗✘❌✖]",
    }
    groups = (rf"(?P<{name}>{part})" for name, part in parts.items() if part)
    return re.compile("|".join(groups), re.DOTALL), meaning


def _phrase(phrases: Iterable[str]) -> str:
    firsts = "".join(sorted({char for p in phrases for char in (p[0], p[0].upper())}))
    words = alternation(phrases).replace(r"\ ", r"\s{1,3}")
    return rf"(?<!\w)(?=[{re.escape(firsts)}])(?i:{words})(?!\w)"


def _letter(capitals: str, small: str, forms: Iterable[str], ending: bool) -> str:
    """Return the pattern of a label.

    A capital letter must not be part of a word; a small letter must also be followed by the end of a
    clause. The other forms are letters of other scripts.
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
