"""Benchmark: items and the protocols that they can be asked under."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .checks import check_several
from .errors import ConfigError
from .items import Dataset
from .protocol import Protocol


@dataclass(frozen=True)
class Benchmark:
    """A named, versioned set of items with the protocols it can be asked under.

    ``source`` loads the items; it is given the data folder of the run (``--llm-data``) or
    None, and is called at most once per process. The first protocol is the default.
    """

    name: str
    source: Callable[[Any], Dataset]
    protocols: tuple[Protocol, ...]
    version: str = "1"

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
