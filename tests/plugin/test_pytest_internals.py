"""One module alone uses what is not public in pytest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_llmeval

PACKAGE = Path(pytest_llmeval.__file__).parent
ALLOWED = PACKAGE / "plugin" / "pytest_internals.py"
OTHER_LIBRARIES = {
    PACKAGE / "catalog" / "lm_eval",  # the filters of lm-eval's tasks
    PACKAGE / "models" / "hf",  # torch and transformers
    PACKAGE / "models" / "ray",  # the function with which Ray prints
    PACKAGE / "sandbox",  # a socket of docker's; nothing there runs beside pytest's objects
}
NAMED_TUPLE = {"_asdict", "_fields", "_replace"}


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def own_names(tree: ast.AST) -> set[str]:
    """Private names that a module defines: functions, variables, and attributes of ``self``."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            names.add(node.attr)
    return names


def foreign_private_access(source: str) -> Iterator[str]:
    """Imports of ``_pytest``, and private names of objects that the module does not define."""
    tree = ast.parse(source)
    own = own_names(tree) | NAMED_TUPLE
    for node in ast.walk(tree):
        names: list[object] = []
        if isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] != PACKAGE.name:
            names = node.module.split(".")
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr"):
            names = [getattr(node.args[1], "value", None)]
        yield from (
            f"line {node.lineno}: {name}" for name in names if is_private(name) and name not in own
        )


@pytest.mark.parametrize(
    "source",
    [
        "from _pytest.junitxml import xml_key",
        "import _pytest.fixtures",
        "def f():\n    from xdist._path import visit_path",
        "config._inicfg",
        "def f(reporter):\n    return reporter._tw.fullwidth",
        "getattr(node, '_fixtureinfo', None)",
        "hasattr(config, '_inicfg')",
        "class Report(TestReport):\n    def f(self):\n        return self._to_json()",
        "fixturedef._scope = 1",
    ],
)
def test_private_access_is_found(source: str) -> None:
    assert list(foreign_private_access(source))


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def f(self, other):\n        self._x = 1\n        return other._x",
        "row._replace(a=1)",
        "f.__name__",
        "import pytest",
    ],
)
def test_own_private_names_are_not_private_access(source: str) -> None:
    assert not list(foreign_private_access(source))


def test_private_parts_of_pytest_are_used_in_one_module() -> None:
    modules = [
        file
        for file in PACKAGE.rglob("*.py")
        if file != ALLOWED and not OTHER_LIBRARIES & set(file.parents)
    ]
    assert len(modules) > 100
    uses = {
        str(file.relative_to(PACKAGE)): access
        for file in modules
        if (access := list(foreign_private_access(file.read_text(encoding="utf-8"))))
    }
    assert not uses
    assert list(foreign_private_access(ALLOWED.read_text(encoding="utf-8")))
