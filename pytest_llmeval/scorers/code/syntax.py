"""Analysis of text that may be code with Python's parser; nothing is compiled or run."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

# The parser takes seconds for a million characters. Answers to one task are far below both limits.
LONGEST = 100_000
BUDGET = 300_000
_TRIES = 20
_STARTS = 30

_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}
_START = re.compile(
    r"^(?:from\s+[\w.]+\s+import\b|import\s+\w|(?:async\s+)?def\s+\w|class\s+\w|@\w)", re.MULTILINE
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)


class Parser:
    """Parses texts until its budget is used up; after that no text parses.

    ``budget``: total number of characters, up to where the parser stopped. Any failure of the parser
    means that the text does not parse.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget

    def tree(self, source: str) -> ast.Module | None:
        """Return the syntax tree of a text, or None if it does not parse."""
        result = self._attempt(source)
        return result if isinstance(result, ast.Module) else None

    def prefix(self, source: str) -> tuple[str, ast.Module] | None:
        """Return the longest beginning in whole lines that parses, and its tree, or None.

        The text is truncated where the parser stops, up to 20 times.
        """
        lines = source[:LONGEST].split("\n")
        end = len(lines)
        for _ in range(_TRIES):
            beginning = "\n".join(lines[:end])
            result = self._attempt(beginning)
            if isinstance(result, ast.Module):
                return (beginning, result) if result.body else None
            end = min(result - 1, end - 1)
            if end <= 0:
                return None
        return None

    def segments(self, text: str) -> Iterator[tuple[str, ast.Module]]:
        """Yield the runs of lines that are code, with their trees, in a text with prose."""
        text = text[:LONGEST]
        position = 0
        starts = [0, *(match.start() for match in _START.finditer(text))][:_STARTS]
        for start in dict.fromkeys(starts):
            if start < position:
                continue
            segment = self.prefix(text[start:])
            if segment is not None:
                yield segment
                position = start + len(segment[0])

    def _attempt(self, source: str) -> ast.Module | int:
        """Return the tree, or the number of the line where parsing ended (from 1)."""
        if len(source) > min(LONGEST, self._budget):
            return 1
        try:
            # Warnings about escapes in the model's code are irrelevant, and errors under -W error.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except SyntaxError as error:
            line = error.lineno or 1
            self._budget -= len(source) * line // (source.count("\n") + 1)
            return line
        except _FAULTS:
            self._budget -= len(source)
            return 1
        self._budget -= len(source)
        return tree


def looks_like_code(text: str) -> bool:
    """Return True if an unindented line begins an import, a function or a class."""
    return _START.search(text) is not None


def bound_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that module-level statements bind; ``*`` for a star import."""
    names: set[str] = set()
    for statement in statements:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(statement.name)
            case ast.Import() | ast.ImportFrom():
                names |= {(a.asname or a.name).partition(".")[0] for a in statement.names}
            case _:
                names |= {
                    node.id
                    for node in ast.walk(statement)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                }
    return names


def unbound_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that statements read but do not bind, without builtins."""
    read: set[str] = set()
    bound = set(_BUILTINS)
    for statement in statements:
        bound |= bound_names([statement])
        for node in ast.walk(statement):
            match node:
                case ast.Name(ctx=ast.Load()):
                    read.add(node.id)
                case ast.Name():
                    bound.add(node.id)
                case ast.arg():
                    bound.add(node.arg)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    bound.add(node.name)
                case ast.Import() | ast.ImportFrom():
                    bound |= bound_names([node])
                case ast.ExceptHandler(name=str(name)):
                    bound.add(name)
    return read - bound


def has_effect(statements: Iterable[ast.stmt]) -> bool:
    """Return True if a body has more than definitions, a docstring, ``...`` and ``pass``."""
    return any(
        not isinstance(statement, (ast.Pass, *_DEFINITIONS))
        and (not isinstance(statement, ast.Expr) or isinstance(statement.value, _DOING))
        for statement in statements
    )


