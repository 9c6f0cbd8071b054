"""TruthfulQA, single-true multiple choice (MC1; Lin et al., 2022): 817 questions, 2 to 13 options.

The edition of 2021, which lm-eval and published scores use. The right option is the best answer,
the wrong ones are all incorrect answers; each ends in a full stop, as in the official script.
Items, ids and content hash are the same from every source: the official csv file, whose options
are built here, or the hub, which has them ready. Chance is 22.6 %.

In the data the right option is always the first. Here options are sorted by the SHA-256 of question
and option, so that neither a preference for the first option nor a tie gains anything. Item ids are
derived from the question. There are no shots, because the data has one split. Incomplete copies
and other editions are rejected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.continuations import LMEVAL_TRUTHFULQA
from pytest_llmeval.prompts.multiple_choice import LMEVAL_COMMONSENSEQA
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.files import Rows
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import parquet_files
from pytest_llmeval.sources.files import parquet_rows
from pytest_llmeval.sources.files import read_csv
from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import load_first

REPO = "truthfulqa/truthful_qa"
REVISION = "741b8276f2d1982aa3d5b832d3ee81ed3b896490"
CONFIG = "multiple_choice"
ROWS = 817

_NAME = "truthfulqa"
_COLUMNS = ("Question", "Best Answer", "Incorrect Answers")

PROTOCOLS = (
    Protocol("lmeval", LMEVAL_TRUTHFULQA, scorer="likelihood"),
    Protocol("letter", LMEVAL_COMMONSENSEQA, scorer="letter"),
)


def truthfulqa() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(_NAME, source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/truthfulqa`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first(_NAME, data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``TruthfulQA.csv``, or of a clone of the hub's repository."""
    for root in (folder, folder / "data"):
        path = root / "TruthfulQA.csv"
        if path.is_file():
            return _from_csv(path)
    files = parquet_files(folder / CONFIG, "validation")
    if files:
        return _from_targets(str(folder), parquet_rows(files))
    raise DataError(
        f"{folder}: not a copy of truthfulqa (neither TruthfulQA.csv nor"
        f" {CONFIG}/validation-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's configuration ``multiple_choice``, split validation."""
    return _from_targets(path, hub_rows(path, CONFIG, "validation", revision))


def _from_csv(path: Path) -> Dataset:
    header, *rows = read_csv(path) or [[]]
    if not set(_COLUMNS) <= set(header):
        raise DataError(f"{path}, row 1: a header with {', '.join(_COLUMNS)} was expected")
    columns = [header.index(name) for name in _COLUMNS]
    items = []
    for number, row in enumerate(rows, start=2):
        question, best, incorrect = (row[column] for column in columns)
        where = f"{path}, row {number}"
        right = _with_full_stop(best)
        if not right:
            raise DataError(f"{where}: no gold label in this split (Best Answer is empty)")
        wrong = [text for part in incorrect.split(";") if (text := _with_full_stop(part))]
        items.append(_item(where, question, [right, *wrong], right))
    return _dataset(str(path), items)


def _with_full_stop(answer: str) -> str:
    """Return an answer with a full stop at its end; an empty answer stays empty."""
    text = answer.strip()
    return text if not text or text.endswith(".") else f"{text}."


def _from_targets(where: str, rows: Rows) -> Dataset:
    items = []
    for place, row in rows:
        question, targets = row.get("question"), row.get("mc1_targets")
        options = targets.get("choices") if isinstance(targets, dict) else None
        labels = targets.get("labels") if isinstance(targets, dict) else None
        if (
            not isinstance(question, str)
            or not isinstance(options, list)
            or not isinstance(labels, list)
            or len(options) != len(labels)
            or not all(isinstance(option, str) for option in options)
        ):
            raise DataError(f"{place}: question and mc1_targets were expected")
        if labels.count(1) != 1:
            raise DataError(
                f"{place}: {labels.count(1)} of the mc1_targets are labelled 1, not one"
            )
        items.append(_item(place, question, options, options[labels.index(1)]))
    return _dataset(where, items)


def _item(where: str, question: str, options: Sequence[str], right: str) -> Item:
    if len(options) < 2:
        raise DataError(f"{where}: no incorrect answers")
    ordered = sorted(options, key=lambda option: _digest(question, option))
    return Item(
        id=safe_id(question, 80),
        subject=_NAME,
        question=question,
        gold=ordered.index(right),
        options=tuple(ordered),
    )


def _digest(question: str, option: str) -> bytes:
    return hashlib.sha256(f"{question}\n{option}".encode("utf-8", "surrogatepass")).digest()


def _dataset(where: str, items: Sequence[Item]) -> Dataset:
    check_sizes(_NAME, where, [("validation", {_NAME: len(items)}, {_NAME: ROWS})])
    return Dataset(tuple(items), warnings=item_warnings(_NAME, items))
