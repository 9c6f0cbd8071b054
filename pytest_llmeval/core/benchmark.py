"""Benchmark: items and the protocols that they can be asked under."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from pytest_llmeval.core.errors import ConfigError
from pytest_llmeval.core.items import Dataset
from pytest_llmeval.core.protocol import Protocol
from pytest_llmeval.core.validation import check_kind
from pytest_llmeval.core.validation import check_several

Exclusion = tuple[tuple[str, tuple[str | int | float | None, ...]], ...]
"""Fields with the values whose items are left out."""


@dataclass(frozen=True)
class Benchmark:
    """A named, versioned set of items with the protocols it can be asked under.

    ``source`` loads the items; it is given the data folder of the run (``--llm-data``) or
    None, and is called at most once per process. The first protocol is the default.

    ``exclude`` leaves items out: their ids, or field → values, an item being left out where any of
    its fields has one of the values (``{"error_type": ["wrong_groundtruth"]}``). Of another
    benchmark it is set with ``dataclasses.replace(mmlu(), exclude=[…])``. Shots stay what they are.
    """

    name: str
    source: Callable[[Any], Dataset]
    protocols: tuple[Protocol, ...]
    version: str = "1"
    exclude: Collection[str] | Mapping[str, Any] = field(default=(), hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", self.name):
            raise ConfigError(f"benchmark name {self.name!r}: use letters, digits, '_', '.', '-'")
        about = f"benchmark {self.name!r}"
        if not callable(self.source):
            raise ConfigError(
                f"{about}: source is of type {type(self.source).__name__}, not a function that"
                " loads the items (pytest_llmeval.sources.jsonl makes one of a file's name)"
            )
        check_several(about, "protocols", self.protocols, Protocol)
        if not self.protocols:
            raise ConfigError(f"{about} has no protocol")
        names = [protocol.name for protocol in self.protocols]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"{about} has several protocols called {name!r}")
        _exclusion(about, self.exclude)

    @property
    def exclusion(self) -> Exclusion:
        """``exclude`` as fields with their values, an id being the value of ``id``."""
        return _exclusion(f"benchmark {self.name!r}", self.exclude)


def _exclusion(about: str, value: Any) -> Exclusion:
    """Ids, or field → one value or several, as pairs; ConfigError for anything else."""
    pairs = value.items() if isinstance(value, Mapping) else [("id", value)]
    made = tuple((name, _several(values)) for name, values in pairs)
    for name, values in made:
        check_kind(about, "a field of exclude", name, str)
        for one in values:
            if not (one is None or isinstance(one, str | int | float)):
                raise ConfigError(
                    f"{about}: exclude takes ids, or fields with their values, not"
                    f" {type(one).__name__} ({one!r:.60})"
                )
    return tuple((name, values) for name, values in made if values)


def _several(values: Any) -> tuple[Any, ...]:
    if isinstance(values, set | frozenset):
        return tuple(sorted(values, key=repr))
    return tuple(values) if isinstance(values, list | tuple) else (values,)
