"""Every message of the package that a user may read, with file and line: ``python tests/support/messages.py``.

A message is the text of an exception of the package's tree, of a usage error, of a warning or a
note, or a help text of an option or a command. Values are shown as ``{expression}``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_llmeval"

RAISED = frozenset(
    {
        "CellLostError",
        "ConfigError",
        "DataError",
        "LaunchError",
        "MismatchError",
        "ModelError",
        "PromptError",
        "RequestFailedError",
        "RunError",
        "SpendLimitError",
        "UnanswerableError",
        "UnsupportedModelError",
        "UsageError",
        "located_error",
        "mistake",
        "problem",
    }
)
"""Exceptions, and functions that make one, whose first text is a message."""

REPORTED = frozenset({"append", "extend", "exit", "fail", "note", "say", "warn", "warning"})
"""Functions and methods whose first text is printed; lists only where they are of notes."""

NOTES = frozenset({"notes", "problems", "remarks", "warnings"})
"""Names of lists of notes."""


class Message(NamedTuple):
    """A message of the package."""

    path: str
    line: int
    kind: str
    text: str


def messages(package: Path = PACKAGE) -> Iterator[Message]:
    """Yield the messages of all modules, by file and line."""
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(package.parent).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield from (Message(name, *place) for place in _of_call(node))


def _of_call(call: ast.Call) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of the messages in a call."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    for keyword in call.keywords:
        if keyword.arg == "help" and (text := _text(keyword.value)):
            yield keyword.value.lineno, "help", text
    if name == "_Option" and (text := _text(call.args[3])):
        yield call.args[3].lineno, "help", text
    kind = "error" if name in RAISED else "report" if name in REPORTED else None
    if name in ("append", "extend") and _owner(function) not in NOTES:
        kind = None
    if kind is not None:
        texts = ((part.lineno, text) for part in call.args if (text := _text(part)))
        for line, text in texts:
            if " " in text:
                yield line, kind, text
                return


def _owner(function: ast.expr) -> str:
    """Return the name of the object whose method is called: ``notes`` of ``run.notes.append``."""
    owner = function.value if isinstance(function, ast.Attribute) else function
    return owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")


def _text(node: ast.expr) -> str | None:
    """Return the text of a string or an f-string; None for any other expression."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value)
            if isinstance(part, ast.Constant)
            else f"{{{ast.unparse(part.value)}}}"
            if isinstance(part, ast.FormattedValue)
            else ""
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None or right is None else left + right
    return None


def main() -> None:
    """Print one line per message."""
    for message in sorted(messages()):
        print(f"{message.path}:{message.line}: {message.kind}: {' '.join(message.text.split())}")


if __name__ == "__main__":
    main()
