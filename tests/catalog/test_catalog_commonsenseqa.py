"""CommonsenseQA: five options; the validation split is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmeval.catalog import commonsenseqa
from pytest_llmeval.core import DataError
from support.catalog_copies import write_jsonl
from support.choice_copies import COMMONSENSEQA
from support.choice_copies import ai2_row


def test_options_of_the_public_copy(data: Path) -> None:
    dataset = commonsenseqa().source(data)
    assert {len(item.options) for item in dataset.items} == {5}
    assert [warning.partition(" (")[0] for warning in dataset.warnings] == [
        "commonsenseqa: 24 items have equal options, in 6 of them the right one"
    ]


def test_the_split_without_answers_is_not_scored(tmp_path: Path) -> None:
    folder = tmp_path / "commonsenseqa"
    unanswered = ai2_row("test", 1, "ABCDE") | {"answerKey": ""}
    write_jsonl(folder / "test_rand_split_no_answers.jsonl", [unanswered])
    write_jsonl(folder / "train_rand_split.jsonl", COMMONSENSEQA.splits["train"])
    with pytest.raises(DataError, match=r"not a copy of commonsenseqa .*dev_rand_split"):
        commonsenseqa().source(tmp_path)
    # Under the name of the scored split it is refused as well.
    write_jsonl(folder / "dev_rand_split.jsonl", [unanswered])
    with pytest.raises(DataError, match=r"dev_rand_split\.jsonl, line 1: no gold label in this"):
        commonsenseqa().source(tmp_path)


def test_a_shot_with_the_same_question_is_replaced_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    COMMONSENSEQA.use_constants(monkeypatch)
    train = [ai2_row("validation", n, "ABCDE") for n in range(6)]  # questions of scored items
    copy = COMMONSENSEQA.write(tmp_path, {**COMMONSENSEQA.splits, "train": train})
    dataset = COMMONSENSEQA.load(copy)
    letter = commonsenseqa().protocols[0]
    shots = letter.select_shots(dataset.items[1], dataset.pool["commonsenseqa"])
    assert [shot.id for shot in shots] == [f"train-validation_{n}" for n in (0, 2, 3, 4, 5)]
