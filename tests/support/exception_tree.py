"""The tree of exceptions: as the package defines it, and as ``core/errors.py`` draws it."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest_llmeval
from pytest_llmeval.core import errors

PACKAGE = Path(pytest_llmeval.__file__).parent
# Exceptions of other libraries are known by the ends of their names.
FOREIGN = re.compile(r"(?:Error|Exception|Exit|Exited|Failed|Interrupt|Skipped|Warning)$")
LINE = re.compile(r"^    (?P<branch>(?:│   |    )*[├└]── )?(?P<name>\w+)(?: {2,}(?P<rest>.+))?$")


class Drawn(NamedTuple):
    parent: str
    result: str
    module: str


def defined(files: Iterable[tuple[str, str]]) -> dict[str, tuple[list[str], str]]:
    """Every exception class in sources (path, text): its bases and its path.

    Raises ValueError for two exceptions of the same name.
    """
    names = {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    classes = [
        (node.name, [ast.unparse(base).rpartition(".")[2] for base in node.bases], path)
        for path, text in files
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    ]
    exceptions: dict[str, tuple[list[str], str]] = {}
    while True:
        derived = [
            entry
            for entry in classes
            if any(base in names or FOREIGN.search(base) for base in entry[1])
        ]
        classes = [entry for entry in classes if entry not in derived]
        if not derived:
            return exceptions
        for name, bases, path in derived:
            if name in exceptions:
                raise ValueError(f"two exceptions {name}: {path} and {exceptions[name][1]}")
            exceptions[name] = (bases, path)
            names.add(name)


def package_files() -> list[tuple[str, str]]:
    return [
        (path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def drawn(text: str) -> dict[str, Drawn]:
    """The lines of the drawings in a docstring; roots that are Python's own are left out."""
    above: list[str] = []
    lines: dict[str, Drawn] = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        depth = len(match["branch"] or "") // 4
        above[depth:] = [match["name"]]
        if depth == 0 and match["rest"] is None:
            continue
        parent = above[depth - 1] if depth else "Exception"
        result, _, module = (match["rest"] or "").partition("    ")
        assert match["name"] not in lines, f"{match['name']} is drawn twice"
        lines[match["name"]] = Drawn(parent, result, module.strip() or "core/errors.py")
    return lines


def exceptions_with(result: str) -> list[type[Exception]]:
    """The classes of the package that are drawn with a result."""
    return [
        getattr(importlib.import_module(f"pytest_llmeval.{_module(entry.module)}"), name)
        for name, entry in drawn(errors.__doc__ or "").items()
        if entry.result == result
    ]


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
