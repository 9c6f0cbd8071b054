"""Made-up copies of the benchmarks whose options come by subject: fields, categories, languages."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from pytest_llmeval.catalog import cmmlu
from pytest_llmeval.catalog import include
from pytest_llmeval.catalog import mmlu
from pytest_llmeval.catalog import mmlu_pro
from pytest_llmeval.catalog.cmmlu import ARCHIVE
from support.catalog_copies import LETTERS
from support.catalog_copies import MATCHED
from support.catalog_copies import CatalogCopy
from support.catalog_copies import HubSplits
from support.catalog_copies import Layout
from support.catalog_copies import Row
from support.catalog_copies import Splits
from support.catalog_copies import below
from support.catalog_copies import by
from support.catalog_copies import jsonl
from support.catalog_copies import options
from support.catalog_copies import read_csv
from support.catalog_copies import read_jsonl
from support.catalog_copies import under
from support.catalog_copies import write_csv

CMMLU_COLUMNS = ("Question", *LETTERS, "Answer")


def _by_subject(make: Callable[[str, str, int], Row], **sizes: dict[str, int]) -> Splits:
    return {
        split: [make(subject, split, n) for subject, size in subjects.items() for n in range(size)]
        for split, subjects in sizes.items()
    }


def cmmlu_row(subject: str, split: str, number: int) -> Row:
    texts = options(number % 4, number)
    return {
        "subject": subject,
        "Question": f"{subject}{split}{number}？",
        **dict(zip(LETTERS, texts, strict=True)),
        "Answer": LETTERS[number % 4],
    }


def write_subject_files(
    folder: Path,
    splits: Splits,
    columns: Sequence[str],
    name: str = "{split}/{subject}.csv",
    header: Sequence[str] | None = None,
) -> None:
    """A csv file a split and subject, of these columns."""
    for split, rows in splits.items():
        for subject, members in by(rows, "subject").items():
            lines = [[row[column] for column in columns] for row in members]
            path = folder / name.format(split=split, subject=subject)
            write_csv(path, lines if header is None else [header, *lines])


def write_cmmlu(folder: Path, splits: Splits) -> None:
    """The official csv files, whose first column numbers the rows."""
    numbered = {
        split: [
            row | {"": n}
            for members in by(rows, "subject").values()
            for n, row in enumerate(members)
        ]
        for split, rows in splits.items()
    }
    columns = ("", *CMMLU_COLUMNS)
    write_subject_files(folder, numbered, columns, header=columns)


def write_cmmlu_archive(folder: Path, splits: Splits) -> None:
    """The archive of the csv files that the hub has."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as unpacked, ZipFile(folder / ARCHIVE, "w") as archive:
        write_cmmlu(Path(unpacked), splits)
        for path in sorted(Path(unpacked).rglob("*.csv")):
            archive.write(path, path.relative_to(unpacked))


def _read_cmmlu(folder: Path) -> Splits:
    splits: Splits = {"test": [], "dev": []}
    for split, rows in splits.items():
        for path in sorted((folder / split).glob("*.csv")):
            header, *lines = read_csv(path)
            for line in lines:
                row = dict(zip(header, line, strict=True))
                rows.append({"subject": path.stem} | {name: row[name] for name in CMMLU_COLUMNS})
    return splits


_CMMLU_SIZES = {"logical": 3, "virology": 2}

CMMLU = CatalogCopy(
    cmmlu(),
    "cmmlu",
    splits=_by_subject(cmmlu_row, test=_CMMLU_SIZES, dev=dict.fromkeys(_CMMLU_SIZES, 5)),
    scored="test",
    pool="dev",
    shot_ids=r"dev-(logical|virology)-000[0-4]",
    protocols=("letter", "lmeval", *MATCHED),
    subjects=_CMMLU_SIZES,
    chance=0.25,
    folder="cmmlu",
    repo="haonan-li/cmmlu",
    constants={"TEST_ROWS": _CMMLU_SIZES},
    refusal=("test agronomy has 0 of 169 rows", "test anatomy has 0 of 148 rows"),
    layouts={
        "csv": write_cmmlu,
        "official repository": below("data", layout=write_cmmlu),
        "archive": write_cmmlu_archive,
        "archive in a folder": below("data", layout=write_cmmlu_archive),
    },
    archive=(ARCHIVE, write_cmmlu_archive),
    second_row=r"test/logical\.csv, row 3",  # below the header
    unusable=(
        ({"Answer": ""}, "no gold label in this split"),
        ({"Answer": "E"}, "answer 'E' is not a letter A to D"),
    ),
    read=_read_cmmlu,
)


