"""Made-up copies of the catalog's benchmarks: a few rows in the official schema, in every layout.

A copy is complete by sizes of its own, which take the place of the published ones in a test.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import json
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.sources import hub

Row = dict[str, Any]
Splits = dict[str, list[Row]]
"""Rows as the official files have them, by split."""

HubSplits = dict[tuple[str | None, str], list[Row]]
"""Rows as the hub has them, by configuration and split."""

Layout = Callable[[Path, Splits], object]
"""Writes the rows into the benchmark's folder."""


@dataclass(frozen=True)
class CatalogCopy:
    """A benchmark of the catalog, a made-up copy of its data, and the facts that follow from it.

    Questions contain the name of their split, and ``gold`` is a pattern that the right answers
    match and the wrong ones do not.
    """

    benchmark: Benchmark
    module: str
    """The module of ``pytest_llmeval.catalog`` that reads it."""
    splits: Splits
    scored: str
    """The split that is scored."""
    protocols: tuple[str, ...]
    """Names, the default first."""
    subjects: Mapping[str, int]
    chance: float | None = None
    pool: str | None = None
    """The split that shots come from; None where there are none."""
    shot_ids: str = ""
    """A pattern for the ids of shots."""
    gold: str = r"(?i)right"
    folder: str = ""
    """In the data folder; empty for a benchmark that is packaged or generated."""
    repo: str = ""
    """On the hub."""
    constants: Mapping[str, Any] | None = None
    """What takes the place of the module's constants, above all of the published sizes."""
    refusal: tuple[str, ...] = ()
    """What the refusal of this copy contains under the published sizes."""
    layouts: Mapping[str, Layout] | None = None
    """The official layout first. The clone of the hub's repository is not among them."""
    to_hub: Callable[[Splits], HubSplits] | None = None
    archive: tuple[str, Layout] | None = None
    """The file that the hub has instead of rows, and what writes it."""
    second_row: str = ""
    """A pattern for the place of the scored split's second row in the official layout."""
    unusable: tuple[tuple[Row, str], ...] = ()
    """Changes of a row that make it unusable, and patterns of the reason."""
    optional: tuple[str, ...] = ()
    """Splits that a copy may lack."""
    same: tuple[frozenset[str], ...] = ()
    """Protocols that are one measurement under several names."""
    read: Callable[[Path], Splits] | None = None
    """Reads the rows of the public copy."""

    @property
    def name(self) -> str:
        return self.benchmark.name

    def load(self, data_dir: Path | None) -> Dataset:
        return self.benchmark.source(data_dir)

    def write(self, data_dir: Path, splits: Splits | None = None, layout: str = "") -> Path:
        """Write the copy into a data folder, in the official layout unless another is named."""
        assert self.layouts is not None
        folder = data_dir / self.folder
        folder.mkdir(parents=True, exist_ok=True)
        writer = self.layouts[layout] if layout else next(iter(self.layouts.values()))
        writer(folder, self.splits if splits is None else splits)
        return data_dir

    def clone(self, data_dir: Path, splits: Splits | None = None) -> Path:
        """Write a clone of the hub's repository into a data folder."""
        assert self.to_hub is not None
        write_repository(
            data_dir / self.folder, self.to_hub(self.splits if splits is None else splits)
        )
        return data_dir

    def use_constants(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the module take this copy for the complete one."""
        if self.constants:
            module = importlib.import_module(f"pytest_llmeval.catalog.{self.module}")
            for name, value in self.constants.items():
                monkeypatch.setattr(module, name, value)

    def use_hub(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, splits: Splits | None = None
    ) -> None:
        """Make the hub give the copy: its rows, or the archive, which is written into the folder."""
        rows = self.splits if splits is None else splits
        if self.archive is not None:
            name, write = self.archive
            write(folder, rows)
            fake_download(monkeypatch, self.repo, folder / name)
        else:
            assert self.to_hub is not None
            fake_hub(monkeypatch, self.repo, self.to_hub(rows))


LETTERS = "ABCD"
MATCHED = ("matched", "matched_greedy", "lettered", "lettered_greedy")
"""Protocols that many benchmarks have."""


def options(gold: int, number: int, size: int = 4) -> list[str]:
    """Options of which the one at ``gold`` is right; one looks like a missing value."""
    texts = ["None", "None of them", " b ", f"c {number}", "d"][:size]
    texts[gold] = f"Right {number}"
    return texts


def made(make: Callable[[str, int], Row], **sizes: int) -> Splits:
    """So many rows of every split, made from its name and the number of the row."""
    return {split: [make(split, number) for number in range(size)] for split, size in sizes.items()}


def fake_hub(
    monkeypatch: pytest.MonkeyPatch,
    repo: str,
    splits: Mapping[tuple[str | None, str], list[Row]],
) -> list[tuple[str | None, str]]:
    """Make the hub give these rows, by configuration and split, and nothing else.

    Returns the list of what is requested, which grows.
    """
    requested: list[tuple[str | None, str]] = []

    def load_rows(path: str, config: str | None, split: str, revision: str) -> list[Row]:
        assert (path, len(revision)) == (repo, 40)
        requested.append((config, split))
        return splits[config, split]

    monkeypatch.setattr(hub, "load_rows", load_rows)
    return requested


def fake_download(monkeypatch: pytest.MonkeyPatch, repo: str, file: Path) -> None:
    """Make the hub give this file and nothing else."""

    def download(path: str, name: str, revision: str) -> Path:
        assert (path, name, len(revision)) == (repo, file.name, 40)
        return file

    monkeypatch.setattr(hub, "download", download)


def unreachable_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every request to the hub fail."""

    def refuse(path: str, *_: object) -> None:
        raise DataError(f"hub data set {path!r} cannot be loaded (offline)")

    for name in ("load_rows", "download"):
        monkeypatch.setattr(hub, name, refuse)


def write_repository(root: Path, splits: Mapping[tuple[str | None, str], list[Row]]) -> Path:
    """A clone of a hub repository: a parquet file a split, a folder a configuration, a README."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    configs: dict[str, dict[str, list[Row]]] = {}
    for (config, split), rows in splits.items():
        configs.setdefault(config or "data", {})[split] = rows
    described = ""
    for folder, members in configs.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        # One schema for all splits: a column that is empty in one of them is not without a type.
        table = arrow.Table.from_pylist([row for rows in members.values() for row in rows])
        described += f"- config_name: {folder}\n  data_files:\n"
        start = 0
        for split, rows in members.items():
            name = f"{folder}/{split}-00000-of-00001.parquet"
            parquet.write_table(table.slice(start, len(rows)), root / name)
            start += len(rows)
            described += f"  - split: {split}\n    path: {folder}/{split}-*\n"
    (root / "README.md").write_text(f"---\nconfigs:\n{described}---\n", encoding="utf-8")
    return root


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A jsonl file, packed where its name ends in ``.gz``."""
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


def read_jsonl(path: Path) -> list[Row]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().split("\n") if line]


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def read_csv(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def jsonl(**names: str) -> Layout:
    """A jsonl file a split, of these names."""

    def write(folder: Path, splits: Splits) -> None:
        for split, rows in splits.items():
            write_jsonl(folder / names[split], rows)

    return write


def below(*folders: str, layout: Layout) -> Layout:
    """The same layout in a folder of the folder."""
    return lambda folder, splits: layout(folder.joinpath(*folders), splits)


def by(rows: Iterable[Row], key: str) -> dict[str, list[Row]]:
    """Rows by their value of a column, which they keep."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def under(config: str | None) -> Callable[[Splits], HubSplits]:
    """The hub's rows where they are the official ones, in this configuration."""
    return lambda splits: {(config, split): rows for split, rows in splits.items()}
