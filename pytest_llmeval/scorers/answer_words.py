"""Words and letters that state an answer, from ``languages.toml``, which has a row per language."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Iterable
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files

_FILE = tomllib.loads((files(__package__) / "languages.toml").read_text(encoding="utf-8"))
# Column → the class of its words. If two columns have the same word, the later one is used.
_CLASSES: dict[str, str] = _FILE.pop("classes")
_ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    codes: {"traits": (), **{column: tuple(words.split(", ")) for column, words in row.items()}}
    for codes, row in _FILE.items()
}
_LONG = 4  # minimum of letters of words whose accents may be missing
_APOSTROPHES = str.maketrans(
    dict.fromkeys("’‘ʼʻ`", "'") | dict.fromkeys("\u200b\u200c\u200d\u00ad")
)


def _words(*columns: str, unspaced: bool | None = None) -> tuple[str, ...]:
    """Return the words of these columns in all languages, or in those with or without spaces."""
    rows = [row for row in _ROWS.values() if unspaced in (None, "unspaced" in row["traits"])]
    words = {word for row in rows for column in columns for word in row.get(column, ())}
    return tuple(sorted(word.rstrip("*") if unspaced else word for word in words))


COPULAS = _words("is", unspaced=False)
COPULAS_UNSPACED = _words("is", unspaced=True)
BECAUSE = _words("because", unspaced=False)
BECAUSE_UNSPACED = _words("because", unspaced=True)
MINUS = _words("minus")
QUESTION_WORDS = _words("question")
DECIMAL_COMMA = frozenset(
    code for codes, row in _ROWS.items() if "comma" in row["traits"] for code in codes.split()
)
"""Languages (ISO 639-1) that write 2,5 for two and a half."""
LETTERS = _words("letters")
"""Letters used in place of A, B, C, …, in this order; a space for a missing one."""


class _Table:
    """Words, and beginnings of words (``word*``), with their values."""

    def __init__(self) -> None:
        self.whole: dict[str, list[str]] = {}
        self.begun: dict[str, list[str]] = {}
        self._longest_begun = 0

    def add(self, word: str, value: str) -> None:
        table = self.begun if word.endswith("*") else self.whole
        for form in _forms(word.rstrip("*")):
            table.setdefault(form, []).append(value)
            if table is self.begun:
                self._longest_begun = max(self._longest_begun, len(form))

    def find(self, word: str) -> Iterator[str]:
        """Yield the values of a word in normal form: longest entry first, then latest first."""
        for form in _forms(word):
            yield from reversed(self.whole.get(form, ()))
            for length in range(min(len(form), self._longest_begun), 0, -1):
                yield from reversed(self.begun.get(form[:length], ()))
        _, apostrophe, rest = word.rpartition("'")
        if apostrophe and rest:  # l'option
            yield from self.find(rest)


class Lexicon:
    """Words of English and of some other languages, with their classes."""

    def __init__(self, codes: frozenset[str]) -> None:
        rows = [_ROWS["en"], *(_ROWS[code] for code in sorted(codes))]
        traits = {trait for row in rows for trait in row["traits"]}
        #: Extent of the grammar: 0 English, 1 other languages, 2 languages without "is".
        self.reach = bool(codes) + ("bare" in traits)
        self.ending = "ending" in traits
        self.table = _Table()
        self.phrases: dict[str, str] = {}
        self.unspaced: dict[str, str] = {}
        for row in rows:
            for column, symbol in _CLASSES.items():
                for word in map(normal, row.get(column, ())):
                    if "unspaced" in row["traits"] and not "\uac00" <= word[0] <= "\ud7a3":
                        self.unspaced[word] = symbol
                    elif " " in word or "/" in word:
                        self.phrases[word] = symbol
                    else:
                        self.table.add(word, symbol)
        self.class_of = lru_cache(maxsize=1 << 14)(self._class_of)
        self.article = self._class_of("a") == "m"

    def _class_of(self, word: str) -> str:
        """Return the class of a word; ``w`` for a word in no column."""
        return next(self.table.find(normal(word)), "w")


lexicon = lru_cache(maxsize=256)(Lexicon)


def languages_of(words: Iterable[str], text: str) -> frozenset[str]:
    """Return the languages besides English with a distinctive word among ``words`` of ``text``.

    Words that are also English, or the beginning of an English word, are not distinctive.
    """
    codes = {code for word in words for code in _rows_of(word)}
    if not text.isascii():
        normalized = normal(text)
        codes |= {code for word, code in _distinctive()[1] if word in normalized}
    return frozenset(codes)


@lru_cache(maxsize=1 << 16)
def _rows_of(word: str) -> frozenset[str]:
    return frozenset(_distinctive()[0].find(normal(word)))


@lru_cache(maxsize=1)
def _distinctive() -> tuple[_Table, list[tuple[str, str]]]:
    """Return the languages of distinctive words, and of those that may be inside other words."""
    english = Lexicon(frozenset()).table.whole
    table, anywhere = _Table(), []
    for code, row in _ROWS.items():
        for column in ("answer", "option", "correct", "wrong", "so", "pick", "true"):
            for word in map(normal, row.get(column, ())):
                stem = word.rstrip("*")
                if "unspaced" in row["traits"] or (" " in word and not word.isascii()):
                    anywhere.append((stem, code))
                elif not (
                    (stem.isascii() and (len(stem) < _LONG or " " in stem))
                    or stem in english
                    or (stem != word and any(other.startswith(stem) for other in english))
                ):
                    table.add(word, code)
    return table, anywhere


def normal(word: str) -> str:
    """Return ``word`` in lower case, with one kind of apostrophe and no invisible characters."""
    return unicodedata.normalize("NFC", word.lower().translate(_APOSTROPHES))


def _forms(word: str) -> tuple[str, ...]:
    """Return ``word`` and, if it is long enough, ``word`` without accents."""
    if len(word) < _LONG or word[0] >= "\u0590":
        return (word,)
    decomposed = unicodedata.normalize("NFD", word)
    unaccented = "".join(char for char in decomposed if not unicodedata.combining(char))
    return (word,) if unaccented == word else (word, unaccented)
