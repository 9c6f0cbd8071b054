"""The layers of ARCHITECTURE.md: imports go downwards only, and no modules import one another."""

from __future__ import annotations

import ast

import pytest

from support.import_graph import LEVELS
from support.import_graph import ROOT
from support.import_graph import cycles
from support.import_graph import import_graph
from support.import_graph import modules
from support.import_graph import upward
from support.paths import REPOSITORY

PACKAGES = {file.parent.name for file in ROOT.glob("*/__init__.py")}
LONGEST = 450
"""Lines that a module may have."""


def test_every_package_has_a_level():
    assert set().union(*LEVELS) - {"testing"} == PACKAGES


def test_no_module_is_loose():
    assert {file.name for file in ROOT.glob("*.py")} <= {"__init__.py", "testing.py"}


def test_imports_go_downwards():
    assert upward(import_graph()) == []


def test_no_modules_import_one_another():
    assert cycles(import_graph()) == []


def test_an_upward_import_and_a_cycle_are_found():
    graph = {
        "pytest_llmeval.core.a": {"pytest_llmeval.runs.b"},
        "pytest_llmeval.runs.b": {"pytest_llmeval.runs.c"},
        "pytest_llmeval.runs.c": {"pytest_llmeval.core.a"},
    }
    assert upward(graph) == ["pytest_llmeval.core.a: pytest_llmeval.runs.b"]
    assert cycles(graph) == [sorted(graph)]


@pytest.mark.parametrize("name", modules())
def test_a_module_has_a_readable_size(name):
    assert len(modules()[name].read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_modules_of_tests_have_a_readable_size():
    lines = {
        str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8").count("\n")
        for path in (REPOSITORY / "tests").rglob("*.py")
    }
    assert {name: number for name, number in lines.items() if number > LONGEST} == {}


def test_the_page_names_every_package():
    page = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    missing = [name for name in PACKAGES if f"`{name}/`" not in page]
    assert missing == []


def test_no_submodule_takes_the_place_of_a_name_of_its_package():
    """Python binds a submodule in its package when it is imported, over what ``__init__`` has there."""
    assert [name for file in ROOT.rglob("__init__.py") for name in _taken(file)] == []


def _taken(file):
    """Names of a package that importing a submodule replaces; not those that come from there."""
    submodules = {module_file.stem for module_file in file.parent.glob("*.py")} - {"__init__"}
    submodules |= {module_file.parent.name for module_file in file.parent.glob("*/__init__.py")}
    package = ".".join(file.parent.relative_to(ROOT.parent).parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = set()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = {node.name}
        elif isinstance(node, ast.ImportFrom) and node.module != package:
            names = {alias.asname or alias.name for alias in node.names}
            names -= {(node.module or "").rpartition(".")[2]}
        yield from (f"{package}.{name}" for name in sorted(names & submodules))
