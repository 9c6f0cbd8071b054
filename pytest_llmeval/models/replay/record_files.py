"""Reading of recorded answers as lines from plain and packed files."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from typing import Any

from pytest_llmeval.core import DataError
from pytest_llmeval.sources.files import open_binary
from pytest_llmeval.sources.files import parse_object

_ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".zip")


def is_lines(path: Path) -> bool:
    """Return True if a file has one record per line: all except zip and JSON files."""
    return not path.name.endswith((".zip", ".json", ".json.gz"))


def unpack(path: Path, target: IO[bytes]) -> None:
    """Write the records of a packed file or of a JSON list as lines."""
    if path.suffix != ".zip":
        with open_binary(path) as packed:
            _copy_lines(str(path), packed, target)
        return
    with zipfile.ZipFile(path) as archive:
        members = [
            name
            for name in archive.namelist()
            if name.endswith((".json", ".jsonl")) and not name.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            names = f": {', '.join(members[:5])}" if members else ""
            raise DataError(
                f"{path}: {len(members)} files of answers where one .json or .jsonl was"
                f" expected{names}"
            )
        with archive.open(members[0]) as packed:
            _copy_lines(f"{path}: {members[0]}", packed, target)


def _copy_lines(name: str, source: IO[bytes], target: IO[bytes]) -> None:
    """Copy lines, or convert a JSON list to lines; ``name``: the file, also in messages."""
    if not name.endswith((".json", ".json.gz")):
        shutil.copyfileobj(source, target)
        return
    try:
        records = json.loads(source.read())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} is not valid JSON ({error})") from None
    if isinstance(records, dict) and all(isinstance(record, dict) for record in records.values()):
        records = [{"instance_id": key, **record} for key, record in records.items()]
    if not isinstance(records, list):
        raise DataError(
            f"{name} is neither a list of records nor records by id, but {type(records).__name__}"
        )
    for record in records:
        target.write(json.dumps(record).encode("ascii") + b"\n")


def rows(path: Path, file: IO[bytes]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the number, the byte offset and the object of every line.

    An incomplete last line, as a killed run leaves it, is skipped. Raises DataError for any other
    line that is not an object.
    """
    offset = 0
    for number, line in enumerate(file, start=1):
        if line.strip():
            try:
                yield number, offset, parse_object(path, number, line)
            except DataError:
                if line.endswith(b"\n"):
                    raise
                return
        offset += len(line)


def stem(path: Path) -> str:
    """Return the name of a file without its extensions."""
    ending = next((e for e in sorted(_ENDINGS, key=len)[::-1] if path.name.endswith(e)), "")
    return path.name.removesuffix(ending)