def mmlu_row(subject: str, split: str, number: int) -> Row:
    texts = options(number % 4, number)
    return {
        "subject": subject,
        "question": f"{subject} {split} {number}?",
        **dict(zip(LETTERS, texts, strict=True)),
        "answer": LETTERS[number % 4],
    }


def mmlu_csv(header: Sequence[str] | None = None, *, as_number: bool = False) -> Layout:
    """The official csv files without a header, or with one; answers as letters or numbers."""

    def write(folder: Path, splits: Splits) -> None:
        rows = {
            split: [row | {"number": LETTERS.find(row["answer"])} for row in members]
            for split, members in splits.items()
        }
        columns = ("question", *LETTERS, "number" if as_number else "answer")
        write_subject_files(folder, rows, columns, "{split}/{subject}_{split}.csv", header)

    return write


def mmlu_to_hub(splits: Splits) -> HubSplits:
    return {
        ("all", split): [
            {
                "question": row["question"],
                "subject": row["subject"],
                "choices": [row[letter] for letter in LETTERS],
                "answer": LETTERS.index(row["answer"]),
            }
            for row in rows
        ]
        for split, rows in splits.items()
    }


def _read_mmlu(folder: Path) -> Splits:
    splits: Splits = {"test": [], "dev": []}
    for split, rows in splits.items():
        for path in sorted((folder / split).glob("*.csv")):
            subject = path.stem.removesuffix(f"_{split}")
            names = ("subject", "question", *LETTERS, "answer")
            rows += [dict(zip(names, (subject, *line), strict=True)) for line in read_csv(path)]
    return splits


_MMLU_SIZES = {"anatomy": 3, "virology": 2}

MMLU = CatalogCopy(
    mmlu(),
    "mmlu",
    splits=_by_subject(mmlu_row, test=_MMLU_SIZES, dev=dict.fromkeys(_MMLU_SIZES, 5)),
    scored="test",
    pool="dev",
    shot_ids=r"dev-(anatomy|virology)-000[0-4]",
    protocols=("lmeval", "hendrycks", *MATCHED),
    subjects=_MMLU_SIZES,
    chance=0.25,
    folder="mmlu",
    repo="cais/mmlu",
    constants={"TEST_ROWS": _MMLU_SIZES},
    refusal=("test lacks abstract_algebra, astronomy", "anatomy has 3 of 135 test rows"),
    layouts={
        "csv": mmlu_csv(),
        "csv, numbered options": mmlu_csv(
            ("question", "choice0", "choice1", "choice2", "choice3", "answer"), as_number=True
        ),
        "csv, lettered options": mmlu_csv(("question", *LETTERS, "answer")),
        "official archive": below("data", layout=mmlu_csv()),
    },
    to_hub=mmlu_to_hub,
    second_row=r"anatomy_test\.csv, row 2",
    unusable=(
        ({"answer": "E"}, "answer 'E' is neither a letter A to D nor a number 0 to 3"),
        ({"answer": "4"}, "answer '4' is neither"),
        ({"answer": ""}, "no gold label in this split"),
    ),
    read=_read_mmlu,
)


def mmlu_pro_row(category: str, split: str, number: int) -> Row:
    """Shots have their option list filled up to ten, and reasoning."""
    size = 3 + number % 2
    gold = number % size
    texts = options(gold, number, size)
    return {
        "question_id": 70 + number,
        "question": f" {category} {split} {number}? ",
        "options": texts if split == "test" else [*texts, *["N/A"] * (10 - size)],
        "answer": LETTERS[gold],
        "answer_index": gold,
        "cot_content": "" if split == "test" else "A: Let's think step by step. B.",
        "category": category,
        "src": "made up",
    }


