"""Fixtures of a project that replace those of the plugin."""

from __future__ import annotations

import inspect
import os
from types import FunctionType

import pytest


def project_fixture(node: pytest.Item, name: str) -> FunctionType | None:
    """The function of the project's own fixture that a test uses; None if it has none."""
    info = getattr(node, "_fixtureinfo", None)
    definitions = list(info.name2fixturedefs.get(name, [])) if info is not None else []
    function = inspect.unwrap(definitions[-1].func) if definitions else None
    own = function is not None and not function.__module__.startswith("pytest_llmeval.")
    return function if own else None


def place(function: FunctionType, config: pytest.Config) -> str:
    """File and line of a function, relative to the folder where pytest was started."""
    code = function.__code__
    file = os.path.relpath(code.co_filename, config.invocation_params.dir)
    return f"{file}:{code.co_firstlineno}"
