"""Fields of recorded answers, under their default names or those of a mapping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.item_ids import safe_id

KEYS = ("item", "text", "logprobs", "sample", "prompt_sha256", "finish_reason", "name")
"""Keys of a mapping; the value of ``name`` is not a field but the name of the model in reports."""

TEXT_FIELDS = ("prediction", "text", "response", "samples", "model_patch")
"""Fields that may contain the text of a record without a mapping."""

ID_FIELDS = ("item", "id", "instance_id")
"""Fields that may contain the item of a record without a mapping."""

_PLACEHOLDER = re.compile(r"\{([^{}:]+)(?::0(\d{1,2})d?)?\}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")


def read_mapping(spec: str, query: str) -> dict[str, str]:
    """Parse the mapping in the query of a spec; raise ConfigError if it is invalid."""
    mapping: dict[str, str] = {}
    for key, value in parse_qsl(query.replace("+", "%2B"), keep_blank_values=True):
        if key not in KEYS:
            raise ConfigError(f"model spec {spec!r}: unknown key {key!r}{suggestion(key, KEYS)}")
        if key in mapping or not value:
            fault = "is given twice" if key in mapping else "names no field"
            raise ConfigError(f"model spec {spec!r}: {key} {fault}")
        mapping[key] = value
    if "name" in mapping and not _NAME.fullmatch(mapping["name"]):
        raise ConfigError(
            f"model spec {spec!r}: name {mapping['name']!r}: use letters, digits, '_', '.', '-'"
        )
    if re.search(r"[{}]", _PLACEHOLDER.sub("", mapping.get("item", ""))):
        raise ConfigError(
            f"model spec {spec!r}: item {mapping['item']!r}: write {{field}} or, for a number with"
            " leading zeros, {field:04d}"
        )
    return mapping


class Fields:
    """Reader of the parts of a record under the field names of a mapping."""

    def __init__(self, mapping: Mapping[str, str]) -> None:
        self._mapping = mapping

    def value(self, row: dict[str, Any], key: str) -> Any:
        """Return the value of the field that the mapping names for a key, or None."""
        return _look_up(row, self._mapping.get(key, key))

    def texts(self, row: dict[str, Any]) -> list[str | None]:
        """Return the texts of a record, one per sample; nested lists (of lm-eval) are flattened."""
        names = (self._mapping["text"],) if "text" in self._mapping else TEXT_FIELDS
        for name in names:
            value = _look_up(row, name)
            if value is not None:
                return [_as_text(text) for text in _flat(value)]
            if name == "model_patch" and name in row:
                return [""]  # an agent that came to no patch
        return []

    def item_id(self, row: dict[str, Any], position: int, where: str) -> str:
        """Return the item id of a record; raise DataError if it has none.

        ``position``: index of the record in the file, from 0. ``where``: the record in messages.
        """
        pattern = self._mapping.get("item")
        if pattern is not None and "{" in pattern:

            def filled(match: re.Match[str]) -> str:
                name, width = match.groups()
                value = position if name == "#" else _look_up(row, name)
                if isinstance(value, bool) or not isinstance(value, str | int):
                    raise DataError(f"{where}: names no item (no field {name!r})")
                return str(value).zfill(int(width or 0))

            return safe_id(_PLACEHOLDER.sub(filled, pattern))
        for name in (pattern,) if pattern is not None else ID_FIELDS:
            value = _look_up(row, name)
            if isinstance(value, str | int):
                return safe_id(str(value))
        subject, number = row.get("subject"), row.get("row")
        if pattern is None and isinstance(subject, str) and isinstance(number, int):
            return row_id(subject, number)
        default = f"{', '.join(ID_FIELDS)}, or subject and row"
        wanted = f"field {pattern!r}" if pattern is not None else default
        raise DataError(f"{where}: names no item ({wanted})")


def _look_up(row: Any, name: str) -> Any:
    """Return the field with this name or dotted path, or None."""
    if isinstance(row, dict) and name in row:
        return row[name]
    head, dot, rest = name.partition(".")
    return _look_up(row[head], rest) if dot and isinstance(row, dict) and head in row else None


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for element in value:
            yield from _flat(element)
    else:
        yield value


def _as_text(value: Any) -> str | None:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    return None


def prompt_hash(value: Any, where: str) -> bytes | None:
    """Return the hash of the recorded prompt, or None; raise DataError if it is invalid."""
    if not value:
        return None
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: prompt_sha256 is not a hash in hexadecimal") from None
