"""TruthfulQA MC1: options made of the official file, in an order that the data does not give."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import pytest

from pytest_llmeval.catalog import truthfulqa
from pytest_llmeval.core import DataError
from support.catalog_copies import Row
from support.catalog_copies import fake_hub
from support.catalog_copies import write_csv
from support.choice_copies import TRUTHFULQA

MODULE = importlib.import_module("pytest_llmeval.catalog.truthfulqa")
CONFIG = ("multiple_choice", "validation")


def targets(question: str, choices: list[str], labels: list[int]) -> Row:
    """A row as the hub has it."""
    return {"question": question, "mc1_targets": {"choices": choices, "labels": labels}}


def test_options_of_the_public_copy(data: Path) -> None:
    dataset = truthfulqa().source(data)
    # The published chance level of MC1.
    assert dataset.chance() == pytest.approx(0.226, abs=5e-4)
    sizes = Counter(len(item.options) for item in dataset.items)
    assert (min(sizes), max(sizes), sizes[4]) == (2, 13, 218)
    # As often the first as chance has it: 185 of 817, within three standard deviations (11 each).
    first = sum(item.gold == 0 for item in dataset.items)
    expected = sum(1 / len(item.options) for item in dataset.items)
    assert abs(first - expected) < 33
    assert dataset.warnings == (
        "truthfulqa: 1 item has equal options (What_is_the_population_of_the_country_-8e9a98ad)",
    )
    assert all(option.endswith(".") for item in dataset.items for option in item.options)


def test_options_of_the_official_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TRUTHFULQA.use_constants(monkeypatch)
    item = TRUTHFULQA.load(TRUTHFULQA.write(tmp_path)).items[3]
    assert set(item.options) == {"Right 3.", "No.", "Never.", "Often."}
    assert item.options[int(item.gold)] == "Right 3."
    assert item.id.startswith("validation_3_-")


def test_options_do_not_depend_on_the_order_in_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "ROWS", 1)
    wrong = ["No.", "Never.", "Often."]
    loaded = set()
    for position in range(4):
        choices = [*wrong[:position], "Right.", *wrong[position:]]
        row = targets("Moved?", choices, [int(choice == "Right.") for choice in choices])
        fake_hub(monkeypatch, TRUTHFULQA.repo, {CONFIG: [row]})
        (item,) = truthfulqa().source(tmp_path).items
        loaded.add((item.options, item.gold))
    assert len(loaded) == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (targets("Q?", ["a", "b"], [1, 1]), "2 of the mc1_targets are labelled 1, not one"),
        ({"question": "Q?", "mc1_targets": None}, "question and mc1_targets were expected"),
    ],
)
def test_unusable_targets_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row, reason: str
) -> None:
    fake_hub(monkeypatch, TRUTHFULQA.repo, {CONFIG: [row]})
    with pytest.raises(DataError, match=f"row 0: {reason}"):
        truthfulqa().source(tmp_path)


def test_another_edition_is_refused(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "truthfulqa"
    folder.mkdir()
    (folder / "TruthfulQA.csv").symlink_to(data / "truthfulqa" / "TruthfulQA_2025.csv")
    with pytest.raises(DataError, match="validation truthfulqa has 790 of 817 rows"):
        truthfulqa().source(tmp_path)


def test_a_header_without_the_columns_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "truthfulqa" / "TruthfulQA.csv", [["Question", "Answer"]])
    with pytest.raises(DataError, match="a header with Question, Best Answer, Incorrect Answers"):
        truthfulqa().source(tmp_path)
