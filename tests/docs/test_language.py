"""No text for people, and no name in code, uses the words that ARCHITECTURE.md, *Language*, replaces.

Read are the prose of Markdown pages, and sentences in Python: docstrings, messages, help. Code, code
blocks and names in backticks are left out. To check more files, add them to `ROOTS`. A word may be
used in its ordinary meaning where `ALLOWED` has a part of its line. Names are those that Python code
binds in the folders `NAMED`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import REPOSITORY

ROOTS = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs",
    "scripts",
    "pytest_llmeval",
)
"""Files and folders whose Markdown and Python is read."""

WORDS = {
    r"tells?|told|telling": "report, warn, log, print, return",
    r"says?|said|saying": "report, print, state",
    r"asks?|asked|asking": "request, query, prompt",
    r"what (?:becomes|became) of": "outcome of, result of",
    r"stands?|stood": "is, is stored in",
    r"lies|lie|lay": "is, is stored in",
    r"the way|a way|ways|this way|no way": "variant, mode, method",
    r"draws?|drawn|drew": "sample, select, render, break a tie",
    r"nobody|whoever|somebody|anybody": "the user, the caller, any process",
    r"own models?|(?:benchmark|scorer|backend|spec) of (?:one's|your) own": "custom model",
    r"beside": "next to, in addition to",
    r"booked": "attributed to",
    r"so many": "that many, a number of",
}
"""Pattern of words → what is written instead."""

ALLOWED = (
    "say so in the pull request",
    # Names of attributes and keys, which are public or stored.
    "ask =",
    ".asks of the `model` fixture",
    "asked by",
    "as lm-eval draws",
)
"""Parts of lines in which a word has its ordinary meaning, such as of people."""

NAMED = ("pytest_llmeval", "perf", "scripts", "docs", "benchmarks", "tests")
"""Folders whose Python binds no name of `NAMES`."""

NAMES = {"one", "found", "known", "told", "said", "asked", "way", "ways", "whoever", "nobody"}
"""Names that hide what a variable, a parameter, an attribute or a definition is."""

FENCE = re.compile(r"^( *)(```|~~~~).*?^\1\2$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"``[^`\n]+``|`[^`\n]*`")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
QUOTED = re.compile(r"[\"“*][^\"”*\n]{0,120}[\"”*]")
LINK = re.compile(r"\]\([^)]*\)")
WORD = re.compile("|".join(rf"\b(?:{words})\b" for words in WORDS), re.IGNORECASE)


def files(roots: Iterable[str]) -> Iterator[Path]:
    for root in roots:
        path = REPOSITORY / root
        assert path.exists(), root
        inside = [file for file in path.rglob("*") if file.suffix in (".md", ".py")]
        yield from sorted(inside) if path.is_dir() else [path]


def prose(text: str) -> str:
    """Text without code, links, comments and quotations; lines keep their numbers."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    for pattern in (COMMENT, FENCE, CODE, LINK, QUOTED):
        text = pattern.sub(blank, text)
    return text


def sentences(code: str) -> Iterator[tuple[int, str]]:
    """Strings of Python code that have more than one word, with the number of their first line."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def findings(text: str, first: int = 1) -> list[str]:
    """One line for each word that is replaced; the text begins in the line `first`."""
    lines = text.splitlines()
    places = []
    for match in WORD.finditer(prose(text)):
        number = text.count("\n", 0, match.start())
        if not any(part in lines[number] for part in ALLOWED):
            instead = next(
                better
                for words, better in WORDS.items()
                if re.fullmatch(words, match[0], re.IGNORECASE)
            )
            places.append(
                f"line {first + number}: {match[0]!r} ({instead}): {lines[number].strip()}"
            )
    return places


def bound_names(code: str) -> Iterator[tuple[int, str]]:
    """Names that Python code binds, with their lines."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def findings_in(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return findings(text)
    return [line for first, part in sentences(text) for line in findings(part, first)]


@pytest.mark.parametrize(
    "path", list(files(ROOTS)), ids=lambda path: path.relative_to(REPOSITORY).as_posix()
)
def test_plain_words(path: Path):
    assert findings_in(path) == []


@pytest.mark.parametrize("root", NAMED)
def test_plain_names(root: str):
    paths = sorted((REPOSITORY / root).rglob("*.py"))
    assert paths
    places = [
        f"{path.relative_to(REPOSITORY)}:{line}: {name}"
        for path in paths
        for line, name in bound_names(path.read_text(encoding="utf-8"))
        if name in NAMES
    ]
    assert places == []


def test_a_class_name_is_used_once():
    """A class is found by its name alone, in a traceback or by a search."""
    modules: dict[str, list[str]] = {}
    for path in sorted((REPOSITORY / "pytest_llmeval").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(str(path.relative_to(REPOSITORY)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_every_kind_of_binding_is_found():
    code = """
import a as b
def c(d, *e, f=None, **g): ...
async def h(): ...
class i: j: int
k.l = [m for n in o]
for p, *q in r: ...
with s as t: ...
try: ...
except u as v: ...
match w:
    case {"x": [y, *z]}: ...
if A := B: ...
lambda C: D
"""
    assert "".join(sorted(name for _, name in bound_names(code))) == "ACbcdefghijlnpqtvyz"


def test_a_word_is_found_in_prose_only():
    text = "The gate tells why.\n\n```\nit tells\n```\n``tells`` `tells` [x](tells.md)\n\nIt was\ntold."
    assert [line.partition(":")[0] for line in findings(text)] == ["line 1", "line 9"]


def test_a_word_is_found_in_strings_of_python(tmp_path: Path):
    file = tmp_path / "module.py"
    file.write_text(
        '"""Summary.\n\nIt tells why.\n"""\nask = "ask"\nf"{ask} must be asked"\n# it stands here\n'
    )
    assert [line.partition(":")[0] for line in findings_in(file)] == ["line 3", "line 6"]


def test_every_left_word_of_the_architecture_is_looked_for():
    """A row that is added to the table is added here."""
    architecture = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = architecture.partition("## Language")[2]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)[1:]
    cells = [cell for cell in rows if not set(cell) <= set("- ")]
    assert len(cells) >= 8
    for cell in cells:
        words = re.sub(r"\(.*?\)", "", cell).split(",")
        assert any(findings(f"It {word.strip()} it.") for word in words), cell
