"""MMLU-Pro (Wang et al., 2024): 12,032 questions of 14 categories with 3 to 10 options.

Items, ids and content hash are the same from every source: the hub, its parquet files, or jsonl.
Item ids are ``<category>-<question_id>``, such as ``business-0070``. Padding of the options
(``N/A`` at the end of the list) is dropped. Incomplete copies are rejected; contradictory keys and
equal options are reported as warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import subject_sizes
from pytest_llmeval.prompts.chain_of_thought import LMEVAL_MMLU_PRO
from pytest_llmeval.prompts.chain_of_thought import MMLU_PRO
from pytest_llmeval.prompts.chain_of_thought import MMLU_PRO_PADDING
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU
from pytest_llmeval.sources.files import Rows
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import jsonl_rows
from pytest_llmeval.sources.files import parquet_files
from pytest_llmeval.sources.files import parquet_rows
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "TIGER-Lab/MMLU-Pro"
REVISION = "3373e0b32277875b8db2aa555a333b78a08477ea"
VALIDATION_ROWS = 5

# Test rows of every category, counted in the release of 12,032.
TEST_ROWS: Mapping[str, int] = {
    "biology": 717,
    "business": 789,
    "chemistry": 1132,
    "computer_science": 410,
    "economics": 844,
    "engineering": 969,
    "health": 818,
    "history": 381,
    "law": 1101,
    "math": 1351,
    "other": 924,
    "philosophy": 499,
    "physics": 1299,
    "psychology": 798,
}

# Both tools stop at the next question and generate at most 2,048 tokens. The official script also
# drops shots until a prompt is shorter than 2,048 tokens, whatever the model's context window is;
# here shots are dropped only if a prompt exceeds the model's context window.
_DECODING = Decoding(max_tokens=2048, stop=("Question:",))
PROTOCOLS = (
    Protocol("cot", MMLU_PRO, scorer="choice", shots=5, ask="text", decoding=_DECODING),
    Protocol(
        "official",
        MMLU_PRO,
        scorer="mmlu_pro_official",
        also=("mmlu_pro_official_first", "choice"),
        shots=5,
        ask="text",
        allow_copies=True,
        decoding=_DECODING,
    ),
    Protocol(
        "lmeval",
        LMEVAL_MMLU_PRO,
        scorer="mmlu_pro_lmeval",
        also=("choice",),
        shots=5,
        ask="text",
        allow_copies=True,
        decoding=_DECODING,
    ),
    Protocol("letter", LMEVAL_MMLU, scorer="letter", shots=5),
    *matched_protocols(),
)


def mmlu_pro() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark("mmlu_pro", source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/mmlu_pro`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first("mmlu_pro", data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``{test,validation}.jsonl`` (or ``.jsonl.gz``), or of parquet files."""
    test = first_file(folder, "test.jsonl", "test.jsonl.gz")
    validation = first_file(folder, "validation.jsonl", "validation.jsonl.gz")
    if test is not None and validation is not None:
        return _dataset(str(folder), jsonl_rows(test), jsonl_rows(validation))
    for root in (folder / "data", folder):
        files = [parquet_files(root, split) for split in ("test", "validation")]
        if all(files):
            return _dataset(str(root), *map(parquet_rows, files))
    raise DataError(
        f"{folder}: not a copy of mmlu_pro (neither test.jsonl and validation.jsonl nor"
        " data/test-*.parquet and data/validation-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's splits test and validation."""
    test, validation = (hub_rows(path, None, split, revision) for split in ("test", "validation"))
    return _dataset(path, test, validation)


def _dataset(where: str, test: Rows, validation: Rows) -> Dataset:
    items: list[Item] = []
    warnings: list[str] = []
    for place, row in test:
        item = _item(place, row, "")
        items.append(item)
        warnings += _row_warnings(item, row)
    shots: dict[str, list[Item]] = {}
    for place, row in validation:
        shot = _item(place, row, "validation-")  # distinguishes shots from test items
        shots.setdefault(shot.subject, []).append(shot)
    pool = {subject: tuple(shots[subject]) for subject in sorted(shots)}
    check_sizes(
        "mmlu_pro",
        where,
        [
            ("test", subject_sizes(items), TEST_ROWS),
            (
                "validation",
                {subject: len(members) for subject, members in pool.items()},
                dict.fromkeys(TEST_ROWS, VALIDATION_ROWS),
            ),
        ],
    )
    return Dataset(tuple(items), pool, tuple(warnings))


def _item(where: str, row: dict[str, Any], prefix: str) -> Item:
    """Return the item of a row; the letter in ``answer`` is the key, as in both tools."""
    number, category, question = row.get("question_id"), row.get("category"), row.get("question")
    options, answer = row.get("options"), row.get("answer")
    if (
        not isinstance(number, int)
        or not isinstance(category, str)
        or not isinstance(question, str)
        or not isinstance(options, list)
        or not all(isinstance(option, str) for option in options)
    ):
        raise DataError(f"{where}: question_id, category, question and options were expected")
    unpadded = list(options)
    while unpadded and unpadded[-1] == MMLU_PRO_PADDING:
        unpadded.pop()
    labels = LABELS[: len(unpadded)]
    if not isinstance(answer, str) or len(answer) != 1 or answer not in labels:
        raise DataError(
            f"{where}: answer {answer!r} is not the letter of one of {len(unpadded)} options"
        )
    fields = {}
    if row.get("cot_content"):
        fields["cot"] = str(row["cot_content"])
    if len(unpadded) < len(options):
        fields["padding"] = str(len(options) - len(unpadded))
    subject = category.replace(" ", "_")
    return Item(
        id=f"{prefix}{row_id(subject, number)}",
        subject=subject,
        question=question,
        gold=labels.index(answer),
        options=tuple(unpadded),
        fields=fields,
    )


def _row_warnings(item: Item, row: dict[str, Any]) -> Iterator[str]:
    """Yield a line for a contradictory key and for every pair of equal options."""
    other = row.get("answer_index")
    if isinstance(other, int) and other != item.gold:
        label = LABELS[other] if 0 <= other < len(LABELS) else "none"
        yield (
            f"{item.id}: answer is {item.gold_label}, answer_index is {other} ({label});"
            f" {item.gold_label} counts"
        )
    labelled = zip(LABELS, item.options, strict=False)
    for (first, first_text), (second, second_text) in combinations(labelled, 2):
        if first_text == second_text:
            yield f"{item.id}: options {first} and {second} are equal"