_MMLU_PRO_SIZES = {"computer_science": 2, "law": 3}

MMLU_PRO = CatalogCopy(
    mmlu_pro(),
    "mmlu_pro",
    splits=_by_subject(
        mmlu_pro_row,
        test={"computer science": 2, "law": 3},
        validation={"computer science": 5, "law": 5},
    ),
    scored="test",
    pool="validation",
    shot_ids=r"validation-(computer_science|law)-007[0-4]",
    protocols=("cot", "official", "lmeval", "letter", *MATCHED),
    subjects=_MMLU_PRO_SIZES,
    chance=(3 / 3 + 2 / 4) / 5,
    folder="mmlu_pro",
    repo="TIGER-Lab/MMLU-Pro",
    constants={"TEST_ROWS": _MMLU_PRO_SIZES},
    refusal=("test biology has 0 of 717 rows",),
    layouts={
        "packed": jsonl(test="test.jsonl.gz", validation="validation.jsonl.gz"),
        "jsonl": jsonl(test="test.jsonl", validation="validation.jsonl"),
    },
    to_hub=under(None),
    second_row=r"test\.jsonl\.gz, line 2",
    unusable=(
        ({"answer": "E"}, "answer 'E' is not the letter of one of 4 options"),
        ({"answer": ""}, "answer '' is not the letter"),
        ({"answer": 1}, "answer 1 is not the letter"),
        ({"options": "abc"}, "question_id, category, question and options were expected"),
        ({"question_id": "7"}, "question_id, category, question and options were expected"),
    ),
    read=lambda folder: {
        "test": read_jsonl(folder / "test.jsonl.gz"),
        "validation": read_jsonl(folder / "validation.jsonl"),
    },
)


def include_row(language: str, split: str, number: int) -> Row:
    names = ("option_a", "option_b", "option_c", "option_d")
    return {
        "language": language,
        "country": "Nowhere",
        "domain": "STEM" if number % 2 else "Arts & Humanities",
        "subject": "Cards",
        "regional_feature": "agnostic",
        "level": "Academic",
        "question": f"{language} {split} {number}?",
        **dict(zip(names, options(number % 4, number), strict=True)),
        "answer": number % 4,
    }


def _include_to_hub(splits: Splits) -> HubSplits:
    return {
        (language, split): members
        for split, rows in splits.items()
        for language, members in by(rows, "language").items()
    }


INCLUDE_LANGUAGES = ("Albanian", "North Macedonian")

INCLUDE = CatalogCopy(
    include(),
    "include",
    # The languages in turn: an id has the row's number in its language.
    splits={
        split: [
            include_row(language, split, n) for n in range(size) for language in INCLUDE_LANGUAGES
        ]
        for split, size in (("test", 3), ("validation", 6))
    },
    scored="test",
    pool="validation",
    shot_ids=r"validation-(Albanian|North_Macedonian)-000\d",
    protocols=("letter", "lmeval", *MATCHED),
    subjects={"Albanian": 3, "North_Macedonian": 3},
    chance=0.25,
    folder="include",
    repo="CohereLabs/include-base-44",
    constants={"LANGUAGES": INCLUDE_LANGUAGES},
    layouts={
        "jsonl": jsonl(test="test.jsonl", validation="validation.jsonl"),
        "packed": jsonl(test="test.jsonl.gz", validation="validation.jsonl.gz"),
    },
    to_hub=_include_to_hub,
    second_row=r"test\.jsonl, line 2",
    unusable=(
        ({"answer": None}, "no gold label in this split"),
        ({"answer": -1}, "no gold label in this split"),
        ({"answer": 4}, "answer 4 is not a number 0 to 3"),
        ({"answer": True}, "answer True is not a number 0 to 3"),
        ({"answer": "B"}, "answer 'B' is not a number 0 to 3"),
        ({"option_d": None}, "language, domain, question and option_a to option_d"),
        ({"language": ""}, "language, domain, question and option_a to option_d"),
    ),
    optional=("validation",),
)


COPIES = (CMMLU, INCLUDE, MMLU, MMLU_PRO)
