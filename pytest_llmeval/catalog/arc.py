"""ARC (Clark et al., 2018): 2,376 easy and 1,172 challenging science questions, two benchmarks.

Items, ids and content hash are the same from every source: the official jsonl files or the hub.
Item ids are those of the data. Most items have four options labelled A to D; some have three or
five, some are labelled 1 to 4. The key is looked up among the item's own labels; prompts and
answers always use letters. Incomplete copies are rejected; repeated questions are reported as
warnings. Shots come from the training split.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
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

REPO = "allenai/ai2_arc"
REVISION = "210d026faf9955653af8916fad021475a3f00453"

# Rows of the splits test and train.
ROWS = {"ARC-Challenge": (1172, 1119), "ARC-Easy": (2376, 2251)}

# lm-eval compares the texts of the options. By default it uses no shots; it selects shots at
# random. `cloze` is its prompt with one result instead of two.
PROTOCOLS = (
    Protocol("cloze", CLOZE, scorer="cloze"),
    Protocol(
        "lmeval", CLOZE, scorer="cloze", also=("likelihood",), draw="lmeval", allow_copies=True
    ),
    Protocol("letter", LMEVAL_COMMONSENSEQA, scorer="letter", shots=5),
    *matched_protocols(),
)


def arc_challenge() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(
        "arc_challenge", source=partial(load, part="ARC-Challenge"), protocols=PROTOCOLS
    )


def arc_easy() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark("arc_easy", source=partial(load, part="ARC-Easy"), protocols=PROTOCOLS)


def load(data_dir: Any = None, *, part: str) -> Dataset:
    """Load the complete data from ``DIR/arc`` if the data folder has it, else from the hub.

    ``part`` is ``ARC-Challenge`` or ``ARC-Easy``. Raises DataError if there is no copy or it is
    incomplete.
    """
    return load_first(
        "arc", data_dir, partial(from_folder, part=part), partial(from_hub, part=part)
    )


def from_folder(folder: Path, *, part: str) -> Dataset:
    """Read the items of ``ARC-*/ARC-*-{Test,Train}.jsonl``, or of a clone of the hub's repository.

    The official archive unpacks to a folder of its own, which is searched as well.
    """
    for root in (folder / part, folder / "ARC-V1-Feb2018-2" / part):
        test, train = (
            first_file(root, f"{part}-{split}.jsonl", f"{part}-{split}.jsonl.gz")
            for split in ("Test", "Train")
        )
        if test is not None and train is not None:
            return _dataset(part, str(root), jsonl_rows(test), jsonl_rows(train))
    files = [parquet_files(folder / part, split) for split in ("test", "train")]
    if all(files):
        return _dataset(part, str(folder / part), *map(parquet_rows, files))
    raise DataError(
        f"{folder}: not a copy of arc (neither {part}/{part}-Test.jsonl and {part}-Train.jsonl nor"
        f" {part}/test-*.parquet and train-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION, *, part: str) -> Dataset:
    """Read the items of the hub's configuration of that name, splits test and train."""
    test, train = (hub_rows(path, part, split, revision) for split in ("test", "train"))
    return _dataset(part, f"{path}, {part}", test, train)


def _dataset(part: str, where: str, test: Rows, train: Rows) -> Dataset:
    name = part.lower().replace("-", "_")
    items = tuple(_item(name, place, row, "") for place, row in test)
    shots = tuple(_item(name, place, row, "train-") for place, row in train)
    sizes = zip(("test", "train"), (items, shots), ROWS[part], strict=True)
    check_sizes(
        name, where, [(split, {name: len(part)}, {name: rows}) for split, part, rows in sizes]
    )
    return Dataset(items, {name: shots}, item_warnings(name, items))


def _item(name: str, where: str, row: dict[str, Any], prefix: str) -> Item:
    return labelled_item(where, row, name, prefix, "test")
