"""What a project's ini file says of our options; every mistake in it is told in one line."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import nearest
from pytest_llmeval.plugin.pytest_internals import ini_names


def read(config: pytest.Config, name: str) -> Any:
    """What the ini file says; ConfigError for a value that pytest cannot convert."""
    try:
        return config.getini(name)
    except (pytest.UsageError, TypeError, ValueError) as error:
        told = str(error)
        raise ConfigError(told if name in told else f"{place(config, name)}: {told}") from error


def place(config: pytest.Config, name: str) -> str:
    """Where a setting was read, for messages; without an ini file it came by ``-o``."""
    return f"-o {name}" if config.inipath is None else f"{name} in {config.inipath}"


def refuse_misspelt(config: pytest.Config, known: Collection[str]) -> None:
    """Refuse a name that is nearly a ``known`` one, and nobody else's.

    pytest warns of it and goes on, so that gates which ``llm_treshold`` names would not be judged.
    """
    for name in ini_names(config):
        near = nearest(name, known) if name.startswith("llm_") else None
        if near is None or name in known:
            continue
        try:
            config.getini(name)
        except ValueError:
            raise ConfigError(
                f"{place(config, name)}: no such option; did you mean {near!r}?"
            ) from None
