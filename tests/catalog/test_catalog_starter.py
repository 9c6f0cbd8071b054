"""``starter``: how its file is read (what the file holds is tested on its own)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import starter
from pytest_llmeval.catalog.starter import from_file
from pytest_llmeval.core import DataError


def row(split: str, subject: str, question: str = "q?", **changes: Any) -> dict[str, Any]:
    options = {"options": ["w", "x", "y", "z"], "answer": "C"}
    return {"split": split, "subject": subject, "question": question, **options, **changes}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rows_become_items_and_shots(tmp_path: Path) -> None:
    rows = [row("dev", "b"), row("test", "b"), row("test", "a"), row("test", "b", answer="A")]
    dataset = from_file(write(tmp_path / "s.jsonl", *rows))
    assert [item.id for item in dataset.items] == ["a-0000", "b-0000", "b-0001"]
    assert [item.gold for item in dataset.items] == [2, 2, 0]
    assert [shot.id for shot in dataset.pool["b"]] == ["dev-b-0000"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row("val", "a"), r"split \(test or dev\) and subject were expected"),
        (row("test", "a", answer="E"), "gold 'E' is outside the 4 options"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"s\.jsonl, line 2: {message}"):
        from_file(write(tmp_path / "s.jsonl", row("test", "a"), bad))


def test_subjects_of_the_packaged_items() -> None:
    dataset = starter().source(None)
    subjects = list(dataset.subject_sizes())
    assert subjects == sorted(subjects)
    assert len(subjects) >= 10
    assert set(dataset.pool) == set(subjects)
