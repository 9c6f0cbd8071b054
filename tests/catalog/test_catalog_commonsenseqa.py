"""CommonsenseQA: the validation split is scored; the same items from every layout."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import commonsenseqa
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from support.hub_copies import Rows
from support.hub_copies import fake_hub
from support.hub_copies import write_clone
from support.hub_copies import write_jsonl

CONTENT_HASH = "5e4e38a7ae594beb"
FILES = {"validation": "dev_rand_split.jsonl", "train": "train_rand_split.jsonl.gz"}


def rows_of(path: Path) -> Rows:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    return [json.loads(line) for line in text.split("\n") if line]


def test_the_public_copy_is_complete_and_its_doubts_are_told(data: Path) -> None:
    dataset = commonsenseqa().source(data)
    check_dataset("commonsenseqa", dataset)
    assert dataset.content_hash() == CONTENT_HASH
    assert (len(dataset.items), len(dataset.pool["commonsenseqa"])) == (1221, 9741)
    assert {len(item.options) for item in dataset.items} == {5}
    assert [warning.partition(" (")[0] for warning in dataset.warnings] == [
        "commonsenseqa: 24 items have equal options, in 6 of them the right one"
    ]


def test_clone_and_hub_give_the_same_items(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = {
        split: [
            {
                "id": row["id"],
                "question": row["question"]["stem"],
                "question_concept": row["question"]["question_concept"],
                "choices": {
                    key: [choice[key] for choice in row["question"]["choices"]]
                    for key in ("label", "text")
                },
                "answerKey": row["answerKey"],
            }
            for row in rows_of(data / "commonsenseqa" / file)
        ]
        for split, file in FILES.items()
    }
    fake_hub(monkeypatch, "tau/commonsense_qa", {(None, s): rows for s, rows in splits.items()})
    assert commonsenseqa().source(tmp_path).content_hash() == CONTENT_HASH
    write_clone(tmp_path / "commonsenseqa" / "data", splits)
    assert commonsenseqa().source(tmp_path).content_hash() == CONTENT_HASH


def row(number: int, **changes: Any) -> dict[str, Any]:
    choices = [{"label": label, "text": f"{label}{number}"} for label in "ABCDE"]
    question = {"stem": f"q{number}?", "question_concept": "c", "choices": choices}
    return {"answerKey": "B", "id": f"{number:032x}", "question": question, **changes}


def test_case_f12_a_split_without_answers_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "commonsenseqa"
    write_jsonl(folder / "test_rand_split_no_answers.jsonl", [row(1, answerKey="")])
    write_jsonl(folder / "train_rand_split.jsonl", [row(2)])
    # The split without answers is not taken for the scored one ...
    with pytest.raises(DataError, match=r"not a copy of commonsenseqa .*dev_rand_split"):
        commonsenseqa().source(tmp_path)
    # ... also not under its name.
    write_jsonl(folder / "dev_rand_split.jsonl", [row(1), row(3, answerKey="")])
    with pytest.raises(
        DataError,
        match=r"dev_rand_split\.jsonl, line 2: no gold label in this split .*validation has them",
    ):
        commonsenseqa().source(tmp_path)


def test_an_incomplete_copy_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "commonsenseqa"
    write_jsonl(folder / "dev_rand_split.jsonl", map(row, range(1221)))
    write_jsonl(folder / "train_rand_split.jsonl", map(row, range(9740)))
    with pytest.raises(DataError, match="train commonsenseqa has 9,740 of 9,741 rows"):
        commonsenseqa().source(tmp_path)


def test_shots_come_from_the_training_split(tmp_path: Path) -> None:
    folder = tmp_path / "commonsenseqa"
    write_jsonl(folder / "dev_rand_split.jsonl", map(row, range(1221)))
    write_jsonl(folder / "train_rand_split.jsonl", map(row, range(9741)))
    dataset = commonsenseqa().source(tmp_path)
    # The training rows repeat the questions: a copy is not shown, another row takes its place.
    letter = commonsenseqa().protocols[0]
    shots = letter.draw_shots(dataset.items[1], dataset.pool["commonsenseqa"])
    assert [shot.id[-1] for shot in shots] == ["0", "2", "3", "4", "5"]
    assert all(shot.id.startswith("train-") for shot in shots)
