"""Layout of code in a reply: fences, special tokens, line endings and indentation.

Nothing is parsed here, and every step takes linear time for any text.
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
_LONGEST = 200_000  # characters read, more than any model's answer has
_MOST = 100


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a reply: the inside of a fence, or the text between fences."""

    text: str
    fenced: bool
    language: str = ""

    @property
    def maybe_python(self) -> bool:
        """True unless the fence names another language."""
        return self.language not in _NOT_PYTHON


def code_text(text: str) -> str:
    """Return the part of a reply that may be code, without reasoning, carriage returns and end marks.

    Marks inside string literals, such as ``s.replace("</s>", "")``, are code. Empty if the reasoning
    has no end. Only the first 200,000 characters are read.
    """
    reply = without_reasoning(text)
    if reply is None:
        return ""
    reply = reply[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n")
    reply = _BEGIN.sub("", reply, count=1)
    ends = list(_END.finditer(reply))
    quoted = QuotedRegions(reply) if ends else None
    end = next((mark for mark in ends if quoted and quoted.literal(mark.start()) is None), None)
    if end is not None:
        reply = reply[: end.start()]
    return _LANGUAGE_LINE.sub("", reply, count=1)


def split_at_fences(text: str) -> list[Piece]:
    """Split the text at its fences and return the non-blank pieces, at most the last 100.

    A fence is closed by at least as many of its marks, on a line of their own or at the end of the
    last line of code; an unclosed one ends at the next fence or at the end of the text. Marks in a
    docstring are not fences.
    """
    return list(deque((piece for piece in _cut(text) if piece.text.strip()), maxlen=_MOST))


def open_block(text: str) -> str | None:
    """Return the text before its first fence if that may end a block that the prompt began.

    None if the text has no fence, or if the first fence names a language and thus opens a block.
    """
    fences = QuotedRegions(text).fences
    if not fences or fences[0].info:
        return None
    head = text[: fences[0].opening]
    return head if head.strip() else None


def between_fences(text: str) -> str | None:
    """Return the text between the first and the last fence: a block that contains fences."""
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
    """Remove the indentation of a block whose fence is indented, as inside a list."""
    if not margin:
        return inside
    return "\n".join(line.removeprefix(margin) for line in inside.split("\n"))


TAB = 4

_INDENTED = re.compile(r"^[ \t]+\S", re.MULTILINE)


def first_line(text: str) -> tuple[str, str, str]:
    """Return the text before the first non-blank line, that line, and the rest."""
    start = len(text) - len(text.lstrip())
    start = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return text[:start], text[start:end], text[end:]


def is_indented(text: str) -> bool:
    """Return True if the first non-blank line is indented."""
    return first_line(text)[1][:1].isspace()


def indentation_variants(text: str, margin: str) -> Iterator[str]:
    """Yield a body unchanged, with a corrected first line, and with all lines corrected.

    ``margin``: indentation of the body. Lines inside a string literal are not changed.
    """
    before, first, after = first_line(text)
    repaired = f"{before}{margin}{first.lstrip()}{after}"
    yield text
    yield from dict.fromkeys(
        variant
        for plain in dict.fromkeys((text, repaired))
        for variant in (
            repaired,
            _indented(dedent(plain), margin),
            _indented(dedent(_without_tabs(plain)), margin),
            _without_tabs(repaired),
        )
        if variant != text
    )


def prose_variants(prose: str) -> tuple[str, ...]:
    """Return prose unchanged, and from its first indented line on if no code begins before it."""
    match = _INDENTED.search(prose)
    before = prose[: match.start()] if match else ""
    if match is None or not before.strip() or looks_like_code(before):
        return (prose,)
    return prose, prose[match.start() :]


def dedent(text: str) -> str:
    """Return the text without the margin that all lines of code share.

    Comments may be outside of the margin; lines inside a string literal are not changed.
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
    """Return the text with spaces in place of the tabs at the beginning of lines."""

    def expanded(line: str) -> str:
        code = line.lstrip(" \t")
        return line[: len(line) - len(code)].expandtabs(TAB) + code

    return _changed(text, expanded)


def _changed(text: str, change: Callable[[str], str]) -> str:
    """Change all lines of the text except those that begin inside a string literal."""
    inside = _lines_in_literals(text)
    lines = enumerate(text.split("\n"))
    return "\n".join(line if number in inside else change(line) for number, line in lines)


def _lines_in_literals(text: str) -> set[int]:
    """Return the numbers, from 0, of the lines that begin inside a string literal."""
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
