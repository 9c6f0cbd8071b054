"""Readers for local files: csv, tsv and jsonl, plain or gzipped, and parquet.

Every cell of csv and tsv is text. pandas is not used, because it converts the options ``None``,
``NA`` and ``nan`` to missing values and numbers to floats.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import json
import zlib
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from typing import Any
from typing import Self
from typing import cast

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core.errors import nearest
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.sources import hub

# Exceptions for a file that cannot be opened and for a damaged gzip stream.
READ_ERRORS = (OSError, EOFError, zlib.error)
_MAX_CELL = 2**31 - 1


def read_csv(path: Path) -> list[list[str]]:
    """Return the rows of a csv file as lists of text, without blank lines.

    Raises DataError with file and row for bytes that are not UTF-8, an unclosed quote, or a
    row whose number of cells differs from that of the first row.
    """
    try:
        with open_binary(path) as file:
            data = file.read()
    except READ_ERRORS as error:
        raise read_error(path, error) from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        row = sum(1 for _ in csv.reader(io.StringIO(before, newline="")))
        raise DataError(
            f"{path}, row {max(row, 1)}: not UTF-8 (byte 0x{data[error.start]:02x})"
        ) from None
    return _parse_csv(path, text.removeprefix("\ufeff"))


def _parse_csv(path: Path, text: str) -> list[list[str]]:
    rows: list[list[str]] = []
    # newline="" keeps line breaks in quoted cells; with strict, an unclosed quote is an error
    # instead of a cell with the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    limit = csv.field_size_limit(_MAX_CELL)  # the default rejects cells over 128 kB
    try:
        for row in reader:
            if not row:
                continue
            rows.append(row)
            if len(row) != len(rows[0]):
                raise DataError(
                    f"{path}, row {len(rows)}: {len(row)} cells where the first row has"
                    f" {len(rows[0])}"
                )
    except csv.Error as error:
        raise DataError(f"{path}, row {len(rows) + 1}: not valid csv ({error})") from None
    finally:
        csv.field_size_limit(limit)
    return rows


class VerbatimFloat(float):
    """A float that is converted to text with the digits of its source."""

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str

    def __str__(self) -> str:
        return self.text


def read_jsonl(path: Path, *, exact: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of every line that is not blank.

    ``exact``: floats are ``VerbatimFloat``, and a duplicate key in an object is an error.
    Raises DataError with file and line for bytes that are not UTF-8 and for lines that are not
    one JSON object.
    """
    hooks: dict[str, Any] = (
        {"parse_float": VerbatimFloat, "object_pairs_hook": _unique} if exact else {}
    )
    try:
        with open_binary(path) as file:
            # Bytes are split only at \n; text mode would also split at other line separators.
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, parse_object(path, number, line, **hooks)
    except READ_ERRORS as error:
        raise read_error(path, error) from None


def read_tsv(path: Path) -> list[list[str]]:
    """Return the cells of every line that is not blank, split at tabs; quotes are text.

    Raises DataError with file and line for bytes that are not UTF-8.
    """
    rows: list[list[str]] = []
    try:
        with open_binary(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02x})"
                    ) from None
                if text.strip():
                    rows.append(text.removesuffix("\n").removesuffix("\r").split("\t"))
    except READ_ERRORS as error:
        raise read_error(path, error) from None
    return rows


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """Return all rows of a parquet file.

    Raises ConfigError if pyarrow is not installed (it is part of the extra ``hub``), and DataError
    for a file that is not parquet.
    """
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError(
            f"{path} cannot be read, pyarrow is not installed: {install_hint('hub')}"
        ) from None
    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except OSError as error:
        raise read_error(path, error) from None
    except ValueError as error:  # pyarrow's own errors are ValueErrors
        raise DataError(f"{path}: not a parquet file ({_one_line(error)[:200]})") from None
    return rows


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of its members; raise ValueError for a duplicate key."""
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {duplicate!r} occurs twice")
    return members


def parse_object(path: Path, number: int, line: bytes, **hooks: Any) -> dict[str, Any]:
    """Return the JSON object in a line of a file.

    ``hooks`` are passed to ``json.loads``. Raises DataError with file and line for anything else.
    """
    try:
        value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"), **hooks)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02x})"
        ) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {number}: not valid JSON ({_one_line(error)})") from None
    if not isinstance(value, dict):
        raise DataError(
            f"{path}, line {number}: a JSON object was expected, not {type(value).__name__}"
        )
    return value


def open_binary(path: Path) -> IO[bytes]:
    """Open a file for reading bytes; decompress it if its name ends in ``.gz``."""
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def read_error(path: Path, error: BaseException) -> DataError:
    """Return the error, in one line, for a file that cannot be opened or read to its end."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file{nearest_sibling(path)}")
    reason = getattr(error, "strerror", None) or _one_line(error) or type(error).__name__
    return DataError(f"{path}: cannot be read ({reason})")


def nearest_sibling(path: Path) -> str:
    """Return ``; did you mean 'x'?`` with the most similar file name in the folder, if any."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    near = nearest(path.name, names)
    return f"; did you mean {near!r}?" if near else ""


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


Rows = Iterable[tuple[str, dict[str, Any]]]
"""(location, row) pairs; the location is for messages about the row."""


def jsonl_rows(path: Path) -> Rows:
    """Read the rows of a jsonl file, plain or gzipped."""
    return ((f"{path}, line {number}", row) for number, row in read_jsonl(path))


def json_rows(path: Path) -> Rows:
    """Return the rows of a file that is one list of JSON objects. Raises DataError otherwise."""
    try:
        rows = json.loads(path.read_bytes())
    except OSError as error:
        raise read_error(path, error) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({_one_line(error)})") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: a list of JSON objects was expected")
    return [(f"{path}, row {number}", row) for number, row in enumerate(rows)]


def parquet_files(folder: Path, split: str) -> list[Path]:
    """Return the parquet files of a split, in order, named as in hub repositories."""
    return sorted(folder.glob(f"{split}-*.parquet"))


def parquet_rows(paths: Iterable[Path]) -> Rows:
    """Read the rows of several parquet files, in order."""
    return (
        (f"{path}, row {number}", row)
        for path in paths
        for number, row in enumerate(read_parquet(path))
    )


def hub_rows(path: str, config: str | None, split: str, revision: str) -> Rows:
    """Read the rows of a split on the hub."""
    where = ", ".join(filter(None, (path, config, split)))
    return (
        (f"{where}, row {number}", row)
        for number, row in enumerate(hub.load_rows(path, config, split, revision))
    )
