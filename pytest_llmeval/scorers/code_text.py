"""The text around code in a reply: fences, special tokens, line endings. Nothing is parsed here.

Every step is linear in the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_llmeval.scorers.reply import without_reasoning

# Where the turn or the answer ends; what a server that stops there does not show. `[DONE]` ends
# the answers of MBPP's own format.
_END = re.compile(
    r"<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end|file_sep|EOT|eom_id)\|>"
    r"|<[｜|](?:end▁of▁sentence|EOT)[｜|]>|</s>|<end_of_turn>|<eos>|<file_sep>"
    r"|^[ \t]*\[DONE\][ \t]*$",
    re.MULTILINE,
)
_BEGIN = re.compile(r"\A\s*\[BEGIN\][ \t]*\n|\A\s*<s>")
_LANGUAGE_LINE = re.compile(r"\A\s*(?:python[23]?|py)[ \t]*\n", re.IGNORECASE)
# Possessive, so that a long run of marks or blanks is read once.
_FENCE = re.compile(r"^[ \t]*+(?P<marks>`{3,}+|~{3,}+)[ \t]*+(?P<info>[^\n`]*+)$", re.MULTILINE)
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
    """What of a reply may be code: no reasoning, no carriage returns, nothing after its end.

    Empty where reasoning is left open. Only the first 200,000 characters of it are looked at.
    """
    shown = without_reasoning(text)
    if shown is None:
        return ""
    shown = shown[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n")
    shown = _BEGIN.sub("", shown, count=1)
    end = _END.search(shown)
    if end is not None:
        shown = shown[: end.start()]
    return _LANGUAGE_LINE.sub("", shown, count=1)


def pieces(text: str) -> list[Piece]:
    """The text cut at its fences, in order, blank pieces left out.

    A fence is closed by as many of its marks or more, on a line of their own or at the end of
    the last line of code; one that is never closed reaches to the end of the text. Of very many
    pieces the last ones are taken.
    """
    return list(deque((piece for piece in _cut(text) if piece.text.strip()), maxlen=_MOST))


def begun_inside(text: str) -> str | None:
    """The text before its first fence where that may be the end of a block begun elsewhere.

    A protocol that opens the fence itself leaves the model only to close it. None where the text
    has no fence, or the first one names a language and so opens a block.
    """
    fence = _FENCE.search(text)
    if fence is None or fence["info"].strip():
        return None
    head = text[: fence.start()]
    return head if head.strip() else None


def between_fences(text: str) -> str | None:
    """All between the first and the last fence: a block whose own text holds fences."""
    fences = list(_FENCE.finditer(text))
    if len(fences) < 3:
        return None
    return text[fences[0].end() + 1 : fences[-1].start()]


def _cut(text: str) -> Iterator[Piece]:
    position = 0
    opening = _FENCE.search(text)
    while opening is not None:
        yield Piece(text[position : opening.start()], fenced=False)
        begin = min(opening.end() + 1, len(text))
        marks = opening["marks"]
        closing = _closing(marks).search(text, begin)
        inside = text[begin : closing.start() if closing else len(text)].rstrip(" \t")
        language = opening["info"].strip().split(" ")[0].strip("{}.").lower()
        yield Piece(_without_margin(inside, opening.group()), True, language)
        if closing is None:
            return
        position = closing.end()
        opening = _FENCE.search(text, position)
    yield Piece(text[position:], fenced=False)


def _closing(marks: str) -> re.Pattern[str]:
    mark = re.escape(marks[0])
    return re.compile(rf"(?<!{mark}){mark}{{{len(marks)},}}+[ \t]*+$", re.MULTILINE)


def _without_margin(inside: str, opening: str) -> str:
    """A block inside a list is indented with its fence."""
    margin = opening[: len(opening) - len(opening.lstrip())]
    if not margin:
        return inside
    return "\n".join(line.removeprefix(margin) for line in inside.split("\n"))
