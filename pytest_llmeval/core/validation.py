"""What a user writes in Python, held to its types: each mistake is a ConfigError in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_llmeval.core.errors import ConfigError
from pytest_llmeval.core.errors import DataError


def check_kind(about: str, name: str, value: Any, kind: type) -> None:
    """Raise ConfigError unless ``value`` is of the class ``kind``."""
    if not isinstance(value, kind):
        given = type(value).__name__
        raise ConfigError(f"{about}: {name} is of type {given}, not {kind.__name__}")


def check_number(about: str, name: str, value: Any, lowest: int) -> None:
    """Raise ConfigError unless ``value`` is a whole number of at least ``lowest``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{about}: {name} = {value!r} is not a whole number")
    if value < lowest:
        raise ConfigError(f"{about}: {name} = {value} is below {lowest}")


def check_several(about: str, name: str, value: Any, kind: type) -> None:
    """Raise ConfigError unless ``value`` is a tuple (or list) of ``kind``."""
    if isinstance(value, kind):
        raise ConfigError(f"{about}: {name} takes a tuple: ({kind.__name__}, …), with its comma")
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ConfigError(
            f"{about}: {name} is of type {type(value).__name__}, not a tuple of {kind.__name__}"
        )
    for one in value:
        check_kind(about, f"one of {name}", one, kind)


def check_text(about: str, name: str, value: Any) -> None:
    """Raise DataError unless ``value``, a part of an item, is text."""
    if not isinstance(value, str):
        raise DataError(f"{about}: {name} is of type {type(value).__name__}, not text")
