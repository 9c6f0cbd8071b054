"""The text around code in a reply: fences, special tokens, line endings. Nothing is parsed here.

Every step is linear in the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_llmeval.core.quoted import FENCE
from pytest_llmeval.core.quoted import Quoted
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
    quoted = Quoted(shown) if ends else None
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
    fences = Quoted(text).fences
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
    for fence in Quoted(text).fences:
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
