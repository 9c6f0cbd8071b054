"""WinoGrande (Sakaguchi et al., 2020): 1,267 sentences with a blank and two names for it.

The development split is scored, because the answers of the test split are secret. Shots come from
the training split ``xl``, if the copy has it. Items, ids and content hash are the same from every
source: jsonl files or the hub. Item ids are ``winogrande-<row>``, because most copies omit the ids
of the data. Incomplete copies are rejected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.continuations import BLANK
from pytest_llmeval.prompts.continuations import LMEVAL_WINOGRANDE
from pytest_llmeval.prompts.multiple_choice import LMEVAL_COMMONSENSEQA
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.files import Rows
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import jsonl_rows
from pytest_llmeval.sources.files import parquet_files
from pytest_llmeval.sources.files import parquet_rows
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "allenai/winogrande"
REVISION = "01e74176c63542e6b0bcb004dcdea22d94fb67b5"
CONFIG = "winogrande_xl"
DEV_ROWS = 1267
TRAIN_ROWS = 40398

_NAME = "winogrande"

# lm-eval uses no shots by default, and selects shots at random. `letter` is for models without
# log-likelihoods of texts.
PROTOCOLS = (
    Protocol(
        "lmeval", LMEVAL_WINOGRANDE, scorer="likelihood", draw="lmeval_spare", allow_copies=True
    ),
    Protocol("letter", LMEVAL_COMMONSENSEQA, scorer="letter"),
)


def winogrande() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(_NAME, source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/winogrande`` in the data folder, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first(_NAME, data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``dev.jsonl`` and ``train_xl.jsonl``, or of a clone of the hub repository.

    The training split may be missing; then there are no shots.
    """
    for root in (folder, folder / "winogrande_1.1"):
        dev = first_file(root, "dev.jsonl", "dev.jsonl.gz", f"winogrande_dev_{DEV_ROWS}.jsonl")
        train = first_file(root, "train_xl.jsonl", "train_xl.jsonl.gz")
        if dev is not None:
            return _dataset(str(dev), jsonl_rows(dev), None if train is None else jsonl_rows(train))
    files = parquet_files(folder / CONFIG, "validation")
    if files:
        more = parquet_files(folder / CONFIG, "train")
        return _dataset(str(folder), parquet_rows(files), parquet_rows(more) if more else None)
    raise DataError(
        f"{folder}: not a copy of winogrande (neither dev.jsonl nor {CONFIG}/validation-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's configuration ``winogrande_xl``, splits validation and train."""
    validation, train = (
        hub_rows(path, CONFIG, split, revision) for split in ("validation", "train")
    )
    return _dataset(path, validation, train)


def _dataset(where: str, dev: Rows, train: Rows | None) -> Dataset:
    items = _items(dev, "")
    shots = None if train is None else _items(train, "train-")
    sizes = [("dev", {_NAME: len(items)}, {_NAME: DEV_ROWS})]
    if shots is not None:
        sizes.append(("train", {_NAME: len(shots)}, {_NAME: TRAIN_ROWS}))
    check_sizes(_NAME, where, sizes)
    return Dataset(items, {} if shots is None else {_NAME: shots}, item_warnings(_NAME, items))


def _items(rows: Rows, prefix: str) -> tuple[Item, ...]:
    return tuple(
        _item(place, row, f"{prefix}{row_id(_NAME, number)}")
        for number, (place, row) in enumerate(rows)
    )


def _item(where: str, row: dict[str, Any], name: str) -> Item:
    sentence, options = row.get("sentence"), (row.get("option1"), row.get("option2"))
    if not isinstance(sentence, str) or not all(isinstance(option, str) for option in options):
        raise DataError(f"{where}: sentence, option1 and option2 were expected")
    if not sentence.partition(BLANK)[2].strip():
        raise DataError(f"{where}: no blank ({BLANK}) with text after it in the sentence")
    answer = row.get("answer")
    if answer is None or answer == "":
        raise DataError(
            f"{where}: no gold label in this split (answer is empty); the split dev has them"
        )
    if answer not in ("1", "2"):
        raise DataError(f"{where}: answer {answer!r} is neither '1' nor '2'")
    return Item(
        id=name,
        subject=_NAME,
        question=sentence,
        gold=int(answer) - 1,
        options=tuple(map(str, options)),
    )
