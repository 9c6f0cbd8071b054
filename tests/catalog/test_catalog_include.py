"""INCLUDE: a subject is a language; shots are of the same language."""

from __future__ import annotations

from pathlib import Path

from pytest_llmeval.catalog import include
from pytest_llmeval.catalog.include import LANGUAGES
from support.subject_copies import INCLUDE
from support.subject_copies import include_row


def test_languages_are_distinct() -> None:
    assert len(LANGUAGES) == len(set(LANGUAGES)) == 44


def test_a_subject_is_a_language(tmp_path: Path) -> None:
    dataset = include().source(INCLUDE.write(tmp_path))
    ids = ["Albanian-0000", "North_Macedonian-0000", "Albanian-0001"]
    assert [item.id for item in dataset.items[:3]] == ids
    item = dataset.items[2]
    assert (item.gold_label, item.options) == ("B", ("None", "Right 1", " b ", "c 1"))
    assert item.fields == {"domain": "STEM"}


def test_a_copy_with_fewer_languages_is_warned_about(tmp_path: Path) -> None:
    assert include().source(INCLUDE.write(tmp_path)).warnings == (
        "include: 2 of 44 languages, 6 of 22,637 items: scores are not those of the benchmark",
    )


def test_shots_are_of_the_language_of_the_item(tmp_path: Path) -> None:
    validation = [
        include_row(language, "validation", n)
        for n in range(6)
        for language in ("Albanian", "Greek")
    ]
    dataset = include().source(
        INCLUDE.write(tmp_path, {**INCLUDE.splits, "validation": validation})
    )
    letter, lmeval = include().protocols[:2]
    item = dataset.items[0]
    shots = letter.select_shots(item, dataset.pool[item.subject])
    assert [shot.id for shot in shots] == [f"validation-Albanian-{n:04d}" for n in range(5)]
    assert [shot.question for shot in shots] == [f"Albanian validation {n}?" for n in range(5)]
    # A language without shots gets none of another.
    assert "North_Macedonian" not in dataset.pool
    assert lmeval.shots == 0
