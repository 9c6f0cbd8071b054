"""Values of the plugin's options in the ini file, with one-line errors."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import nearest
from pytest_llmeval.plugin.pytest_internals import ini_names


def read_value(config: pytest.Config, name: str) -> Any:
    """Return the value of an option; raise ConfigError if pytest cannot convert it."""
    try:
        return config.getini(name)
    except (pytest.UsageError, TypeError, ValueError) as error:
        message = str(error)
        located = message if name in message else f"{setting_source(config, name)}: {message}"
        raise ConfigError(located) from error


def setting_source(config: pytest.Config, name: str) -> str:
    """Return where a setting was read, for messages; without an ini file it is from ``-o``."""
    return f"-o {name}" if config.inipath is None else f"{name} in {config.inipath}"


def refuse_misspelt(config: pytest.Config, names: Collection[str]) -> None:
    """Raise ConfigError for an unregistered setting that is nearly one of ``names``.

    pytest only warns, and the gates of a file named by ``llm_treshold`` would not be judged.
    """
    for name in ini_names(config):
        near = nearest(name, names) if name.startswith("llm_") else None
        if near is None or name in names:
            continue
        try:
            config.getini(name)
        except ValueError:
            raise ConfigError(
                f"{setting_source(config, name)}: no such option; did you mean {near!r}?"
            ) from None
