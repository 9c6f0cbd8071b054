"""GSM8K (Cobbe et al., 2021): 1,319 test problems, 7,473 training problems as shots.

Items, ids and content hash are the same from every source: the official jsonl files or the hub.
Item ids are ``gsm8k-<row>``. Incomplete copies are rejected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.chain_of_thought import COT_EXAMPLES
from pytest_llmeval.prompts.chain_of_thought import GSM8K_COT
from pytest_llmeval.prompts.chain_of_thought import GSM8K_ZERO_SHOT
from pytest_llmeval.prompts.chain_of_thought import LMEVAL_GSM8K
from pytest_llmeval.sources.files import Rows
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import jsonl_rows
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "openai/gsm8k"
REVISION = "e53f048856ff4f594e959d75785d2c2d37b678ee"
TEST_ROWS = 1319
TRAIN_ROWS = 7473

_SUBJECT = "gsm8k"
_END = ("</s>", "<|im_end|>")

# `lmeval` and `lmeval_cot` are lm-eval's tasks gsm8k and gsm8k_cot, with its stop strings and 256
# tokens. The paper names no stop strings; `cot` has those of lm-eval, and more tokens for models
# with long explanations.
PROTOCOLS = (
    Protocol(
        "cot",
        GSM8K_COT,
        scorer="number",
        shots=8,
        examples=COT_EXAMPLES,
        ask="text",
        decoding=Decoding(max_tokens=512, stop=("Q:", *_END)),
    ),
    Protocol(
        "lmeval",
        LMEVAL_GSM8K,
        scorer="lmeval_strict",
        also=("lmeval_flexible", "number"),
        shots=5,
        draw="lmeval",
        ask="text",
        decoding=Decoding(max_tokens=256, stop=("Question:", *_END)),
    ),
    Protocol(
        "lmeval_cot",
        GSM8K_COT,
        scorer="lmeval_cot_strict",
        also=("lmeval_flexible", "number"),
        shots=8,
        examples=COT_EXAMPLES,
        ask="text",
        decoding=Decoding(max_tokens=256, stop=("Q:", *_END)),
    ),
    Protocol(
        "zero_shot",
        GSM8K_ZERO_SHOT,
        scorer="number",
        ask="text",
        decoding=Decoding(max_tokens=512, stop=("Q:", *_END)),
    ),
)


def gsm8k() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark("gsm8k", source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/gsm8k`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first("gsm8k", data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``{test,train}.jsonl`` (or ``.jsonl.gz``), or of a clone of the hub's.

    In a clone of the official repository the files are in ``grade_school_math/data``.
    """
    for root in (folder, folder / "grade_school_math" / "data"):
        test = first_file(root, "test.jsonl", "test.jsonl.gz")
        train = first_file(root, "train.jsonl", "train.jsonl.gz")
        if test is not None and train is not None:
            return _dataset(str(root), jsonl_rows(test), jsonl_rows(train))
    if any((folder / "main").glob("test-*.parquet")):
        return from_hub(str(folder))
    raise DataError(
        f"{folder}: not a copy of gsm8k (neither test.jsonl and train.jsonl nor"
        " main/test-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's configuration ``main``, splits test and train."""
    test, train = (hub_rows(path, "main", split, revision) for split in ("test", "train"))
    return _dataset(path, test, train)


def _dataset(where: str, test: Rows, train: Rows) -> Dataset:
    items = tuple(_item(place, row_id(_SUBJECT, n), row) for n, (place, row) in enumerate(test))
    # The id distinguishes a shot from the test item in the same row.
    shots = tuple(
        _item(place, f"train-{row_id(_SUBJECT, n)}", row) for n, (place, row) in enumerate(train)
    )
    check_sizes(
        "gsm8k",
        where,
        [
            ("test", {_SUBJECT: len(items)}, {_SUBJECT: TEST_ROWS}),
            ("train", {_SUBJECT: len(shots)}, {_SUBJECT: TRAIN_ROWS}),
        ],
    )
    return Dataset(items=items, pool={_SUBJECT: shots})


def _item(where: str, name: str, row: dict[str, Any]) -> Item:
    """Return the item of a row; ``gold`` is the number after ``####``, without separators."""
    question, answer = row.get("question"), row.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str):
        raise DataError(f"{where}: texts question and answer were expected")
    _, mark, number = answer.rpartition("####")
    gold = number.strip().replace(",", "")
    if not mark or not gold.removeprefix("-").isdecimal():
        raise DataError(f"{where}: the answer does not end with '#### ' and a whole number")
    return Item(name, _SUBJECT, question, gold, fields={"answer": answer})
