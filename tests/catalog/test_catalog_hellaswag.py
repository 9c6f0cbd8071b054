"""HellaSwag: samples of it, and the cleaned text of its prompts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_llmeval.catalog import hellaswag
from pytest_llmeval.core import DataError
from pytest_llmeval.prompts.continuations import clean
from pytest_llmeval.prompts.continuations import context
from support.catalog_copies import write_jsonl
from support.choice_copies import hellaswag_row

ROWS = [hellaswag_row("validation", number) for number in range(4)]


def test_the_public_sample_is_warned_about(data: Path) -> None:
    dataset = hellaswag().source(data)
    assert dataset.warnings == (
        "hellaswag: a sample of 1,000 of its 10,042 items: scores are not those of the benchmark",
    )
    assert dataset.pool == {}
    assert Counter(item.gold for item in dataset.items) == {0: 267, 1: 228, 2: 266, 3: 239}
    marked = [item for item in dataset.items if "[" in f"{item.question}{item.options}"[:-1]]
    assert all("[" not in item.question for item in dataset.items)
    assert all("[" not in option for item in marked for option in item.options)


def test_a_sample_has_as_many_rows_as_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "hellaswag"
    write_jsonl(folder / "hellaswag_val_3.jsonl", ROWS[:2])
    with pytest.raises(DataError, match="validation hellaswag has 2 of 3 rows"):
        hellaswag().source(tmp_path)
    write_jsonl(folder / "hellaswag_val_2.jsonl", ROWS[:2])
    with pytest.raises(DataError, match=r"more than one sample .*_2\.jsonl, .*_3\.jsonl"):
        hellaswag().source(tmp_path)
    (folder / "hellaswag_val_3.jsonl").unlink()
    dataset = hellaswag().source(tmp_path)
    assert [item.id for item in dataset.items] == ["hellaswag-00000", "hellaswag-00001"]
    assert dataset.warnings[0].startswith("hellaswag: a sample of 2 of its 10,042 items")


def test_unusable_rows_of_a_sample_are_named(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[1] | {"label": ""}]
    write_jsonl(tmp_path / "hellaswag" / "hellaswag_val_2.jsonl", rows)
    with pytest.raises(DataError, match=r"hellaswag_val_2\.jsonl, line 2: no gold label"):
        hellaswag().source(tmp_path)


def test_a_truncated_copy_is_not_a_sample(tmp_path: Path) -> None:
    rows = [hellaswag_row("validation", number) for number in range(1000)]
    write_jsonl(tmp_path / "hellaswag" / "hellaswag_val.jsonl", rows)
    with pytest.raises(DataError, match="validation hellaswag has 1,000 of 10,042 rows"):
        hellaswag().source(tmp_path)


def test_texts_are_cleaned_as_lm_eval_cleans_them() -> None:
    assert context("Cards", "Ann bows.", "the KING") == "Cards: Ann bows. The king"
    assert context("Cards", "[header] How [title] Deal.", "") == "Cards: How. Deal."
    # One pass: of three blanks two are left, as in lm-eval.
    assert clean("  a   b [x] c[y]  ") == "a  b c"
    assert clean("[substeps] a [title] b") == " a. b"


def test_choices_are_the_cleaned_endings(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "hellaswag" / "hellaswag_val_1.jsonl", ROWS[1:2])
    (item,) = hellaswag().source(tmp_path).items
    assert item.options[0] == "bows. out."
    request = hellaswag().protocols[0].request(item, ())
    assert request.choices == item.options
    assert request.prompt.text == "Playing cards: Ann holds the ace, validation 1. She"
