"""The part of a model spec behind the question mark: ``?key=value&…``."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Collection
from urllib.parse import parse_qsl

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.suggestions import suggestion

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


def read_query(
    text: str,
    query: str,
    known: Collection[str],
    hint: Callable[[str, Collection[str]], str] = suggestion,
) -> dict[str, str]:
    """The keys and values of a spec's query; ``text`` is the spec in messages.

    Raises ConfigError for a key that is not known (``hint`` says what was meant), given twice or
    without a value, and for a ``name`` that reports could not carry.
    """
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in known:
            raise ConfigError(f"{text}: unknown option {key!r}{hint(key, known)}")
        if key in options:
            raise ConfigError(f"{text}: option {key!r} is given twice")
        if not value:
            raise ConfigError(f"{text}: option {key!r} has no value; write {key}=…")
        options[key] = value
    if "name" in options and not _NAME.fullmatch(options["name"]):
        raise ConfigError(f"{text}: name {options['name']!r}: use letters, digits, '_', '.', '-'")
    return options
