"""Documents of a corpus, streamed from files: JSON lines, plain text, parquet, also compressed.

The texts of JSON lines are decoded: in raw JSON, the ``n`` of an escaped line break is part of the
next word.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import importlib
import json
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from typing import NamedTuple
from typing import Protocol

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.sources.files import READ_ERRORS
from pytest_llmeval.sources.files import nearest_sibling
from pytest_llmeval.sources.files import read_error

EXTRA = "corpus"
"""The extra with the library that reads ``.zst`` and ``.parquet``."""

_JSON_LINES = (".jsonl", ".ndjson", ".json")
_TEXT = (".txt", ".text", ".md")
_PARQUET = ".parquet"
_COMPRESSED = (".gz", ".zst")
_CHUNK = 1 << 20  # bytes that are read at once
_ROWS = 512  # rows of a parquet file that are read at once


class Document(NamedTuple):
    """Text of a document, in parts, and its number in the file: line or row from 1."""

    place: int
    parts: Iterable[str]
    #: True for a text file, in which matches have lines.
    by_line: bool = False


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


def corpus_files(names: Iterable[str]) -> list[Path]:
    """Return the files that arguments name: files, folders, and patterns such as ``data/*.jsonl.gz``.

    They are sorted and each is listed once. Of a folder, all files of known formats are read.
    Raises DataError for an argument without files and for a file of another format.
    """
    files: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            matches = [file for file in path.rglob("*") if _format(file) and file.is_file()]
        elif path.exists():
            matches = [path]
        else:
            matches = [Path(match) for match in glob.glob(name, recursive=True)]
            matches = [match for match in matches if match.is_file()]
        if not matches:
            raise DataError(f"--corpus {name}: no such file{nearest_sibling(path)}")
        for file in matches:
            if not _format(file):
                formats = ", ".join((*_JSON_LINES, *_TEXT, _PARQUET))
                raise DataError(f"--corpus {file}: not a known format ({formats}; also .gz, .zst)")
            files[file] = None
    return sorted(files)


def check_libraries(files: Iterable[Path]) -> None:
    """Raise ConfigError if a library that reads one of the files is not installed."""
    for file in files:
        if file.suffix in (".zst", _PARQUET):
            _pyarrow(file)
            return


def documents(path: Path, field: str = "text") -> Iterator[Document]:
    """Yield the documents of a file.

    ``field``: the key or column that holds the text; not used for text files, of which each is one
    document. Bytes that are not UTF-8 are replaced. Raises DataError, with the line, for a file that
    cannot be read to its end, a line that is not a JSON object, and one without a text.
    """
    kind = _format(path)
    try:
        if kind == _PARQUET:
            yield from _parquet_documents(path, field)
        elif kind == _TEXT[0]:
            yield Document(1, _text_parts(path), by_line=True)
        else:
            yield from _json_documents(path, field)
    except READ_ERRORS as error:
        raise read_error(path, error) from None
    except ValueError as error:  # pyarrow's own errors are ValueErrors
        raise DataError(f"{path}: cannot be read ({' '.join(str(error).split())[:200]})") from None


def looks_encoded(text: str) -> bool:
    """Return true if a text is a line of JSON, in which words are joined by escapes."""
    line = text.lstrip().partition("\n")[0]
    if not line.startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return "\\n" in line or "\\u" in line


def _format(path: Path) -> str:
    """Return the first ending of a file's format; empty for an unknown one."""
    suffix = path.suffix.lower()
    if suffix in _COMPRESSED:
        suffix = Path(path.stem).suffix.lower()
    elif suffix == _PARQUET:
        return _PARQUET
    for endings in (_JSON_LINES, _TEXT):
        if suffix in endings:
            return endings[0]
    return ""


def _json_documents(path: Path, field: str) -> Iterator[Document]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise DataError(f"{path}, line {number}: not valid JSON ({reason})") from None
        if not isinstance(row, dict):
            kind = type(row).__name__
            raise DataError(f"{path}, line {number}: a JSON object was expected, not {kind}")
        if field not in row:
            raise _no_field(f"{path}, line {number}", field, row)
        text = row[field]
        if text is None:
            continue
        if not isinstance(text, str):
            kind = type(text).__name__
            raise DataError(f"{path}, line {number}: field {field!r} is {kind}, not text")
        yield Document(number, (text,))


def _no_field(where: str, field: str, names: Iterable[str]) -> DataError:
    return DataError(f"{where}: no field {field!r}{suggestion(field, names)} (--field)")


def _text_parts(path: Path) -> Iterator[str]:
    """Yield the text of a file in parts."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    with closing(_open(path)) as stream:
        while data := stream.read(_CHUNK):
            yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, split only at line feeds."""
    rest: list[bytes] = []
    with closing(_open(path)) as stream:
        while data := stream.read(_CHUNK):
            first, *others = data.split(b"\n")
            rest.append(first)
            if others:
                yield b"".join(rest)
                yield from others[:-1]
                rest = [others[-1]]
    yield b"".join(rest)


def _open(path: Path) -> _Stream:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".zst":
        arrow = _pyarrow(path)
        return arrow.CompressedInputStream(arrow.OSFile(str(path)), "zstd")  # type: ignore[no-any-return]
    return path.open("rb", buffering=0)


def _parquet_documents(path: Path, field: str) -> Iterator[Document]:
    parquet: Any = importlib.import_module("pyarrow.parquet") if _pyarrow(path) else None
    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if field not in names:
            raise _no_field(str(path), field, names)
        number = 0
        for batch in file.iter_batches(batch_size=_ROWS, columns=[field], use_threads=False):
            for text in batch.column(0).to_pylist():
                number += 1
                if isinstance(text, str):
                    yield Document(number, (text,))
                elif text is not None:
                    kind = type(text).__name__
                    raise DataError(f"{path}, row {number}: field {field!r} is {kind}, not text")


def _pyarrow(path: Path) -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ConfigError(
            f"{path} cannot be read, pyarrow is not installed: {install_hint(EXTRA)}"
        ) from None
