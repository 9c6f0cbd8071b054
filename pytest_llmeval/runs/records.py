"""Records on disk: ``records.jsonl``, append-only, one JSON object a record.

Several processes append to one file. Every append is one locked write of whole lines, so a
line is torn only when the process or the machine stops within it; the next writer cuts such
a tail off, and readers ignore it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import Any
from typing import get_args
from typing import get_type_hints

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError

try:
    import fcntl
except ImportError:  # Windows: appends are not locked, so run without xdist there
    fcntl = None  # type: ignore[assignment]

_FIELDS = tuple(field.name for field in fields(Record))
_DEFAULTS = {field.name: field.default for field in fields(Record)}


def _types(hint: Any) -> frozenset[type]:
    """What JSON has for a field of a record; a whole number may stand for any number."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return frozenset(kinds) | ({int} if float in kinds else frozenset())


# `outcome` and `logprobs` are converted, and checked by that.
_TYPES = {
    name: _types(hint)
    for name, hint in get_type_hints(Record).items()
    if name not in ("outcome", "logprobs")
}
_NUMBERS = frozenset((int, float))


def to_line(record: Record) -> str:
    """A record as one line of JSON; fields that hold their default are left out."""
    value = {
        name: entry
        for name in _FIELDS
        if (entry := getattr(record, name)) != _DEFAULTS[name] or name == "outcome"
    }
    if record.logprobs:  # JSON has no infinity; an impossible choice is written as null
        value["logprobs"] = [None if x == -math.inf else x for x in record.logprobs]
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def from_line(line: str | bytes) -> Record:
    """The record that ``to_line`` wrote. Raises ValueError for anything else."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("not a record") from None
    if not isinstance(value, dict) or not value.keys() <= set(_FIELDS):
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
        return Record(**value)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a record: {error}") from None


class RecordWriter:
    """Appends records to a file that other processes append to at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def append(self, *records: Record) -> None:
        """Write records and hand them to the operating system before returning.

        Raises RunError when they cannot be written in full (a full disk, say); what was
        written of them is taken back, so that the file stays readable.
        """
        # "replace": a lone surrogate in a name or message must not cost the record.
        data = "".join(map(to_line, records)).encode("utf-8", "replace")
        try:
            if self._handle is None:
                flags = os.O_CREAT | os.O_RDWR | os.O_APPEND
                self._handle = os.open(self._path, flags, 0o644)
            with _locked(self._handle):
                size = _cut_torn_tail(self._handle)
                try:
                    if os.write(self._handle, data) != len(data):
                        raise OSError("no space left on device")
                except OSError:
                    os.ftruncate(self._handle, size)
                    raise
        except OSError as error:
            reason = error.strerror or str(error)
            raise RunError(f"cannot write {self._path}: {reason}") from error

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file in the order written; a torn last line is ignored.

    A later record for the same item and sample is meant to replace the earlier: that is the
    caller's to apply. Raises RunError, naming the line, for anything that is not a record.
    """
    if not path.is_file():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield from_line(line)
            except ValueError as error:
                raise RunError(f"{path}, line {number}: damaged record ({error})") from None


def latest_records(path: Path) -> list[Record]:
    """The records that no later one replaces, in the order written. Raises RunError."""
    latest: dict[tuple[Any, ...], Record] = {}
    for record in read_records(path):
        latest.pop(key(record), None)
        latest[key(record)] = record
    return list(latest.values())


@contextmanager
def _locked(handle: int) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _cut_torn_tail(handle: int) -> int:
    """Cut the file after its last complete line; return its size then."""
    size = os.fstat(handle).st_size
    if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
        return size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    os.ftruncate(handle, end)
    return end


def key(record: Record) -> tuple[Any, ...]:
    """What a record is about; a later one with the same key replaces an earlier."""
    return (record.model, record.benchmark, record.scorer, record.item, record.sample)
