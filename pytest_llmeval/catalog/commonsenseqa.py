"""CommonsenseQA 1.11 (Talmor et al., 2019): 1,221 questions with five options.

As is usual, the validation split is scored, because the answers of the test split are secret. Shots
come from the training split (9,741). Items, ids and content hash are the same from every source:
the official jsonl files or the hub. Item ids are those of the data. Incomplete copies are rejected;
equal options, which 24 items have, are reported as a warning.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.multiple_choice import CLOZE
from pytest_llmeval.prompts.multiple_choice import LMEVAL_COMMONSENSEQA
from pytest_llmeval.sources.ai2_format import labelled_item
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.files import Rows
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import jsonl_rows
from pytest_llmeval.sources.files import parquet_files
from pytest_llmeval.sources.files import parquet_rows
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "tau/commonsense_qa"
REVISION = "94630fe30dad47192a8546eb75f094926d47e155"
VALIDATION_ROWS = 1221
TRAIN_ROWS = 9741

_NAME = "commonsenseqa"

# lm-eval uses no shots by default, and selects shots at random.
PROTOCOLS = (
    Protocol("letter", LMEVAL_COMMONSENSEQA, scorer="letter", shots=5),
    Protocol(
        "lmeval", LMEVAL_COMMONSENSEQA, scorer="letter", draw="lmeval_spare", allow_copies=True
    ),
    Protocol("cloze", CLOZE, scorer="cloze"),
    *matched_protocols(),
)


def commonsenseqa() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(_NAME, source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/commonsenseqa`` in the data folder, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first(_NAME, data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``{dev,train}_rand_split.jsonl``, or of a clone of the hub's repository."""
    dev, train = (
        first_file(folder, f"{split}_rand_split.jsonl", f"{split}_rand_split.jsonl.gz")
        for split in ("dev", "train")
    )
    if dev is not None and train is not None:
        return _dataset(str(folder), jsonl_rows(dev), jsonl_rows(train))
    for root in (folder / "data", folder):
        files = [parquet_files(root, split) for split in ("validation", "train")]
        if all(files):
            return _dataset(str(root), *map(parquet_rows, files))
    raise DataError(
        f"{folder}: not a copy of commonsenseqa (neither dev_rand_split.jsonl and"
        " train_rand_split.jsonl nor data/validation-*.parquet and data/train-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's splits validation and train."""
    validation, train = (hub_rows(path, None, split, revision) for split in ("validation", "train"))
    return _dataset(path, validation, train)


def _dataset(where: str, validation: Rows, train: Rows) -> Dataset:
    items = tuple(labelled_item(place, row, _NAME, "", "validation") for place, row in validation)
    shots = tuple(labelled_item(place, row, _NAME, "train-", "validation") for place, row in train)
    check_sizes(
        _NAME,
        where,
        [
            ("validation", {_NAME: len(items)}, {_NAME: VALIDATION_ROWS}),
            ("train", {_NAME: len(shots)}, {_NAME: TRAIN_ROWS}),
        ],
    )
    return Dataset(items, {_NAME: shots}, item_warnings(_NAME, items))
