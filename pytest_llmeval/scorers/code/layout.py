"""Fences, special tokens, line endings and margins of code in a reply. Nothing is parsed here.

The text around code in a reply: fences, special tokens, line endings. Nothing is parsed here.

Every step is linear in the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_llmeval.core.quoted import FENCE
from pytest_llmeval.core.quoted import QuotedRegions
from pytest_llmeval.core.quoted import string_literals
from pytest_llmeval.scorers.code.syntax import looks_like_code
from pytest_llmeval.scorers.response_text import without_reasoning

# Lines that begin and end an answer: MBPP's own format, and that of Code Llama and CRUXEval.
_BEGIN = re.compile(r"\A\s*\[(?:BEGIN|PYTHON|ANSWER)\][ \t]*\n|\A\s*<s>")
_END = re.compile(r"^[ \t]*\[DONE\][ \t]*$|\[/(?:PYTHON|ANSWER)\][ \t]*$", re.MULTILINE)
_LANGUAGE_LINE = re.compile(r"\A\s*(?:python[23]?|py)[ \t]*\n", re.IGNORECASE)
_NOT_PYTHON = frozenset(
    (
        *("bash", "sh", "shell", "zsh", "console", "terminal", "cmd", "powershell", "text", "txt"),
        *("plaintext", "output", "markdown", "md", "diff", "json", "yaml", "toml", "xml", "html"),
        *("css", "sql", "java", "javascript", "js", "typescript", "ts", "c", "cpp", "rust", "go"),
    )
)
_LONGEST = 200_000  # more than fits into any model's answer; the rest would only take time
_MOST = 100


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a reply: the inside of a fence, or the text between fences."""

    text: str
    fenced: bool
    language: str = ""

    @property
    def maybe_python(self) -> bool:
        return self.language not in _NOT_PYTHON


def visible(text: str) -> str:
    """The part of a reply that may be code: no reasoning, no carriage returns, nothing after its end.

    Marks in code, such as ``s.replace("</s>", "")``, are code. Empty where reasoning is left open.
    Only the first 200,000 characters are read.
    """
    shown = without_reasoning(text)
    if shown is None:
        return ""
    shown = shown[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n")
    shown = _BEGIN.sub("", shown, count=1)
    ends = list(_END.finditer(shown))
    quoted = QuotedRegions(shown) if ends else None
    end = next((one for one in ends if quoted and quoted.literal(one.start()) is None), None)
    if end is not None:
        shown = shown[: end.start()]
    return _LANGUAGE_LINE.sub("", shown, count=1)


def pieces(text: str) -> list[Piece]:
    """The text cut at its fences, in order, blank pieces left out.

    A fence is closed by as many of its marks or more, on a line of their own or at the end of
    the last line of code; one that is never closed reaches to the next one, or to the end of the
    text. Marks in a docstring are no fences. Of very many pieces the last ones are taken.
    """
    return list(deque((piece for piece in _cut(text) if piece.text.strip()), maxlen=_MOST))


def begun_inside(text: str) -> str | None:
    """The text before its first fence where that may be the end of a block begun elsewhere.

    A protocol that opens the fence itself leaves the model only to close it. None where the text
    has no fence, or the first one names a language and so opens a block.
    """
    fences = QuotedRegions(text).fences
    if not fences or fences[0].info:
        return None
    head = text[: fences[0].opening]
    return head if head.strip() else None


def between_fences(text: str) -> str | None:
    """All between the first and the last fence: a block whose own text holds fences."""
    fences = list(FENCE.finditer(text))
    if len(fences) < 3:
        return None
    return text[fences[0].end() + 1 : fences[-1].start()]


def _cut(text: str, *, nested: bool = True) -> Iterator[Piece]:
    position = 0
    for fence in QuotedRegions(text).fences:
        yield Piece(text[position : fence.opening], fenced=False)
        inside = _without_margin(text[fence.start : fence.end].rstrip(" \t"), fence.margin)
        language = fence.info.split(" ")[0].strip("{}.").lower()
        if nested and language in ("markdown", "md") and FENCE.search(inside):
            yield from _cut(inside, nested=False)  # a whole reply in a block
        else:
            yield Piece(inside, True, language)
        position = fence.after
    yield Piece(text[position:], fenced=False)


def _without_margin(inside: str, margin: str) -> str:
    """A block inside a list is indented with its fence."""
    if not margin:
        return inside
    return "\n".join(line.removeprefix(margin) for line in inside.split("\n"))


TAB = 4

_INDENTED = re.compile(r"^[ \t]+\S", re.MULTILINE)


def first_line(text: str) -> tuple[str, str, str]:
    """What stands before the first line that is not blank, that line, and the rest."""
    start = len(text) - len(text.lstrip())
    start = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return text[:start], text[start:end], text[end:]


def is_indented(text: str) -> bool:
    return first_line(text)[1][:1].isspace()


def indentations(text: str, margin: str) -> Iterator[str]:
    """A body as it is; with its first line put right; with all lines put right.

    ``margin``: what the lines of the body are to begin with. Lines within a string literal stay
    as they are.
    """
    before, first, after = first_line(text)
    repaired = f"{before}{margin}{first.lstrip()}{after}"
    yield text
    yield from dict.fromkeys(
        variant
        for plain in dict.fromkeys((text, repaired))
        for variant in (
            repaired,
            _indented(dedented(plain), margin),
            _indented(dedented(_without_tabs(plain)), margin),
            _without_tabs(repaired),
        )
        if variant != text
    )


def parts_of_prose(prose: str) -> tuple[str, ...]:
    """Prose as it is, and from its first indented line on where no code begins before that."""
    found = _INDENTED.search(prose)
    before = prose[: found.start()] if found else ""
    if found is None or not before.strip() or looks_like_code(before):
        return (prose,)
    return prose, prose[found.start() :]


def dedented(text: str) -> str:
    """Without the margin that all lines of code share.

    Comments may be outside of it; lines within a string literal stay as they are.
    """
    inside = _lines_in_literals(text)
    code = [
        line
        for number, line in enumerate(text.split("\n"))
        if number not in inside and line.strip() and not line.lstrip().startswith("#")
    ]
    margins = [line[: len(line) - len(line.lstrip())] for line in code]
    shared = min(margins, key=len, default="")
    if not all(margin.startswith(shared) for margin in margins):
        return text
    return _changed(text, lambda line: line.removeprefix(shared))


def _indented(text: str, margin: str) -> str:
    return _changed(text, lambda line: margin + line if line.strip() else line)


def _without_tabs(text: str) -> str:
    """With blanks for the tabs that lines begin with."""

    def expanded(line: str) -> str:
        code = line.lstrip(" \t")
        return line[: len(line) - len(code)].expandtabs(TAB) + code

    return _changed(text, expanded)


def _changed(text: str, change: Callable[[str], str]) -> str:
    """The text with all lines changed except those that begin within a string literal."""
    inside = _lines_in_literals(text)
    lines = enumerate(text.split("\n"))
    return "\n".join(line if number in inside else change(line) for number, line in lines)


def _lines_in_literals(text: str) -> set[int]:
    """The numbers, from 0, of the lines that begin within a string literal."""
    inside: set[int] = set()
    line = position = 0
    for start, end in string_literals(text):
        if end > len(text):
            break
        line += text.count("\n", position, start)
        last = line + text.count("\n", start, end)
        inside.update(range(line + 1, last + 1))
        line, position = last, end
    return inside
