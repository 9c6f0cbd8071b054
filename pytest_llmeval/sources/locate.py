"""Lookup of a benchmark's data: the data folder first, then the hub."""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.sources.files import nearest_sibling


def data_folder(data_dir: Any = None) -> Path | None:
    """Return the run's data folder: ``data_dir``, else ``LLMEVAL_DATA`` (environment), else None.

    Raises DataError for a folder that does not exist.
    """
    path = data_dir if data_dir is not None else os.environ.get("LLMEVAL_DATA") or None
    if path is None:
        return None
    folder = Path(path).expanduser()
    if not os.path.isdir(folder):
        origin = "--llm-data" if data_dir is not None else "LLMEVAL_DATA"
        raise DataError(f"data folder {folder} ({origin}) does not exist{nearest_sibling(folder)}")
    return folder


def benchmark_folder(name: str, data_dir: Any = None) -> Path | None:
    """Return the folder ``DIR/<name>`` of a benchmark, or None if the data folder has none.

    Raises DataError if the data folder itself does not exist.
    """
    folder = data_folder(data_dir)
    if folder is None:
        return None
    candidate = folder / name
    return candidate if candidate.is_dir() else None


def find_file(path: Path, data_dir: Any) -> Path:
    """Return a user's file: a relative path from the data folder where it has one, else as it is.

    Raises DataError where there is a data folder, and neither place has the file.
    """
    path = path.expanduser()
    if path.is_absolute():
        return path
    folder = data_folder(data_dir)
    if folder is not None and (folder / path).is_file():
        return folder / path
    if folder is not None and not path.is_file():
        raise DataError(f"{path}: no such file, neither in {folder} nor in {Path.cwd()}")
    return path


def not_found(name: str, data_dir: Any, reason: str) -> DataError:
    """Return the error for a benchmark without data: places searched, reason, and remedy."""
    folder = data_folder(data_dir)
    searched = (
        f"{folder / name} (no such folder)"
        if folder is not None
        else "no data folder (neither --llm-data nor LLMEVAL_DATA is set)"
    )
    return DataError(
        f"benchmark {name!r} not found: looked in {searched}; {reason};"
        f" give its files with --llm-data DIR, as DIR/{name}/"
    )


def load_first(
    name: str,
    data_dir: Any,
    from_folder: Callable[[Path], Dataset],
    from_hub: Callable[[], Dataset],
) -> Dataset:
    """Return a benchmark's data from ``DIR/<name>`` in the data folder if it exists, else the hub.

    Raises DataError if neither has the data; exceptions of ``from_folder`` are not caught.
    """
    folder = benchmark_folder(name, data_dir)
    if folder is not None:
        return from_folder(folder)
    try:
        return from_hub()
    except ConfigError as error:
        raise not_found(name, data_dir, str(error)) from error


def first_file(folder: Path, *names: str) -> Path | None:
    """Return the first of the files (names relative to the folder) that exists, or None."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def check_sizes(
    name: str, where: str, sizes: Iterable[tuple[str, Mapping[str, int], Mapping[str, int]]]
) -> None:
    """Raise DataError for an incomplete copy, with the parts that differ.

    ``sizes``: (split, subject → rows in the copy, subject → rows as published).
    """
    faults = [
        f"{split} {subject} has {rows.get(subject, 0):,} of {published.get(subject, 0):,} rows"
        for split, rows, published in sizes
        for subject in dict.fromkeys((*published, *rows))
        if rows.get(subject, 0) != published.get(subject, 0)
    ]
    if faults:
        more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise DataError(f"{name} in {where} is not the complete set: {'; '.join(faults[:5])}{more}")
