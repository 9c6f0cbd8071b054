"""INCLUDE: rows in the hub's columns; shots of the same language, from the validation split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import include
from pytest_llmeval.catalog.include import LANGUAGES
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from support.hub_copies import Rows
from support.hub_copies import fake_hub
from support.hub_copies import write_clone
from support.hub_copies import write_jsonl


def row(language: str, number: int, /, **changes: Any) -> dict[str, Any]:
    return {
        "language": language,
        "country": "Nowhere",
        "domain": "STEM" if number % 2 else "Arts & Humanities",
        "subject": "Cards",
        "regional_feature": "agnostic",
        "level": "Academic",
        "question": f"{language} {number}?",
        "option_a": "një",
        "option_b": " dy",
        "option_c": "tre ",
        "option_d": "None",
        "answer": number % 4,
        **changes,
    }


TEST = [row(language, n) for n in range(6) for language in ("Albanian", "North Macedonian")]
VALIDATION = [row(language, n + 10) for n in range(6) for language in ("Albanian", "Greek")]


def of_language(rows: Rows, language: str) -> Rows:
    return [row for row in rows if row["language"] == language]


def write(folder: Path, test: Rows = TEST, validation: Rows | None = VALIDATION) -> Path:
    write_jsonl(folder / "include" / "test.jsonl", test)
    if validation is not None:
        write_jsonl(folder / "include" / "validation.jsonl", validation)
    return folder


def test_a_subject_is_a_language(tmp_path: Path) -> None:
    dataset = include().source(write(tmp_path))
    check_dataset("include", dataset)
    assert dataset.subject_sizes() == {"Albanian": 6, "North_Macedonian": 6}
    assert [item.id for item in dataset.items[:3]] == [
        "Albanian-0000",
        "North_Macedonian-0000",
        "Albanian-0001",
    ]
    item = dataset.items[2]
    assert (item.gold_label, item.options) == ("B", ("një", " dy", "tre ", "None"))
    assert item.fields == {"domain": "STEM"}
    assert dataset.warnings == (
        "include: 2 of 44 languages, 12 of 22,637 items: scores are not those of the benchmark",
    )


def test_shots_are_of_the_language_and_of_the_validation_split(tmp_path: Path) -> None:
    dataset = include().source(write(tmp_path))
    letter, lmeval = include().protocols[:2]
    item = dataset.items[0]
    shots = letter.draw_shots(item, dataset.pool[item.subject])
    assert [shot.id for shot in shots] == [f"validation-Albanian-{n:04d}" for n in range(5)]
    assert [shot.question for shot in shots] == [f"Albanian {n}?" for n in range(10, 15)]
    # No other language steps in.
    assert "North_Macedonian" not in dataset.pool
    assert lmeval.shots == 0
    without = include().source(write(tmp_path / "other", validation=None))
    assert (without.pool, without.items) == ({}, dataset.items)


def test_clone_and_hub_give_the_same_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = include().source(write(tmp_path / "files"))
    for language in ("Albanian", "Greek", "North Macedonian"):
        splits = {
            split: found
            for split, rows in (("test", TEST), ("validation", VALIDATION))
            if (found := of_language(rows, language))
        }
        write_clone(tmp_path / "clone" / "include" / language, splits)
    assert include().source(tmp_path / "clone").content_hash() == files.content_hash()
    hub = {
        (language, split): of_language(rows, language)
        for language in LANGUAGES
        for split, rows in (("test", TEST), ("validation", VALIDATION))
    }
    fake_hub(monkeypatch, "CohereLabs/include-base-44", hub)
    assert include().source(tmp_path).content_hash() == files.content_hash()
    assert len(LANGUAGES) == len(set(LANGUAGES)) == 44


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": None}, "no gold label in this split"),
        ({"answer": -1}, "no gold label in this split"),
        ({"answer": 4}, "answer 4 is not a number 0 to 3"),
        ({"answer": True}, "answer True is not a number 0 to 3"),
        ({"answer": "B"}, "answer 'B' is not a number 0 to 3"),
        ({"option_d": None}, "language, domain, question and option_a to option_d"),
        ({"language": ""}, "language, domain, question and option_a to option_d"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    rows = [row("Greek", 0), row("Greek", 1, **change)]
    with pytest.raises(DataError, match=rf"test\.jsonl, line 2: {message}"):
        include().source(write(tmp_path, rows))


def test_a_folder_that_is_no_copy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    with pytest.raises(DataError, match=r"not a copy of include \(neither test\.jsonl"):
        include().source(tmp_path)
