"""Imports between the modules of the package, inside functions too.

python tests/support/import_graph.py     prints packages, levels, imports between them, cycles
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path

PACKAGE = "pytest_llmeval"
ROOT = Path(__file__).parents[2] / PACKAGE

LEVELS = (
    {"core"},
    {"sources", "prompts", "bias", "sandbox", "storage"},
    {"catalog", "models", "scorers", "metrics", "overlap"},
    {"evaluation", "gates", "interop", "testing"},
    {"runs"},
    {"reports"},
    {"plugin", "cli"},
)
"""Packages and loose modules by level, the lowest first: one imports only what is on lower levels."""

Graph = Mapping[str, set[str]]
"""Module → the modules of the package that it imports."""


def modules() -> dict[str, Path]:
    """Dotted names and files of all modules."""
    files = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = file.relative_to(ROOT.parent).with_suffix("").parts
        files[".".join(parts).removesuffix(".__init__")] = file
    return files


def import_graph() -> Graph:
    """Imports of every module, wherever in it they are."""
    files = modules()
    return {
        name: {imported for imported in _imported(file, files) if imported != name}
        for name, file in files.items()
    }


def package_of(module: str) -> str:
    """``gates`` for ``pytest_llmeval.gates.judge``; empty for the top level."""
    return module.partition(".")[2].partition(".")[0]


def package_imports(graph: Graph) -> dict[tuple[str, str], list[str]]:
    """(importing package, imported package) → the imports, as ``module: module``."""
    imports: dict[tuple[str, str], list[str]] = {}
    for module, imported in graph.items():
        for other in sorted(imported):
            pair = package_of(module), package_of(other)
            if all(pair) and pair[0] != pair[1]:
                imports.setdefault(pair, []).append(f"{module}: {other}")
    return imports


def upward(graph: Graph) -> list[str]:
    """Imports of a package on the same level or a higher one."""
    level = {name: number for number, names in enumerate(LEVELS) for name in names}
    return [
        line
        for (package, other), imports in package_imports(graph).items()
        for line in imports
        if level[other] >= level[package]
    ]


def cycles(graph: Graph) -> list[list[str]]:
    """Modules that import one another, directly or not (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in graph[module]:
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for module in graph:
        if module not in number:
            visit(module)
    return groups


def _imported(file: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in files else str(node.module)


def main() -> None:
    graph = import_graph()
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in modules().values())
    print(f"{len(graph)} modules, {lines:,} lines, {len(LEVELS)} levels")
    pairs = package_imports(graph)
    for number, names in reversed(list(enumerate(LEVELS))):
        for name in sorted(names):
            used = sorted(other for package, other in pairs if package == name)
            print(f"level {number}  {name:10} imports {', '.join(used) or 'nothing'}")
    print(f"{len(pairs)} imports between packages, {len(upward(graph))} upwards")
    print(f"{len(cycles(graph))} cycles")


if __name__ == "__main__":
    main()
