"""Fixtures of a project that replace those of the plugin."""

from __future__ import annotations

import inspect
import os
from types import FunctionType
from typing import Any

import pytest

_VISIBLE: pytest.StashKey[dict[str, FunctionType | None]] = pytest.StashKey()
"""Kept by a module or class: the project's own fixtures that its tests see, by name."""


def project_fixture(node: pytest.Item, name: str) -> FunctionType | None:
    """The function of the project's own fixture that a test uses; None if it has none."""
    if node.parent is None or name not in getattr(node, "fixturenames", ()):
        return None
    visible = node.parent.stash.setdefault(_VISIBLE, {})  # a module may have thousands of tests
    if name not in visible:
        visible[name] = _visible_fixture(node.parent, name)
    return visible[name]


def _visible_fixture(node: Any, name: str) -> FunctionType | None:
    definitions = node.config.pluginmanager.get_plugin("funcmanage").getfixturedefs(name, node)
    function = inspect.unwrap(definitions[-1].func) if definitions else None
    own = function is not None and not function.__module__.startswith("pytest_llmeval.")
    return function if own else None


def place(function: FunctionType, config: pytest.Config) -> str:
    """File and line of a function, relative to the folder where pytest was started."""
    code = function.__code__
    file = os.path.relpath(code.co_filename, config.invocation_params.dir)
    return f"{file}:{code.co_firstlineno}"
