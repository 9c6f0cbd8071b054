"""MMLU (Hendrycks et al., ICLR 2021): 57 subjects, 14,042 test items, 5 dev items each as shots.

Items, ids and content hash are the same from every source: the hub, the official CSV tree, or an
export with a header and integer answers. Incomplete copies are rejected; equal options and
repeated questions are reported as warnings.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.prompts.multiple_choice import HENDRYCKS
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU
from pytest_llmeval.sources import hub
from pytest_llmeval.sources.data_warnings import abbreviate
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.files import read_csv
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import benchmark_folder
from pytest_llmeval.sources.locate import not_found

REPO = "cais/mmlu"
REVISION = "c30699e8356da336a370243923dbaf21066bb9fe"
DEV_ROWS = 5

# Test rows of every subject, counted in the official release.
TEST_ROWS: Mapping[str, int] = {
    "abstract_algebra": 100,
    "anatomy": 135,
    "astronomy": 152,
    "business_ethics": 100,
    "clinical_knowledge": 265,
    "college_biology": 144,
    "college_chemistry": 100,
    "college_computer_science": 100,
    "college_mathematics": 100,
    "college_medicine": 173,
    "college_physics": 102,
    "computer_security": 100,
    "conceptual_physics": 235,
    "econometrics": 114,
    "electrical_engineering": 145,
    "elementary_mathematics": 378,
    "formal_logic": 126,
    "global_facts": 100,
    "high_school_biology": 310,
    "high_school_chemistry": 203,
    "high_school_computer_science": 100,
    "high_school_european_history": 165,
    "high_school_geography": 198,
    "high_school_government_and_politics": 193,
    "high_school_macroeconomics": 390,
    "high_school_mathematics": 270,
    "high_school_microeconomics": 238,
    "high_school_physics": 151,
    "high_school_psychology": 545,
    "high_school_statistics": 216,
    "high_school_us_history": 204,
    "high_school_world_history": 237,
    "human_aging": 223,
    "human_sexuality": 131,
    "international_law": 121,
    "jurisprudence": 108,
    "logical_fallacies": 163,
    "machine_learning": 112,
    "management": 103,
    "marketing": 234,
    "medical_genetics": 100,
    "miscellaneous": 783,
    "moral_disputes": 346,
    "moral_scenarios": 895,
    "nutrition": 306,
    "philosophy": 311,
    "prehistory": 324,
    "professional_accounting": 282,
    "professional_law": 1534,
    "professional_medicine": 272,
    "professional_psychology": 612,
    "public_relations": 110,
    "security_studies": 245,
    "sociology": 201,
    "us_foreign_policy": 100,
    "virology": 166,
    "world_religions": 171,
}

# Five shots, the first five dev rows, as in the paper. Both tools keep a shot with the question of
# the item (five dev items are also test items), so both protocols do.
PROTOCOLS = (
    Protocol("lmeval", LMEVAL_MMLU, scorer="letter", shots=5, allow_copies=True),
    Protocol("hendrycks", HENDRYCKS, scorer="letter", shots=5, allow_copies=True),
    *matched_protocols(),
)


def mmlu(subjects: Iterable[str] | None = None) -> Benchmark:
    """Return the benchmark, or some of its subjects; its rows are loaded on first use.

    ``subjects``: names such as ``college_mathematics``. They are then the whole benchmark: means
    and gates are over them, and the content hash differs from that of all 57. Raises ConfigError
    for a name that is not a subject of MMLU.
    """
    if subjects is None:
        return Benchmark("mmlu", source=load, protocols=PROTOCOLS, subject_files=True)
    if isinstance(subjects, str):
        raise ConfigError(f"mmlu: a list of subjects was expected, not {subjects!r}")
    chosen = list(subjects)
    for name in chosen:
        if name not in TEST_ROWS:
            raise ConfigError(f"mmlu: no subject {name!r}{suggestion(name, TEST_ROWS)}")
    if not chosen:
        raise ConfigError("mmlu: subjects is empty; leave it out for all 57")
    source = partial(_load_subjects, frozenset(chosen))
    return Benchmark("mmlu", source=source, protocols=PROTOCOLS, subject_files=True)


def _load_subjects(subjects: Collection[str], data_dir: Any = None) -> Dataset:
    dataset = load(data_dir)
    items = tuple(item for item in dataset.items if item.subject in subjects)
    return Dataset(
        items=items,
        pool={name: shots for name, shots in dataset.pool.items() if name in subjects},
        warnings=item_warnings("mmlu", items),
    )


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/mmlu`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    folder = benchmark_folder("mmlu", data_dir)
    if folder is not None:
        dataset = from_folder(folder)
    else:
        try:
            dataset = from_hub()
        except ConfigError as error:
            raise not_found("mmlu", data_dir, str(error)) from error
    check_complete(dataset, REPO if folder is None else str(folder))
    return replace(dataset, warnings=item_warnings("mmlu", dataset.items))


def from_folder(folder: Path) -> Dataset:
    """Read the items of a local copy, complete or not: a CSV tree or a clone of the hub repository.

    The official archive unpacks to a folder ``data``, which is searched as well.
    """
    for root in (folder, folder / "data"):
        if any((root / "test").glob("*_test.csv")):
            return from_csv(root)
    if any((folder / "all").glob("test-*.parquet")):
        return from_hub(str(folder))
    raise DataError(
        f"{folder}: not a copy of mmlu (neither test/<subject>_test.csv nor all/test-*.parquet)"
    )


def from_csv(root: Path) -> Dataset:
    """Read the items of ``{dev,test}/<subject>_{dev,test}.csv``; other files are ignored.

    Raises DataError with file and row for a row without a question, four options and an answer.
    """
    return Dataset(
        items=tuple(
            item
            for subject, path in _subject_files(root, "test")
            for item in _csv_items(path, subject, "test")
        ),
        pool={
            subject: tuple(_csv_items(path, subject, "dev"))
            for subject, path in _subject_files(root, "dev")
        },
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's configuration ``all``, splits test and dev."""
    test = _by_subject(path, hub.load_rows(path, "all", "test", revision))
    dev = _by_subject(path, hub.load_rows(path, "all", "dev", revision))
    return Dataset(
        items=tuple(
            _item(f"{path}, test, {subject}, row {row}", subject, "test", row, *cells)
            for subject in sorted(test)
            for row, cells in enumerate(test[subject])
        ),
        pool={
            subject: tuple(
                _item(f"{path}, dev, {subject}, row {row}", subject, "dev", row, *cells)
                for row, cells in enumerate(dev[subject])
            )
            for subject in sorted(dev)
        },
    )


