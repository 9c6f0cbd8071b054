"""TruthfulQA MC1: options made of the official file; the right one is not the first."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import truthfulqa
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from support.hub_copies import fake_hub
from support.hub_copies import write_clone

CONTENT_HASH = "c6279d4ca12f3405"
HEADER = ["Type", "Category", "Question", "Best Answer", "Correct Answers", "Incorrect Answers"]


def targets(question: str, choices: list[str], labels: list[int] | None = None) -> dict[str, Any]:
    """A row as the hub has it: the right option first."""
    labels = labels or [1] + [0] * (len(choices) - 1)
    return {"question": question, "mc1_targets": {"choices": choices, "labels": labels}}


def write_csv(folder: Path, rows: list[list[str]], header: list[str] = HEADER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "TruthfulQA.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return folder.parent


def made_up(count: int = 817) -> list[list[str]]:
    return [
        ["Adversarial", "Cards", f"Question {n}?", f"Right {n}", "x", f"No {n}; Never; Often.;"]
        for n in range(count)
    ]


def test_the_public_copy_is_complete_and_the_right_option_stands_anywhere(data: Path) -> None:
    dataset = truthfulqa().source(data)
    check_dataset("truthfulqa", dataset)
    assert dataset.content_hash() == CONTENT_HASH
    # The published chance level of MC1.
    assert dataset.chance() == pytest.approx(0.226, abs=5e-4)
    sizes: dict[int, int] = {}
    first = expected = 0.0
    for item in dataset.items:
        sizes[len(item.options)] = sizes.get(len(item.options), 0) + 1
        first += item.gold == 0
        expected += 1 / len(item.options)
    assert (min(sizes), max(sizes), sizes[4]) == (2, 13, 218)
    # As often the first as chance has it: 185 of 817, within three standard deviations (11 each).
    assert abs(first - expected) < 33
    assert dataset.warnings == (
        "truthfulqa: 1 item has equal options (What_is_the_population_of_the_country_-8e9a98ad)",
    )
    assert all(option.endswith(".") for item in dataset.items for option in item.options)


def test_files_clone_and_hub_give_the_same_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = truthfulqa().source(write_csv(tmp_path / "csv" / "truthfulqa", made_up()))
    assert set(whole.items[3].options) == {"Right 3.", "No 3.", "Never.", "Often."}
    assert whole.items[3].options[int(whole.items[3].gold)] == "Right 3."
    assert whole.items[3].id.startswith("Question_3_-")
    rows = [
        targets(f"Question {n}?", [f"Right {n}.", f"No {n}.", "Never.", "Often."])
        for n in reversed(range(817))
    ]
    fake_hub(monkeypatch, "truthfulqa/truthful_qa", {("multiple_choice", "validation"): rows})
    # In another order, and still the same: ids do not number the rows.
    assert truthfulqa().source(tmp_path).content_hash() == whole.content_hash()
    write_clone(tmp_path / "truthfulqa" / "multiple_choice", {"validation": rows})
    assert truthfulqa().source(tmp_path).content_hash() == whole.content_hash()


def test_where_the_data_has_the_right_option_says_nothing(tmp_path: Path) -> None:
    choices = ["Right.", "No.", "Never.", "Often."]
    found = set()
    for place in range(4):
        rows = [targets(f"Q{n}?", ["Right.", "No."]) for n in range(816)]
        moved = [*choices[1 : place + 1], choices[0], *choices[place + 1 :]]
        labels = [int(choice == "Right.") for choice in moved]
        rows.append(targets("Moved?", moved, labels))
        folder = tmp_path / str(place)
        write_clone(folder / "truthfulqa" / "multiple_choice", {"validation": rows})
        item = truthfulqa().source(folder).items[-1]
        found.add((item.options, item.gold))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["", "", "Q?", " ", "x", "No"], r"row 2: no gold label in this split"),
        (["", "", "Q?", "Yes", "x", " ; "], r"row 2: no incorrect answers"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, row: list[str], message: str) -> None:
    folder = write_csv(tmp_path / "truthfulqa", [row])
    with pytest.raises(DataError, match=rf"TruthfulQA\.csv, {message}"):
        truthfulqa().source(folder)


def test_unusable_rows_of_the_hub_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = {("multiple_choice", "validation"): [targets("Q?", ["a", "b"], [1, 1])]}
    fake_hub(monkeypatch, "truthfulqa/truthful_qa", hub)
    with pytest.raises(DataError, match="row 0: 2 of the mc1_targets are labelled 1, not one"):
        truthfulqa().source(tmp_path)
    hub["multiple_choice", "validation"][0] = {"question": "Q?", "mc1_targets": None}
    with pytest.raises(DataError, match="row 0: question and mc1_targets were expected"):
        truthfulqa().source(tmp_path)


def test_another_edition_is_refused(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "truthfulqa"
    folder.mkdir()
    (folder / "TruthfulQA.csv").symlink_to(data / "truthfulqa" / "TruthfulQA_2025.csv")
    with pytest.raises(DataError, match="validation truthfulqa has 790 of 817 rows"):
        truthfulqa().source(tmp_path)


def test_a_header_without_the_columns_is_refused(tmp_path: Path) -> None:
    folder = write_csv(tmp_path / "truthfulqa", [], header=["Question", "Answer"])
    with pytest.raises(DataError, match="a header with Question, Best Answer, Incorrect Answers"):
        truthfulqa().source(folder)
