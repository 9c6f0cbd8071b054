"""HellaSwag (Zellers et al., 2019): 10,042 contexts, of which one of four endings is the real one.

The validation split is scored, because the answers of the test split are secret. Shots come from
the training split, if the copy has it. Items, ids and content hash are the same from every source:
the official jsonl files or the hub. Items have the cleaned texts of the prompts (see
``prompts.continuations``); ids are ``hellaswag-<ind>``.

Incomplete copies are rejected, except a sample whose file name ends in the number of its rows
(``hellaswag_val_1000.jsonl``). Every run with a sample has a warning, and its content hash differs,
so that its scores are not compared with those of the whole set.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.continuations import LMEVAL_HELLASWAG
from pytest_llmeval.prompts.continuations import clean
from pytest_llmeval.prompts.continuations import context
from pytest_llmeval.prompts.multiple_choice import LMEVAL_COMMONSENSEQA
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.files import Rows
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import jsonl_rows
from pytest_llmeval.sources.files import parquet_files
from pytest_llmeval.sources.files import parquet_rows
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "Rowan/hellaswag"
REVISION = "218ec52e09a7e7462a5400043bb9a69a41d06b76"
VALIDATION_ROWS = 10042
TRAIN_ROWS = 39905

_NAME = "hellaswag"
_SAMPLE = re.compile(r"hellaswag_val_([0-9]+)\.jsonl(\.gz)?")

# lm-eval uses no shots by default, and selects shots at random. `cloze` is its prompt with one
# result instead of two; `letter` is for models without log-likelihoods of texts.
PROTOCOLS = (
    Protocol("cloze", LMEVAL_HELLASWAG, scorer="cloze"),
    Protocol(
        "lmeval",
        LMEVAL_HELLASWAG,
        scorer="cloze",
        also=("likelihood",),
        draw="lmeval_spare",
        allow_copies=True,
    ),
    Protocol("letter", LMEVAL_COMMONSENSEQA, scorer="letter"),
)


def hellaswag() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(_NAME, source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the data from ``DIR/hellaswag`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy, or if it is incomplete without being a named sample.
    """
    return load_first(_NAME, data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``hellaswag_{val,train}.jsonl``, of the hub's repository, or of a sample.

    The training split may be missing; then there are no shots.
    """
    validation, train = (
        first_file(folder, f"hellaswag_{split}.jsonl", f"hellaswag_{split}.jsonl.gz")
        for split in ("val", "train")
    )
    shots = None if train is None else jsonl_rows(train)
    if validation is not None:
        return _dataset(str(validation), jsonl_rows(validation), shots)
    for root in (folder / "data", folder):
        files = parquet_files(root, "validation")
        if files:
            more = parquet_files(root, "train")
            return _dataset(str(root), parquet_rows(files), parquet_rows(more) if more else None)
    samples = sorted(path for path in folder.iterdir() if _SAMPLE.fullmatch(path.name))
    if len(samples) > 1:
        names = ", ".join(path.name for path in samples)
        raise DataError(f"{folder}: more than one sample of hellaswag ({names}); keep only one")
    for path in samples:
        match = _SAMPLE.fullmatch(path.name)
        assert match is not None  # the condition of the selection above
        return _dataset(str(path), jsonl_rows(path), shots, sample=int(match.group(1)))
    raise DataError(
        f"{folder}: not a copy of hellaswag (neither hellaswag_val.jsonl nor"
        " data/validation-*.parquet, and no sample hellaswag_val_<rows>.jsonl)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's splits validation and train."""
    validation, train = (hub_rows(path, None, split, revision) for split in ("validation", "train"))
    return _dataset(path, validation, train)


def _dataset(
    where: str, validation: Rows, train: Rows | None, sample: int | None = None
) -> Dataset:
    items = tuple(_item(place, row, "") for place, row in validation)
    shots = None if train is None else tuple(_item(place, row, "train-") for place, row in train)
    sizes = [("validation", {_NAME: len(items)}, {_NAME: sample or VALIDATION_ROWS})]
    if shots is not None:
        sizes.append(("train", {_NAME: len(shots)}, {_NAME: TRAIN_ROWS}))
    check_sizes(_NAME, where, sizes)
    warnings = item_warnings(_NAME, items)
    if sample is not None:
        warnings = (
            f"{_NAME}: a sample of {sample:,} of its {VALIDATION_ROWS:,} items: scores are not"
            " those of the benchmark",
            *warnings,
        )
    return Dataset(items, {} if shots is None else {_NAME: shots}, warnings)


def _item(where: str, row: dict[str, Any], prefix: str) -> Item:
    number, endings = row.get("ind"), row.get("endings")
    texts = [row.get(name) for name in ("activity_label", "ctx_a", "ctx_b")]
    if (
        not isinstance(number, int)
        or not all(isinstance(text, str) for text in texts)
        or not isinstance(endings, list)
        or len(endings) != 4
        or not all(isinstance(ending, str) for ending in endings)
    ):
        raise DataError(
            f"{where}: ind, activity_label, ctx_a, ctx_b and four endings were expected"
        )
    label = str(row.get("label", "")).strip()
    if label == "":
        raise DataError(
            f"{where}: no gold label in this split (label is empty); the split validation has them"
        )
    if label not in ("0", "1", "2", "3"):
        raise DataError(f"{where}: label {row['label']!r} is not a number 0 to 3")
    activity, first, second = map(str, texts)
    return Item(
        id=f"{prefix}{_NAME}-{number:05d}",
        subject=_NAME,
        question=context(activity, first, second),
        gold=int(label),
        options=tuple(clean(ending) for ending in endings),
    )