def check_complete(dataset: Dataset, where: str) -> None:
    """Raise DataError for an incomplete copy, with its missing and incomplete subjects."""
    test = dataset.subject_sizes()
    dev = {subject: len(pool) for subject, pool in dataset.pool.items()}
    faults = _faults(test, TEST_ROWS, "test")
    faults += _faults(dev, dict.fromkeys(TEST_ROWS, DEV_ROWS), "dev")
    if faults:
        raise DataError(f"mmlu in {where} is not the complete set: {'; '.join(faults)}")


def _faults(sizes: Mapping[str, int], expected: Mapping[str, int], split: str) -> list[str]:
    faults = []
    missing = [subject for subject in expected if subject not in sizes]
    if missing:
        faults.append(f"{split} lacks {abbreviate(missing, 5)}")
    unknown = [subject for subject in sizes if subject not in expected]
    if unknown:
        faults.append(f"{split} has unknown subjects {abbreviate(unknown, 5)}")
    wrong = [
        f"{subject} has {sizes[subject]:,} of {rows:,} {split} rows"
        for subject, rows in expected.items()
        if subject in sizes and sizes[subject] != rows
    ]
    if wrong:
        faults.append(abbreviate(wrong, 5))
    return faults


def _subject_files(root: Path, split: str) -> list[tuple[str, Path]]:
    ending = f"_{split}.csv"
    return sorted(
        (path.name.removesuffix(ending), path)
        for path in (root / split).glob(f"*{ending}")
        if path.name != ending and not path.name.startswith(".")
    )


def _csv_items(path: Path, subject: str, split: str) -> Iterable[Item]:
    rows = read_csv(path)
    if not rows:
        raise DataError(f"{path}: no rows")
    columns = _columns(path, rows[0])
    first = 1 if columns is not None else 0
    question, *options, answer = columns if columns is not None else range(6)
    for number, row in enumerate(rows[first:]):
        yield _item(
            f"{path}, row {number + first + 1}",
            subject,
            split,
            number,
            row[question],
            [row[column] for column in options],
            row[answer],
        )


def _columns(path: Path, row: list[str]) -> list[int] | None:
    """Return the columns of question, four options and answer; None without a header."""
    names = [cell.strip().lower() for cell in row]
    if "question" in names and "answer" in names:
        for options in (["choice0", "choice1", "choice2", "choice3"], ["a", "b", "c", "d"]):
            required = ["question", *options, "answer"]
            if set(required) <= set(names):
                return [names.index(name) for name in required]
        raise DataError(
            f"{path}, row 1: a header without question, choice0 to choice3 (or A to D) and answer"
        )
    if len(row) != 6:
        raise DataError(f"{path}, row 1: {len(row)} cells; question, A, B, C, D, answer expected")
    return None


def _by_subject(path: str, rows: list[dict[str, Any]]) -> dict[str, list[tuple[Any, Any, Any]]]:
    subjects: dict[str, list[tuple[Any, Any, Any]]] = {}
    for number, row in enumerate(rows):
        try:
            cells = (row["question"], row["choices"], row["answer"])
            subjects.setdefault(row["subject"], []).append(cells)
        except KeyError as error:
            raise DataError(f"{path}, row {number}: no column {error}") from None
    return subjects


def _item(
    where: str, subject: str, split: str, row: int, question: Any, options: Any, answer: Any
) -> Item:
    if not isinstance(question, str) or len(options) != 4:
        raise DataError(f"{where}: a question and four options were expected")
    name = row_id(subject, row)
    return Item(
        # The id distinguishes a shot from the test item in the same row.
        id=name if split == "test" else f"{split}-{name}",
        subject=subject,
        question=question,
        gold=_gold(where, answer),
        options=tuple(options),
    )


def _gold(where: str, answer: Any) -> int:
    """Return the index of the gold from a letter A to D or an integer 0 to 3 (number or text)."""
    text = str(answer).strip()
    if text in ("", "-1", "None"):
        raise DataError(f"{where}: no gold label in this split")
    for index in range(4):
        if text in (LABELS[index], str(index)):
            return index
    raise DataError(f"{where}: answer {text!r} is neither a letter A to D nor a number 0 to 3")
