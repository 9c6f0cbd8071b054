"""Names, hashes and configurations of imported results, free of what differs between machines."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import canonical_json
from pytest_llmeval.scorers import SCORERS

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{6,16}\b")
# /data/x, ~/x, ./x, ../x, C:\x and file:///data/x.
# Characters of regular expressions and templates are left out, and a slash alone may be a prompt's.
_PATH = re.compile(
    r"""(?:file://)?(?:/[\w.@~-]+/|~/|\.{1,2}/|[A-Za-z]:[\\/])[^\s(){}<>\[\]"'|*?^$]*[\w.-][\\/]?"""
)


def bare_name(text: str) -> str:
    """Return ``text`` as a bare key of TOML: other characters become underscores.

    Raises ConfigError if nothing readable is left.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")
    if not name:
        raise ConfigError(f"{text!r} has no letter or digit for a name: give one with --name")
    return name


def benchmark_name(prefix: str, text: str) -> str:
    """Return the name of an imported benchmark: ``lmeval_mmlu``; the prefix is not repeated."""
    return f"{prefix}_{bare_name(text.removeprefix(f'{prefix}_'))}"


def scorer_name(prefix: str, *parts: str) -> str:
    """Return the name of an imported scorer, ``lmeval_acc_norm``, which no scorer of ours has."""
    name = "_".join((prefix, *(bare_name(part) for part in parts)))
    while name in SCORERS:
        name += "_"
    return name


def is_path(text: str) -> bool:
    """Return whether a name is the path of a file or folder: absolute, or relative to a folder."""
    return re.match(r"(?:file:|/|~|\.{1,2}[/\\]|[A-Za-z]:[\\/])", text) is not None


def model_name(log: str, name: str, given: str | None) -> str:
    """Return the model's name: ``given`` if there is one.

    Raises ConfigError if the log names none, or names it by a path, which may hold another model
    tomorrow.
    """
    if given is not None:
        if not given.strip():
            raise ConfigError("--model is empty")
        return given
    if not name:
        raise ConfigError(f"{log} does not name its model: add --model NAME")
    if is_path(name):
        raise ConfigError(f"{log} names its model by a path ({name}): add --model NAME")
    return name


def cleaned(value: Any) -> Any:
    """Return a configuration without memory addresses and without the folders of local paths.

    Two runs of one configuration on two machines give the same value.
    """
    if isinstance(value, Mapping):
        return {str(key): cleaned(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(entry) for entry in value]
    if isinstance(value, str):
        text = _ADDRESS.sub("at 0x", value)
        return re.split(r"[\\/]", text.rstrip("\\/"))[-1] if _PATH.fullmatch(text) else text
    if isinstance(value, float) and value.is_integer():
        return int(value)  # JSON writers differ in 1 and 1.0
    return value


def without(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a mapping without some of its keys."""
    return {key: entry for key, entry in value.items() if key not in keys}


def short_hash(*values: Any) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of JSON values."""
    digest = hashlib.sha256()
    for value in values:
        digest.update(canonical_json(value))
    return digest.hexdigest()[:16]


class SetHash:
    """Hash of values by key, in which the order of arrival does not matter."""

    def __init__(self) -> None:
        self._parts: dict[str, bytes] = {}

    def add(self, key: str, value: Any) -> None:
        """Add the JSON value of a key; of several values of a key the first counts."""
        if key not in self._parts:
            self._parts[key] = hashlib.sha256(canonical_json([key, value])).digest()

    def same(self, key: str, value: Any) -> bool:
        """Return whether a key has this value."""
        return self._parts.get(key) == hashlib.sha256(canonical_json([key, value])).digest()

    def hexdigest(self) -> str:
        """Return 16 hexadecimal digits."""
        digest = hashlib.sha256()
        for key in sorted(self._parts):
            digest.update(self._parts[key])
        return digest.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self._parts)