_DOING = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)


def returns_value(statements: Iterable[ast.stmt]) -> bool:
    """Return True if the body of a function contains its own ``return`` or ``yield``."""
    return any(isinstance(node, _GIVING) for node in _outside_functions(statements))


_GIVING = (ast.Return, ast.Yield, ast.YieldFrom)


def find_function(tree: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the last function of that name in a module, or None."""
    functions = [node for node in tree.body if isinstance(node, _FUNCTIONS) and node.name == name]
    return functions[-1] if functions else None


def is_assigned(tree: ast.Module, name: str) -> bool:
    """Return True if an assignment defines a function of that name (``area = lambda w, h: …``).

    ``area = area(3, 4)`` does not define one.
    """
    return any(
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, (ast.Lambda, ast.Name, ast.Attribute, ast.Call))
        and name in bound_names([statement])
        and not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(statement.value))
        for statement in tree.body
    )


def method_owner(tree: ast.Module, name: str) -> str | None:
    """Return the last class with a non-empty method of that name, as on other judging sites."""
    for statement in reversed(tree.body):
        if isinstance(statement, ast.ClassDef):
            for inner in statement.body:
                if isinstance(inner, _FUNCTIONS) and inner.name == name and has_effect(inner.body):
                    return statement.name
    return None


def has_stray_return(tree: ast.Module) -> bool:
    """Return True for ``return``, ``yield`` or ``await`` outside a function.

    The parser accepts these, but the compiler does not.
    """
    return any(isinstance(node, (*_GIVING, ast.Await)) for node in _outside_functions(tree.body))


def _outside_functions(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def is_demonstration(statement: ast.stmt, entry_point: str) -> bool:
    """Return True if a module-level statement only demonstrates the function or is prose."""
    match statement:
        case ast.Assert():
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Expr(value=ast.Call()):
            used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            return not used.isdisjoint({entry_point, "print", "doctest"})
        case ast.Expr(value=value):
            return not isinstance(value, _DOING)  # a lone word is prose that parses
        case _:
            return False


def futures_first(source: str, tree: ast.Module) -> str:
    """Return the text with its imports from ``__future__`` before all other statements."""
    futures = [number for number, node in enumerate(tree.body) if _is_future(node)]
    first = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    if futures == list(range(first, first + len(futures))):
        return source
    return source_of(source, filter(_is_future, tree.body)) + remove_statements(
        source, tree, _is_future
    )


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def is_definition(statement: ast.stmt) -> bool:
    """Return True if a statement only binds names, so that it can be copied to other code."""
    return isinstance(statement, (*_DEFINITIONS, ast.Assign, ast.AnnAssign))


def source_of(source: str, statements: Iterable[ast.stmt]) -> str:
    """Return the text of statements, each in whole lines with its decorators and a line break."""
    lines = source.split("\n")
    return "".join(
        "\n".join(lines[_first_line(node) - 1 : node.end_lineno]) + "\n" for node in statements
    )


def remove_statements(source: str, tree: ast.Module, drop: Callable[[ast.stmt], bool]) -> str:
    """Return the text without the module-level statements for which ``drop`` returns True.

    A statement that shares a line with another one is not removed.
    """
    lines: list[str | None] = list(source.split("\n"))
    uses: dict[int, int] = {}
    for node in tree.body:
        for number in range(_first_line(node), (node.end_lineno or node.lineno) + 1):
            uses[number] = uses.get(number, 0) + 1
    changed = False
    for node in tree.body:
        span = range(_first_line(node), (node.end_lineno or node.lineno) + 1)
        if drop(node) and all(uses[number] == 1 for number in span):
            changed = True
            for number in span:
                lines[number - 1] = None
    return "\n".join(line for line in lines if line is not None) if changed else source


def _first_line(statement: ast.stmt) -> int:
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)) and statement.decorator_list:
        return statement.decorator_list[0].lineno
    return statement.lineno
