"""What Python's own parser says about text that may be code. Nothing is compiled or run."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

# The parser takes seconds for a million characters. An answer to one task comes near neither.
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
    """Parses candidates until its budget is used up; from then on nothing parses.

    ``budget``: characters in all, up to where the parser stopped. A text that Python cannot
    parse for whatever reason is one that does not parse.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._left = budget

    def tree(self, source: str) -> ast.Module | None:
        found = self._attempt(source)
        return found if isinstance(found, ast.Module) else None

    def prefix(self, source: str) -> tuple[str, ast.Module] | None:
        """The longest beginning in whole lines that parses, as far as it is found in 20 tries.

        It is cut where the parser stopped, then where it stops in what is left, and so on.
        """
        lines = source[:LONGEST].split("\n")
        end = len(lines)
        for _ in range(_TRIES):
            beginning = "\n".join(lines[:end])
            found = self._attempt(beginning)
            if isinstance(found, ast.Module):
                return (beginning, found) if found.body else None
            end = min(found - 1, end - 1)
            if end <= 0:
                return None
        return None

    def segments(self, text: str) -> Iterator[tuple[str, ast.Module]]:
        """The runs of lines that are code, in a text where they stand between prose."""
        text = text[:LONGEST]
        position = 0
        starts = [0, *(match.start() for match in _START.finditer(text))][:_STARTS]
        for start in dict.fromkeys(starts):
            if start < position:
                continue
            found = self.prefix(text[start:])
            if found is not None:
                yield found
                position = start + len(found[0])

    def _attempt(self, source: str) -> ast.Module | int:
        """The tree, or the number of the line where parsing ended (from 1)."""
        if len(source) > min(LONGEST, self._left):
            return 1
        try:
            # Warnings about the model's escapes are nobody's here, and -W error makes them errors.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except SyntaxError as error:
            line = error.lineno or 1
            self._left -= len(source) * line // (source.count("\n") + 1)
            return line
        except _FAULTS:
            self._left -= len(source)
            return 1
        self._left -= len(source)
        return tree


def looks_like_code(text: str) -> bool:
    """Whether a line at the margin begins as an import, a function or a class does."""
    return _START.search(text) is not None


def bound(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that module-level statements bind; ``*`` for an import of everything."""
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


def missing(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that are read somewhere in the statements, bound nowhere in them, and not built in."""
    read: set[str] = set()
    known = set(_BUILTINS)
    for statement in statements:
        known |= bound([statement])
        for node in ast.walk(statement):
            match node:
                case ast.Name(ctx=ast.Load()):
                    read.add(node.id)
                case ast.Name():
                    known.add(node.id)
                case ast.arg():
                    known.add(node.arg)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    known.add(node.name)
                case ast.Import() | ast.ImportFrom():
                    known |= bound([node])
                case ast.ExceptHandler(name=str(name)):
                    known.add(name)
    return read - known


def acts(statements: Iterable[ast.stmt]) -> bool:
    """Whether the body of a function does anything: more than a docstring, ``...``, ``pass``."""
    return any(
        not isinstance(one, (ast.Pass, *_DEFINITIONS))
        and (not isinstance(one, ast.Expr) or isinstance(one.value, _DOING))
        for one in statements
    )


_DOING = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)


def gives_back(statements: Iterable[ast.stmt]) -> bool:
    """Whether the body of a function returns or yields something itself."""
    return any(isinstance(node, _GIVING) for node in _outside_functions(statements))


_GIVING = (ast.Return, ast.Yield, ast.YieldFrom)


def function(tree: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function of that name that a module ends up with."""
    found = [one for one in tree.body if isinstance(one, _FUNCTIONS) and one.name == name]
    return found[-1] if found else None


def assigned(tree: ast.Module, name: str) -> bool:
    """Whether the module makes the name a function by assignment (``area = lambda w, h: …``).

    ``area = area(3, 4)`` does not.
    """
    return any(
        isinstance(one, ast.Assign)
        and isinstance(one.value, (ast.Lambda, ast.Name, ast.Attribute, ast.Call))
        and name in bound([one])
        and not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(one.value))
        for one in tree.body
    )


def method_owner(tree: ast.Module, name: str) -> str | None:
    """The class whose method has that name and does something, as in answers for other judges."""
    for one in reversed(tree.body):
        if isinstance(one, ast.ClassDef):
            for inner in one.body:
                if isinstance(inner, _FUNCTIONS) and inner.name == name and acts(inner.body):
                    return one.name
    return None


def has_strays(tree: ast.Module) -> bool:
    """``return`` and the like outside a function, which the parser takes and Python does not."""
    return any(isinstance(node, (*_GIVING, ast.Await)) for node in _outside_functions(tree.body))


def _outside_functions(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def is_demonstration(statement: ast.stmt, entry_point: str) -> bool:
    """Whether a module-level statement only shows or tries the function, or is no code at all."""
    match statement:
        case ast.Assert():
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Expr(value=ast.Call()):
            used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            return not used.isdisjoint({entry_point, "print", "doctest"})
        case ast.Expr(value=value):
            return not isinstance(value, _DOING)  # a lone word is prose that happens to parse
        case _:
            return False


def futures_first(source: str, tree: ast.Module) -> str:
    """The text with its imports from ``__future__`` before everything else."""
    futures = [number for number, one in enumerate(tree.body) if _is_future(one)]
    first = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    if futures == list(range(first, first + len(futures))):
        return source
    return lines_of(source, filter(_is_future, tree.body)) + without(source, tree, _is_future)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def is_definition(statement: ast.stmt) -> bool:
    """Whether a statement only binds names: what one piece of code may lend another."""
    return isinstance(statement, (*_DEFINITIONS, ast.Assign, ast.AnnAssign))


def lines_of(source: str, statements: Iterable[ast.stmt]) -> str:
    """The text of statements, each in whole lines with its decorators and a line break."""
    lines = source.split("\n")
    return "".join(
        "\n".join(lines[_first_line(one) - 1 : one.end_lineno]) + "\n" for one in statements
    )


def without(source: str, tree: ast.Module, drop: Callable[[ast.stmt], bool]) -> str:
    """The text without the module-level statements to be dropped.

    One that shares a line with another statement stays.
    """
    lines: list[str | None] = list(source.split("\n"))
    taken: dict[int, int] = {}
    for one in tree.body:
        for number in range(_first_line(one), (one.end_lineno or one.lineno) + 1):
            taken[number] = taken.get(number, 0) + 1
    changed = False
    for one in tree.body:
        span = range(_first_line(one), (one.end_lineno or one.lineno) + 1)
        if drop(one) and all(taken[number] == 1 for number in span):
            changed = True
            for number in span:
                lines[number - 1] = None
    return "\n".join(line for line in lines if line is not None) if changed else source


def _first_line(statement: ast.stmt) -> int:
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)) and statement.decorator_list:
        return statement.decorator_list[0].lineno
    return statement.lineno
