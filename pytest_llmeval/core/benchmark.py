"""Benchmark: items and the protocols under which they can be evaluated."""

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
"""(field, values) pairs: an item whose field has one of the values is excluded."""


@dataclass(frozen=True)
class Benchmark:
    """A named, versioned set of items with the protocols under which it can be evaluated.

    ``source`` loads the items; it is given the data folder of the run (``--llm-data``) or
    None, and is called at most once per process. The first protocol is the default. Raises
    ConfigError for a field that cannot be used.

    ``exclude`` removes items: a collection of ids, or a mapping field → values, which removes an
    item if any of the fields has one of its values (``{"error_type": ["wrong_groundtruth"]}``).
    For an existing benchmark use ``dataclasses.replace(mmlu(), exclude=[…])``. The few-shot pool
    is not changed.

    For tests of contamination: ``subject_files`` if every subject is published as a file of its
    own, so that the order of items is that within a subject; ``drawn_orders`` if the published
    orders of options and items were selected at random, so that they need no check.
    """

    name: str
    source: Callable[[Any], Dataset]
    protocols: tuple[Protocol, ...]
    version: str = "1"
    exclude: Collection[str] | Mapping[str, Any] = field(default=(), hash=False)
    subject_files: bool = False
    drawn_orders: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", self.name):
            raise ConfigError(f"benchmark name {self.name!r}: use letters, digits, '_', '.', '-'")
        owner = f"benchmark {self.name!r}"
        if not callable(self.source):
            raise ConfigError(
                f"{owner}: source is of type {type(self.source).__name__}, not a function that"
                " loads the items (pytest_llmeval.sources.jsonl makes one from the name of a file)"
            )
        check_several(owner, "protocols", self.protocols, Protocol)
        if not self.protocols:
            raise ConfigError(f"{owner} has no protocol")
        names = [protocol.name for protocol in self.protocols]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"{owner} has several protocols called {name!r}")
        _exclusion(owner, self.exclude)
        check_kind(owner, "subject_files", self.subject_files, bool)
        check_kind(owner, "drawn_orders", self.drawn_orders, bool)

    @property
    def exclusion(self) -> Exclusion:
        """``exclude`` as (field, values) pairs; ids are values of the field ``id``."""
        return _exclusion(f"benchmark {self.name!r}", self.exclude)


def _exclusion(owner: str, value: Any) -> Exclusion:
    """Return ids, or field → value or values, as pairs; raise ConfigError for anything else."""
    pairs = value.items() if isinstance(value, Mapping) else [("id", value)]
    exclusion = tuple((name, _several(values)) for name, values in pairs)
    for name, values in exclusion:
        check_kind(owner, "a field of exclude", name, str)
        for excluded in values:
            if not (excluded is None or isinstance(excluded, str | int | float)):
                raise ConfigError(
                    f"{owner}: exclude takes ids, or fields with their values, not"
                    f" {type(excluded).__name__} ({excluded!r:.60})"
                )
    return tuple((name, values) for name, values in exclusion if values)


def _several(values: Any) -> tuple[Any, ...]:
    if isinstance(values, set | frozenset):
        return tuple(sorted(values, key=repr))
    return tuple(values) if isinstance(values, list | tuple) else (values,)
