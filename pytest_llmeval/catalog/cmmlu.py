"""CMMLU (Li et al., 2023): 67 subjects in Chinese, 11,582 test items, 5 dev items each as shots.

Items, ids and content hash are the same from every source: the official csv files, or their archive
on the hub. Item ids are ``<subject>-<row>``. Incomplete copies are rejected; equal options and
repeated questions are reported as warnings. The data is for non-commercial use.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile
from zipfile import ZipFile

from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import subject_sizes
from pytest_llmeval.prompts.multiple_choice import LMEVAL_CMMLU
from pytest_llmeval.sources import hub
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.files import read_csv
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import load_first

REPO = "haonan-li/cmmlu"
REVISION = "efcc940752ea4a1ea94d2727f11f83858d64fc8e"
ARCHIVE = "cmmlu_v1_0_1.zip"
DEV_ROWS = 5

# Test rows of every subject, counted in the official release.
TEST_ROWS: Mapping[str, int] = {
    "agronomy": 169,
    "anatomy": 148,
    "ancient_chinese": 164,
    "arts": 160,
    "astronomy": 165,
    "business_ethics": 209,
    "chinese_civil_service_exam": 160,
    "chinese_driving_rule": 131,
    "chinese_food_culture": 136,
    "chinese_foreign_policy": 107,
    "chinese_history": 323,
    "chinese_literature": 204,
    "chinese_teacher_qualification": 179,
    "clinical_knowledge": 237,
    "college_actuarial_science": 106,
    "college_education": 107,
    "college_engineering_hydrology": 106,
    "college_law": 108,
    "college_mathematics": 105,
    "college_medical_statistics": 106,
    "college_medicine": 273,
    "computer_science": 204,
    "computer_security": 171,
    "conceptual_physics": 147,
    "construction_project_management": 139,
    "economics": 159,
    "education": 163,
    "electrical_engineering": 172,
    "elementary_chinese": 252,
    "elementary_commonsense": 198,
    "elementary_information_and_technology": 238,
    "elementary_mathematics": 230,
    "ethnology": 135,
    "food_science": 143,
    "genetics": 176,
    "global_facts": 149,
    "high_school_biology": 169,
    "high_school_chemistry": 132,
    "high_school_geography": 118,
    "high_school_mathematics": 164,
    "high_school_physics": 110,
    "high_school_politics": 143,
    "human_sexuality": 126,
    "international_law": 185,
    "journalism": 172,
    "jurisprudence": 411,
    "legal_and_moral_basis": 214,
    "logical": 123,
    "machine_learning": 122,
    "management": 210,
    "marketing": 180,
    "marxist_theory": 189,
    "modern_chinese": 116,
    "nutrition": 145,
    "philosophy": 105,
    "professional_accounting": 175,
    "professional_law": 211,
    "professional_medicine": 376,
    "professional_psychology": 232,
    "public_relations": 174,
    "security_study": 135,
    "sociology": 226,
    "sports_science": 165,
    "traditional_chinese_medicine": 185,
    "virology": 169,
    "world_history": 161,
    "world_religions": 160,
}

_NAME = "cmmlu"
_COLUMNS = ("Question", "A", "B", "C", "D", "Answer")

# Five shots, the first five dev rows, as in the paper. lm-eval uses no shots by default, and keeps
# a shot with the question of the item.
PROTOCOLS = (
    Protocol("letter", LMEVAL_CMMLU, scorer="letter", shots=5),
    Protocol("lmeval", LMEVAL_CMMLU, scorer="letter", allow_copies=True),
    *matched_protocols(),
)


def cmmlu() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(_NAME, source=load, protocols=PROTOCOLS, subject_files=True)


def load(data_dir: Any = None) -> Dataset:
    """Load the complete data from ``DIR/cmmlu`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return load_first(_NAME, data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``{dev,test}/<subject>.csv``, or of the archive ``cmmlu_v1_0_1.zip``.

    In a clone of the official repository the files are in ``data``.
    """
    for root in (folder, folder / "data"):
        if any((root / "test").glob("*.csv")):
            return _from_csv(root, str(root))
        if (root / ARCHIVE).is_file():
            return _from_archive(root / ARCHIVE)
    raise DataError(f"{folder}: not a copy of cmmlu (neither test/<subject>.csv nor {ARCHIVE})")


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's archive; ``datasets`` no longer runs its loading script."""
    return _from_archive(hub.download(path, ARCHIVE, revision))


def _from_archive(path: Path) -> Dataset:
    with TemporaryDirectory() as folder:
        try:
            with ZipFile(path) as archive:
                archive.extractall(folder)
        except (BadZipFile, OSError) as error:
            raise DataError(f"{path}: cannot be unpacked ({error})") from None
        return _from_csv(Path(folder), str(path))


def _from_csv(root: Path, where: str) -> Dataset:
    items = tuple(
        item
        for path in _files(root, "test")
        for item in _items(path, f"{where}, test/{path.name}", "")
    )
    pool = {
        path.stem: tuple(_items(path, f"{where}, dev/{path.name}", "dev-"))
        for path in _files(root, "dev")
    }
    shots = {subject: len(members) for subject, members in pool.items()}
    check_sizes(
        _NAME,
        where,
        [
            ("test", subject_sizes(items), TEST_ROWS),
            ("dev", shots, dict.fromkeys(TEST_ROWS, DEV_ROWS)),
        ],
    )
    return Dataset(items, pool, item_warnings(_NAME, items))


def _files(root: Path, split: str) -> list[Path]:
    return sorted(path for path in (root / split).glob("*.csv") if not path.name.startswith("."))


def _items(path: Path, where: str, prefix: str) -> Iterator[Item]:
    header, *rows = read_csv(path) or [[]]
    if not set(_COLUMNS) <= set(header):
        raise DataError(f"{where}, row 1: a header with {', '.join(_COLUMNS)} was expected")
    columns = [header.index(name) for name in _COLUMNS]
    for number, row in enumerate(rows):
        question, *options, answer = (row[column] for column in columns)
        place = f"{where}, row {number + 2}"
        if not answer.strip():
            raise DataError(f"{place}: no gold label in this split (Answer is empty)")
        if answer.strip() not in tuple(LABELS[:4]):
            raise DataError(f"{place}: answer {answer!r} is not a letter A to D")
        yield Item(
            id=f"{prefix}{row_id(path.stem, number)}",
            subject=path.stem,
            question=question,
            gold=LABELS.index(answer.strip()),
            options=tuple(options),
        )
