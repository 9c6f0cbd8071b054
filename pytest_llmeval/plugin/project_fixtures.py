"""Fixtures of a project that override those of the plugin."""

from __future__ import annotations

import inspect
import os
from types import FunctionType
from typing import Any

import pytest

_VISIBLE: pytest.StashKey[dict[str, FunctionType | None]] = pytest.StashKey()
"""In the stash of a module or class: the overriding fixtures of its tests, by name."""


def project_fixture(node: pytest.Item, name: str) -> FunctionType | None:
    """Return the function of the project's fixture that a test uses; None if it has none."""
    if node.parent is None or name not in getattr(node, "fixturenames", ()):
        return None
    visible = node.parent.stash.setdefault(_VISIBLE, {})  # a module may have thousands of tests
    if name not in visible:
        visible[name] = _visible_fixture(node.parent, name)
    return visible[name]


def _visible_fixture(node: Any, name: str) -> FunctionType | None:
    definitions = node.config.pluginmanager.get_plugin("funcmanage").getfixturedefs(name, node)
    function = inspect.unwrap(definitions[-1].func) if definitions else None
    is_override = function is not None and not function.__module__.startswith("pytest_llmeval.")
    return function if is_override else None


def source_location(function: FunctionType, config: pytest.Config) -> str:
    """Return file and line of a function, relative to the invocation directory."""
    code = function.__code__
    file = os.path.relpath(code.co_filename, config.invocation_params.dir)
    return f"{file}:{code.co_firstlineno}"
