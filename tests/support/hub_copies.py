"""Rows as the hub has them: written as a clone of its repository, or handed out by a fake hub."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

Rows = list[dict[str, Any]]


def write_clone(folder: Path, splits: Mapping[str, Rows]) -> Path:
    """One parquet file a split, named as in a clone of a hub repository."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        table = arrow.Table.from_pylist(rows)
        parquet.write_table(table, folder / f"{split}-00000-of-00001.parquet")
    return folder


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def fake_hub(
    monkeypatch: pytest.MonkeyPatch, path: str, splits: Mapping[tuple[str | None, str], Rows]
) -> None:
    """A hub that has these rows, by configuration and split, and nothing else."""
    rows = importlib.import_module("pytest_llmeval.sources.files")

    def load_rows(asked: str, config: str | None, split: str, revision: str) -> Rows:
        assert (asked, len(revision)) == (path, 40)
        return splits[config, split]

    monkeypatch.setattr(rows.hub, "load_rows", load_rows)
