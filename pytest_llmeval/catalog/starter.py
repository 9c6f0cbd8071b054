"""``starter``: questions of general knowledge written for this package, which need no download.

It has two protocols with two results: by letter, as in MMLU, and cloze, which suits small models
that cannot use letters yet.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.multiple_choice import CLOZE
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU
from pytest_llmeval.sources.files import read_jsonl
from pytest_llmeval.sources.jsonl_benchmark import JsonlFields
from pytest_llmeval.sources.jsonl_benchmark import make_item

# Cloze with shots: on a draft of 365 items, SmolLM2-135M-Instruct reached 0.726 with five shots and
# 0.600 without (62 items right only with shots, 16 only without), better or equal in 11 of 12
# subjects; the shots show that the answer is a bare phrase. Items of a subject share them, so their
# cost is low.
PROTOCOLS = (
    Protocol("letter", LMEVAL_MMLU, scorer="letter", shots=5),
    Protocol("cloze", CLOZE, scorer="cloze", shots=5),
)


def starter() -> Benchmark:
    """Return the packaged benchmark, which needs neither network nor extras."""
    return Benchmark("starter", source=load, protocols=PROTOCOLS)


def load(_data_dir: Any = None) -> Dataset:
    """Return the packaged items: subjects in alphabetical order, rows as in the file."""
    packaged = resources.files("pytest_llmeval.catalog") / "starter.jsonl"
    with resources.as_file(packaged) as path:
        return from_file(path)


def from_file(path: Path) -> Dataset:
    """Read the items of a file whose rows have a ``split``, ``test`` or ``dev``."""
    splits: dict[str, dict[str, list[Item]]] = {"test": {}, "dev": {}}
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        split, subject = row.get("split"), row.get("subject")
        if split not in splits or not isinstance(subject, str):
            raise DataError(f"{where}: split (test or dev) and subject were expected")
        rows = splits[split].setdefault(subject, [])
        item = make_item(where, row, JsonlFields(), subject, len(rows))
        # The id distinguishes a shot from the test item in the same row.
        rows.append(item if split == "test" else replace(item, id=f"{split}-{item.id}"))
    return Dataset(
        items=tuple(item for _, items in sorted(splits["test"].items()) for item in items),
        pool={subject: tuple(items) for subject, items in sorted(splits["dev"].items())},
    )
