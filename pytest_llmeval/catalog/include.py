"""INCLUDE-base (Romanou et al., 2025): exam questions in 44 languages, 22,637 with four options.

An item's subject is its language: scores are published by language, and a language's shots come
from its own rows of the validation split. Items, ids and content hash are the same from every
source: jsonl files with the columns of the hub, or the hub. Item ids are ``<language>-<row>``.

Languages may be evaluated separately, so a copy with fewer languages or rows is accepted; a warning
in every run reports what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import subject_sizes
from pytest_llmeval.prompts.multiple_choice import INCLUDE
from pytest_llmeval.prompts.multiple_choice import LMEVAL_INCLUDE
from pytest_llmeval.sources.data_warnings import item_warnings
from pytest_llmeval.sources.files import Rows
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import jsonl_rows
from pytest_llmeval.sources.files import parquet_files
from pytest_llmeval.sources.files import parquet_rows
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "CohereLabs/include-base-44"
REVISION = "d2e1f6015f67a43c02a9a68db98e2298e2d6a660"
TEST_ROWS = 22637

LANGUAGES = (
    "Albanian",
    "Arabic",
    "Armenian",
    "Azerbaijani",
    "Basque",
    "Belarusian",
    "Bengali",
    "Bulgarian",
    "Chinese",
    "Croatian",
    "Dutch",
    "Estonian",
    "Finnish",
    "French",
    "Georgian",
    "German",
    "Greek",
    "Hebrew",
    "Hindi",
    "Hungarian",
    "Indonesian",
    "Italian",
    "Japanese",
    "Kazakh",
    "Korean",
    "Lithuanian",
    "Malay",
    "Malayalam",
    "Nepali",
    "North Macedonian",
    "Persian",
    "Polish",
    "Portuguese",
    "Russian",
    "Serbian",
    "Spanish",
    "Tagalog",
    "Tamil",
    "Telugu",
    "Turkish",
    "Ukrainian",
    "Urdu",
    "Uzbek",
    "Vietnamese",
)
"""The hub's configurations."""

_NAME = "include"
_OPTIONS = ("option_a", "option_b", "option_c", "option_d")

# lm-eval uses no shots by default. If requested, it selects them from the scored split, which is
# not reproduced here.
PROTOCOLS = (
    Protocol("letter", INCLUDE, scorer="letter", shots=5),
    Protocol("lmeval", LMEVAL_INCLUDE, scorer="letter"),
    *matched_protocols(),
)


def include() -> Benchmark:
    """Return the benchmark; its rows are loaded on first use."""
    return Benchmark(_NAME, source=load, protocols=PROTOCOLS)


def load(data_dir: Any = None) -> Dataset:
    """Load the data from ``DIR/include`` if the data folder has it, else from the hub.

    Raises DataError if there is no copy.
    """
    return load_first(_NAME, data_dir, from_folder, from_hub)


def from_folder(folder: Path) -> Dataset:
    """Read the items of ``{test,validation}.jsonl`` (all languages) or of the hub repository.

    A clone has a folder for every language. The validation split may be missing; then there are
    no shots.
    """
    test = first_file(folder, "test.jsonl", "test.jsonl.gz")
    if test is not None:
        validation = first_file(folder, "validation.jsonl", "validation.jsonl.gz")
        return _dataset(jsonl_rows(test), () if validation is None else jsonl_rows(validation))
    files = [
        [file for root in sorted(folder.iterdir()) for file in parquet_files(root, split)]
        for split in ("test", "validation")
    ]
    if files[0]:
        return _dataset(*map(parquet_rows, files))
    raise DataError(
        f"{folder}: not a copy of include (neither test.jsonl nor <language>/test-*.parquet)"
    )


def from_hub(path: str = REPO, revision: str = REVISION) -> Dataset:
    """Read the items of the hub's configurations (one per language), splits test and validation."""
    return _dataset(*(_hub_split(path, split, revision) for split in ("test", "validation")))


def _hub_split(path: str, split: str, revision: str) -> Rows:
    return chain.from_iterable(hub_rows(path, language, split, revision) for language in LANGUAGES)


def _dataset(test: Rows, validation: Rows) -> Dataset:
    items = tuple(_items(test, ""))
    pool: dict[str, list[Item]] = {}
    for shot in _items(validation, "validation-"):
        pool.setdefault(shot.subject, []).append(shot)
    warnings = item_warnings(_NAME, items)
    languages = subject_sizes(items)
    if len(languages) < len(LANGUAGES) or len(items) != TEST_ROWS:
        warnings = (
            f"{_NAME}: {len(languages)} of {len(LANGUAGES)} languages, {len(items):,} of"
            f" {TEST_ROWS:,} items: scores are not those of the benchmark",
            *warnings,
        )
    return Dataset(items, {language: tuple(pool[language]) for language in sorted(pool)}, warnings)


def _items(rows: Rows, prefix: str) -> Iterator[Item]:
    sizes: dict[str, int] = {}
    for where, row in rows:
        language, question, domain = row.get("language"), row.get("question"), row.get("domain")
        options = [row.get(name) for name in _OPTIONS]
        if (
            not isinstance(language, str)
            or not language
            or not isinstance(question, str)
            or not isinstance(domain, str)
            or not all(isinstance(option, str) for option in options)
        ):
            raise DataError(
                f"{where}: language, domain, question and option_a to option_d were expected"
            )
        answer = row.get("answer")
        if answer is None or answer == -1:
            raise DataError(f"{where}: no gold label in this split (answer is empty)")
        if isinstance(answer, bool) or answer not in range(4):
            raise DataError(f"{where}: answer {answer!r} is not a number 0 to 3")
        subject = language.replace(" ", "_")
        number = sizes.setdefault(subject, 0)
        sizes[subject] += 1
        yield Item(
            id=f"{prefix}{row_id(subject, number)}",
            subject=subject,
            question=question,
            gold=int(answer),
            options=tuple(map(str, options)),
            fields={"domain": domain},
        )
