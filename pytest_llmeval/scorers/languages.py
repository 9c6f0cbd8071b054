"""Words and letters by which replies in many languages state an answer: ``languages.toml``, read."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Iterable
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

#: Column → the class of its words in the grammar. Of two columns with the same word the later wins.
CLASSES: Mapping[str, str] = {
    "filler": "m", "trait": "A", "goes_on": "b", "because": "b", "and": "n", "if": "Q", "is": "V",
    "link": "V", "past": "v", "about": "a", "gives": "g", "or": "r", "so": "T", "pick": "P", "option": "O", "answer": "N", "correct": "C",
    "true": "t", "not": "X", "wrong": "W", "thing": "J", "remark": "s", "it": "S", "its": "z", "we": "I",
    "think": "H", "thought": "h", "others": "e", "sure": "U", "contrary": "c", "would": "d",
    "must": "D", "leaves": "l", "each": "E", "blocks": "x", "ask": "?",
}  # fmt: skip
_TELLING = ("answer", "option", "correct", "wrong", "so", "pick")
_LONG = 4  # letters from which on an accent may be left out
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼʻ`", "'") | dict.fromkeys("\u200b\u200c\u200d\u00ad"))


def _load() -> dict[str, dict[str, tuple[str, ...]]]:
    text = (files(__package__) / "languages.toml").read_text(encoding="utf-8")
    return {
        codes: {column: tuple(words.split(", ")) for column, words in row.items()}
        for codes, row in tomllib.loads(text).items()
    }


_ROWS = _load()


def _words(*columns: str, unspaced: bool | None = None) -> tuple[str, ...]:
    """The words of these columns in all languages, or in those written with or without blanks."""
    rows = [r for r in _ROWS.values() if unspaced in (None, "unspaced" in r.get("traits", ()))]
    words = (word for row in rows for column in columns for word in row.get(column, ()))
    return tuple(sorted({word.rstrip("*") if unspaced else word for word in words}))


ANSWER_WORDS = _words("answer", unspaced=False)
ANSWER_WORDS_UNSPACED = _words("answer", "pick", unspaced=True)
OPTION_WORDS = _words("option", "remark")
COPULAS = _words("is", unspaced=False)
NEGATIONS = _words("not", "wrong", "if", "blocks", unspaced=False)
BECAUSE = _words("because", unspaced=False)
BECAUSE_UNSPACED = _words("because", unspaced=True)
MINUS = _words("minus")
QUESTION_WORDS = _words("question")
DECIMAL_COMMA: frozenset[str] = frozenset(
    code for key, row in _ROWS.items() if "comma" in row.get("traits", ()) for code in key.split()
)
"""Languages (ISO 639-1) that write 2,5 for two and a half."""

# What stands for A, B, C, …, in this order: in any language, and in some.
LETTERS: tuple[str, ...] = (
    "ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴＵＶＷＸＹＺ",
    "ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚ",
    "ⒶⒷⒸⒹⒺⒻⒼⒽⒾⒿⓀⓁⓂⓃⓄⓅⓆⓇⓈⓉⓊⓋⓌⓍⓎⓏ",
    "ⓐⓑⓒⓓⓔⓕⓖⓗⓘⓙⓚⓛⓜⓝⓞⓟⓠⓡⓢⓣⓤⓥⓦⓧⓨⓩ",
    "⒜⒝⒞⒟⒠⒡⒢⒣⒤⒥⒦⒧⒨⒩⒪⒫⒬⒭⒮⒯⒰⒱⒲⒳⒴⒵",
    "𝐀𝐁𝐂𝐃𝐄𝐅𝐆𝐇𝐈𝐉𝐊𝐋𝐌𝐍𝐎𝐏𝐐𝐑𝐒𝐓𝐔𝐕𝐖𝐗𝐘𝐙",
    "①②③④⑤⑥⑦⑧⑨⑩",
    *_words("letters"),
)


class Lexicon:
    """The words of English and of some other languages, and their classes."""

    def __init__(self, codes: frozenset[str]) -> None:
        rows = [_ROWS["en"], *(_ROWS[code] for code in sorted(codes))]
        traits = {trait for row in rows for trait in row.get("traits", ())}
        #: How far the grammar goes: 0 English, 1 other languages, 2 those without "is".
        self.reach = bool(codes) + ("bare" in traits)
        self.ending = "ending" in traits
        self.words: dict[str, str] = {}
        self.stems: dict[str, str] = {}
        self.phrases: dict[str, str] = {}
        self.unspaced: dict[str, str] = {}
        for row in rows:
            spaced = "unspaced" not in row.get("traits", ())
            for column, symbol in CLASSES.items():
                for word in map(normal, row.get(column, ())):
                    if not spaced and not "\uac00" <= word[0] <= "\ud7a3":
                        self.unspaced[word] = symbol
                    elif " " in word:
                        self.phrases[word] = symbol
                    elif word.endswith("*"):
                        self.stems[word[:-1]] = symbol
                    else:
                        self.words[word] = symbol
        for table in (self.words, self.stems):
            for word, symbol in list(table.items()):
                for form in _forms(word):
                    table.setdefault(form, symbol)
        self.article = self.words.get("a") == "m"
        self._seen: dict[str, str] = {}

    def class_of(self, word: str) -> str:
        """The class of one word of a text; ``w`` where it is in no column."""
        symbol = self._seen.get(word)
        if symbol is None:
            if len(self._seen) > 20_000:
                self._seen.clear()
            symbol = self._seen[word] = self._find(normal(word)) or "w"
        return symbol

    def _find(self, word: str) -> str | None:
        for form in _forms(word):
            if form in self.words:
                return self.words[form]
            for length in range(len(form), 0, -1):
                if form[:length] in self.stems:
                    return self.stems[form[:length]]
        _, apostrophe, rest = word.rpartition("'")
        return self._find(rest) if apostrophe and rest else None


@lru_cache(maxsize=256)
def lexicon(codes: frozenset[str]) -> Lexicon:
    """The lexicon of English and the languages of ``codes``."""
    return Lexicon(codes)


def languages_of(words: Iterable[str], text: str) -> frozenset[str]:
    """The rows besides English that have a telling word among ``words``, those of ``text``."""
    found = {code for word in words for code in _tells(word)}
    if not text.isascii():
        said = normal(text)
        found |= {code for word, code in _telling()[2] if word in said}
    return frozenset(found)


@lru_cache(maxsize=1 << 16)
def _tells(word: str) -> frozenset[str]:
    whole, stems, _ = _telling()
    forms = _forms(normal(word))
    starts = {form[:length] for form in forms for length in range(1, len(form) + 1)}
    told = [whole.get(form, ()) for form in forms] + [stems.get(start, ()) for start in starts]
    return frozenset(code for codes in told for code in codes)


@lru_cache(maxsize=1)
def _telling() -> tuple[dict[str, set[str]], dict[str, set[str]], list[tuple[str, str]]]:
    """The rows that whole words, beginnings of words, and words anywhere in a text tell."""
    english = Lexicon(frozenset())
    whole: dict[str, set[str]] = {}
    stems: dict[str, set[str]] = {}
    unspaced: list[tuple[str, str]] = []
    for code, row in _ROWS.items():
        for word in (normal(word) for column in _TELLING for word in row.get(column, ())):
            stem = word.rstrip("*")
            if "unspaced" in row.get("traits", ()) or (" " in word and not word.isascii()):
                unspaced.append((stem, code))
            elif code == "en" or (stem.isascii() and len(stem) < _LONG) or " " in word:
                continue
            elif word != stem and not any(known.startswith(stem) for known in english.words):
                for form in _forms(stem):
                    stems.setdefault(form, set()).add(code)
            elif word == stem and word not in english.words:
                for form in _forms(stem):
                    whole.setdefault(form, set()).add(code)
    return whole, stems, unspaced


def normal(word: str) -> str:
    """``word`` in small letters, with one kind of apostrophe and no invisible characters."""
    return unicodedata.normalize("NFC", word.lower().translate(_APOSTROPHES))


def _forms(word: str) -> tuple[str, ...]:
    """``word`` and, if it is long enough for that, ``word`` without accents."""
    if len(word) < _LONG or word[0] >= "\u0590":
        return (word,)
    apart = unicodedata.normalize("NFD", word)
    return word, "".join(char for char in apart if not unicodedata.combining(char))
