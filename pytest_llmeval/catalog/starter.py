"""``starter``: general knowledge, written for this package, so that something runs at once.

It is asked in two ways, shown as two results: by letter, as MMLU is, and as cloze, which a
small model can do before it can use letters.
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
from pytest_llmeval.sources.jsonl_benchmark import Fields
from pytest_llmeval.sources.jsonl_benchmark import make_item

# Cloze with shots: SmolLM2-135M-Instruct on a draft of 365 items got 0.726 with five, 0.600 without
# (62 items right only with shots, 16 only without), better or equal in 11 of 12 subjects; the
# shots show that a bare phrase is wanted. They are shared by a subject, so they cost little.
PROTOCOLS = (
    Protocol("letter", LMEVAL_MMLU, scorer="letter", shots=5),
    Protocol("cloze", CLOZE, scorer="cloze", shots=5),
)


def starter() -> Benchmark:
    """The packaged benchmark; it needs neither network nor extras."""
    return Benchmark("starter", source=load, protocols=PROTOCOLS)


def load(_data_dir: Any = None) -> Dataset:
    """The packaged items: subjects in alphabetical order, rows as in the file."""
    packaged = resources.files("pytest_llmeval.catalog") / "starter.jsonl"
    with resources.as_file(packaged) as path:
        return from_file(path)


def from_file(path: Path) -> Dataset:
    """The items of a file whose rows say which ``split`` they belong to, ``test`` or ``dev``."""
    splits: dict[str, dict[str, list[Item]]] = {"test": {}, "dev": {}}
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        split, subject = row.get("split"), row.get("subject")
        if split not in splits or not isinstance(subject, str):
            raise DataError(f"{where}: split (test or dev) and subject were expected")
        rows = splits[split].setdefault(subject, [])
        item = make_item(where, row, Fields(), subject, len(rows))
        # A shot is not the test item with the same row.
        rows.append(item if split == "test" else replace(item, id=f"{split}-{item.id}"))
    return Dataset(
        items=tuple(item for _, items in sorted(splits["test"].items()) for item in items),
        pool={subject: tuple(items) for subject, items in sorted(splits["dev"].items())},
    )
