"""Records on disk: the append-only ``records.jsonl``, one JSON object per line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from sys import intern
from types import UnionType
from typing import Any
from typing import get_args
from typing import get_type_hints

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.storage.format2 import with_arm
from pytest_llmeval.storage.line_writer import LineWriter
from pytest_llmeval.storage.line_writer import whole_lines

_FIELDS = tuple(field.name for field in fields(Record))
_NAMES = frozenset(_FIELDS)
_DEFAULTS = {field.name: field.default for field in fields(Record)}


def _types(hint: Any) -> frozenset[type]:
    """Return the JSON types that a field of a record accepts; a float field accepts integers."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return frozenset(kinds) | ({int} if float in kinds else frozenset())


# `outcome` and `logprobs` are checked when they are converted.
_TYPES = {
    name: _types(hint)
    for name, hint in get_type_hints(Record).items()
    if name not in ("outcome", "logprobs")
}
_NUMBERS = frozenset((int, float))
_SHARED = (
    "model",
    "benchmark",
    "scorer",
    "subject",
    "protocol",
    "data",
    "model_fingerprint",
    "gold",
)


def to_line(record: Record) -> str:
    """Return a record as one line of JSON, without the fields that hold their default."""
    value = {
        name: entry
        for name in _FIELDS
        if (entry := getattr(record, name)) != _DEFAULTS[name] or name == "outcome"
    }
    if record.logprobs:  # JSON has no infinity; an impossible choice is written as null
        value["logprobs"] = [None if x == -math.inf else x for x in record.logprobs]
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def from_line(line: str | bytes) -> Record:
    """Parse a line that ``to_line`` wrote. Raises ValueError for any other line."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("not a record") from None
    if not isinstance(value, dict) or not value.keys() <= _NAMES:
        raise ValueError("not a record")
    for name, entry in value.items():
        if name in _TYPES and type(entry) not in _TYPES[name]:
            raise ValueError(f"not a record: {name} is {repr(entry)[:40]}")
    try:
        value["outcome"] = Outcome(value["outcome"])
        scores = value.get("logprobs", ())
        if any(x is not None and type(x) not in _NUMBERS for x in scores):
            raise TypeError("logprobs are not numbers")
        value["logprobs"] = tuple(-math.inf if x is None else x for x in scores)
        for name in _SHARED:  # one copy for thousands of records
            if name in value and value[name] is not None:
                value[name] = intern(value[name])
        return Record(**value)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a record: {error}") from None


class RecordWriter(LineWriter):
    """Writer of ``records.jsonl``, which other threads and processes append to at the same time."""

    def append(self, *records: Record) -> None:
        """Write all records or none, before returning. Raises RunError if they cannot be written."""
        # "replace": a lone surrogate in a name or message must not cost the record.
        self.write("".join(map(to_line, records)).encode("utf-8", "replace"))


def read_records(path: Path, earlier_arms: Mapping[str, str] | None = None) -> Iterator[Record]:
    """Yield the records of a file in the order written; a torn last line is ignored.

    A later record for the same answer (``key``) replaces an earlier one; the caller has to apply
    this. ``earlier_arms``: ``format2.arms_by_protocol`` for a folder of format 2. Raises RunError,
    naming the line, for a line that is not a record.
    """
    for number, line in whole_lines(path):
        try:
            record = from_line(line)
            yield record if earlier_arms is None else with_arm(record, earlier_arms)
        except ValueError as error:
            raise RunError(f"{path}, line {number}: damaged record ({error})") from None


def latest_records(path: Path, earlier_arms: Mapping[str, str] | None = None) -> list[Record]:
    """Return the records of ``read_records`` that no later record replaces."""
    records: list[Record | None] = []
    # Result → answer → index of the record. A `key` per record would take half of the record's own
    # memory.
    places: dict[tuple[str, str, str], dict[object, int]] = {}
    for record in read_records(path, earlier_arms):
        result = places.setdefault((record.model, record.benchmark, record.scorer), {})
        is_plain = not record.arm and not record.sample
        answer = record.item if is_plain else (record.item, *record.answer_key)
        if answer in result:
            records[result[answer]] = None
        result[answer] = len(records)
        records.append(record)
    return [record for record in records if record is not None]


def key(record: Record) -> tuple[Any, ...]:
    """Return the identity of a record; a later record with the same key replaces an earlier one."""
    return (record.model, record.benchmark, record.scorer, record.item, *record.answer_key)
