"""Rows as dicts, each with the words that say where it stands, whichever way they come."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_llmeval.sources import hub
from pytest_llmeval.sources.files import read_jsonl
from pytest_llmeval.sources.files import read_parquet

Rows = Iterable[tuple[str, dict[str, Any]]]
"""Where a row stands, for the message about an unusable one, and the row."""


def jsonl_rows(path: Path) -> Rows:
    """The rows of a jsonl file, plain or gzipped."""
    return ((f"{path}, line {number}", row) for number, row in read_jsonl(path))


def parquet_files(folder: Path, split: str) -> list[Path]:
    """The files of a split, in order, as a clone of a hub repository names them."""
    return sorted(folder.glob(f"{split}-*.parquet"))


def parquet_rows(paths: Iterable[Path]) -> Rows:
    """The rows of the files, one after the other."""
    return (
        (f"{path}, row {number}", row)
        for path in paths
        for number, row in enumerate(read_parquet(path))
    )


def hub_rows(path: str, config: str | None, split: str, revision: str) -> Rows:
    """The rows of a split on the hub."""
    where = ", ".join(filter(None, (path, config, split)))
    return (
        (f"{where}, row {number}", row)
        for number, row in enumerate(hub.load_rows(path, config, split, revision))
    )
