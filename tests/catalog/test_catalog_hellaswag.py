"""HellaSwag: whole copies, and samples that say so; the text that is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import hellaswag
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.prompts.continuations import clean
from pytest_llmeval.prompts.continuations import context
from support.hub_copies import fake_hub
from support.hub_copies import write_clone
from support.hub_copies import write_jsonl

SAMPLE_HASH = "d60c69a1c13117dc"
WHOLE, TRAIN = 10042, 39905


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "ind": number,
        "activity_label": "Playing cards",
        "ctx_a": "Ann holds the ace.",
        "ctx_b": "she",
        "ctx": "Ann holds the ace. she",
        "split": "val",
        "split_type": "indomain",
        "label": number % 4,
        "endings": ["bows [title] out.", "wins.", "[step] loses.", f"deals {number}."],
        "source_id": "activitynet~v_x",
        **changes,
    }


def test_the_public_sample_is_told_to_be_one(data: Path) -> None:
    dataset = hellaswag().source(data)
    check_dataset("hellaswag", dataset)
    assert dataset.content_hash() == SAMPLE_HASH
    assert dataset.warnings == (
        "hellaswag: a sample of 1,000 of its 10,042 items: scores are not those of the benchmark",
    )
    assert (len(dataset.items), dataset.pool) == (1000, {})
    sizes = [sum(item.gold == gold for item in dataset.items) for gold in range(4)]
    assert sizes == [267, 228, 266, 239]
    marked = [item for item in dataset.items if "[" in f"{item.question}{item.options}"[:-1]]
    assert all("[" not in item.question for item in dataset.items)
    assert all("[" not in option for item in marked for option in item.options)


def test_a_sample_has_the_rows_that_its_name_tells(tmp_path: Path) -> None:
    folder = tmp_path / "hellaswag"
    write_jsonl(folder / "hellaswag_val_3.jsonl", map(row, range(2)))
    with pytest.raises(DataError, match="validation hellaswag has 2 of 3 rows"):
        hellaswag().source(tmp_path)
    write_jsonl(folder / "hellaswag_val_2.jsonl", map(row, range(2)))
    with pytest.raises(DataError, match=r"more than one sample .*_2\.jsonl, .*_3\.jsonl"):
        hellaswag().source(tmp_path)
    (folder / "hellaswag_val_3.jsonl").unlink()
    dataset = hellaswag().source(tmp_path)
    assert [item.id for item in dataset.items] == ["hellaswag-00000", "hellaswag-00001"]
    assert dataset.warnings[0].startswith("hellaswag: a sample of 2 of its 10,042 items")


def test_a_copy_that_only_stops_early_is_refused(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "hellaswag" / "hellaswag_val.jsonl", map(row, range(1000)))
    with pytest.raises(DataError, match="validation hellaswag has 1,000 of 10,042 rows"):
        hellaswag().source(tmp_path)


def test_files_clone_and_hub_give_the_same_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hub has labels as text.
    splits = {"validation": [row(n, label=str(n % 4)) for n in range(WHOLE)]}
    splits["train"] = [row(n, label="0") for n in range(TRAIN)]
    files = {"val": map(row, range(WHOLE)), "train": (row(n, label=0) for n in range(TRAIN))}
    for split, rows in files.items():
        write_jsonl(tmp_path / "files" / "hellaswag" / f"hellaswag_{split}.jsonl", rows)
    whole = hellaswag().source(tmp_path / "files")
    assert (len(whole.items), len(whole.pool["hellaswag"])) == (WHOLE, TRAIN)
    assert not any("sample" in warning for warning in whole.warnings)
    fake_hub(monkeypatch, "Rowan/hellaswag", {(None, s): rows for s, rows in splits.items()})
    assert hellaswag().source(tmp_path) == whole
    write_clone(tmp_path / "clone" / "hellaswag" / "data", splits)
    assert hellaswag().source(tmp_path / "clone") == whole
    del splits["train"]
    alone = write_clone(tmp_path / "alone" / "hellaswag", splits)
    assert hellaswag().source(alone.parent).pool == {}


def test_texts_are_cleaned_as_lm_eval_cleans_them() -> None:
    assert context("Cards", "Ann bows.", "the KING") == "Cards: Ann bows. The king"
    assert context("Cards", "[header] How [title] Deal.", "") == "Cards: How. Deal."
    # One pass: of three blanks two are left, as there.
    assert clean("  a   b [x] c[y]  ") == "a  b c"
    assert clean("[substeps] a [title] b") == " a. b"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": ""}, "no gold label in this split .*; the split validation has them"),
        ({"label": 4}, "label 4 is not a number 0 to 3"),
        ({"endings": ["a", "b", "c"]}, "ind, activity_label, ctx_a, ctx_b and four endings"),
        ({"ind": None}, "ind, activity_label, ctx_a, ctx_b and four endings"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "hellaswag" / "hellaswag_val_2.jsonl"
    write_jsonl(path, [row(0), row(1, **change)])
    with pytest.raises(DataError, match=rf"hellaswag_val_2\.jsonl, line 2: {message}"):
        hellaswag().source(tmp_path)


def test_lengths_are_those_of_the_cleaned_endings(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "hellaswag" / "hellaswag_val_1.jsonl", [row(0)])
    (item,) = hellaswag().source(tmp_path).items
    assert item.options[0] == "bows. out."
    request = hellaswag().protocols[0].request(item, ())
    assert request.choices == item.options
    assert json.dumps(request.prompt.text) == '"Playing cards: Ann holds the ace. She"'
