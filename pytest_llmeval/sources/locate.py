"""Where the data of a benchmark is, first hit wins: the data folder, then whatever comes next."""

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
    """The run's data folder: ``data_dir``, else the environment's ``LLMEVAL_DATA``, else None.

    Raises DataError naming a folder that does not exist.
    """
    given = data_dir if data_dir is not None else os.environ.get("LLMEVAL_DATA") or None
    if given is None:
        return None
    folder = Path(given).expanduser()
    if not os.path.isdir(folder):
        origin = "--llm-data" if data_dir is not None else "LLMEVAL_DATA"
        raise DataError(f"data folder {folder} ({origin}) does not exist{nearest_sibling(folder)}")
    return folder


def find(name: str, data_dir: Any = None) -> Path | None:
    """The folder ``DIR/<name>`` of a benchmark, or None where the data folder has none.

    Raises DataError where the data folder itself does not exist.
    """
    folder = data_folder(data_dir)
    if folder is None:
        return None
    candidate = folder / name
    return candidate if candidate.is_dir() else None


def not_found(name: str, data_dir: Any, reason: str) -> DataError:
    """The one line for a benchmark found nowhere: where was looked, why not, how to get it."""
    folder = data_folder(data_dir)
    looked = (
        f"{folder / name} (no such folder)"
        if folder is not None
        else "no data folder (neither --llm-data nor LLMEVAL_DATA is set)"
    )
    return DataError(
        f"benchmark {name!r} not found: looked in {looked}; {reason};"
        f" give its files with --llm-data DIR, as DIR/{name}/"
    )


def load_first(
    name: str,
    data_dir: Any,
    from_folder: Callable[[Path], Dataset],
    from_hub: Callable[[], Dataset],
) -> Dataset:
    """A benchmark's data: from ``DIR/<name>`` where the data folder has it, else from the hub.

    Raises DataError where it is found nowhere, and whatever the two readers raise.
    """
    folder = find(name, data_dir)
    if folder is not None:
        return from_folder(folder)
    try:
        return from_hub()
    except ConfigError as error:
        raise not_found(name, data_dir, str(error)) from error


def first_file(folder: Path, *names: str) -> Path | None:
    """The first of the named files (relative to the folder) that exists."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def check_sizes(
    name: str, where: str, sizes: Iterable[tuple[str, Mapping[str, int], Mapping[str, int]]]
) -> None:
    """Raise DataError for a copy that is not the complete set, naming the parts that differ.

    ``sizes``: split, rows found by subject, rows published by subject.
    """
    faults = [
        f"{split} {subject} has {found.get(subject, 0):,} of {published.get(subject, 0):,} rows"
        for split, found, published in sizes
        for subject in dict.fromkeys((*published, *found))
        if found.get(subject, 0) != published.get(subject, 0)
    ]
    if faults:
        more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise DataError(f"{name} in {where} is not the complete set: {'; '.join(faults[:5])}{more}")
