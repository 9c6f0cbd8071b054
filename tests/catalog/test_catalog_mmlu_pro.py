"""MMLU-Pro: lists of options that are filled up, and keys that contradict themselves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_llmeval.catalog import mmlu_pro
from pytest_llmeval.catalog.mmlu_pro import TEST_ROWS
from pytest_llmeval.catalog.mmlu_pro import from_folder
from pytest_llmeval.catalog.mmlu_pro import load
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from support.catalog_copies import Row
from support.subject_copies import MMLU_PRO
from support.subject_copies import mmlu_pro_row

CONTENT_HASH = "932884ddc970b76a"


@pytest.fixture
def with_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that loads the made-up copy with changes of its first test rows."""
    MMLU_PRO.use_constants(monkeypatch)

    def load_changed(*changes: Row) -> Dataset:
        rows = list(MMLU_PRO.splits["test"])
        for number, change in enumerate(changes):
            rows[number] = rows[number] | change
        return MMLU_PRO.load(MMLU_PRO.write(tmp_path, {**MMLU_PRO.splits, "test": rows}))

    return load_changed


def test_published_sizes() -> None:
    assert (len(TEST_ROWS), sum(TEST_ROWS.values())) == (14, 12032)


def test_choices_and_text() -> None:
    protocols = mmlu_pro().protocols[:4]
    assert [protocol.ask for protocol in protocols] == ["text", "text", "text", "choices"]


def test_options_and_warnings_of_the_public_copy(data: Path) -> None:
    dataset = load(data)
    sizes = {10: 9981, 9: 801, 4: 607, 8: 320, 7: 159, 6: 92, 5: 52, 3: 20}
    assert Counter(len(item.options) for item in dataset.items) == sizes
    assert dataset.chance() == pytest.approx(0.110868, abs=1e-6)
    assert dataset.warnings == (
        "chemistry-3983: answer is C, answer_index is 1 (B); C counts",
        "math-8584: options A and D are equal",
    )
    assert dataset.items[0].id == "business-0070"
    assert not any(option == "N/A" for pool in dataset.pool.values() for option in pool[0].options)


def test_the_public_parquet_files_give_the_same_items(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    files = data / "mmlu_pro" / "data"
    (tmp_path / "mmlu_pro").symlink_to(files)
    assert load(tmp_path).content_hash() == CONTENT_HASH
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "data").symlink_to(files)
    assert from_folder(tmp_path / "other").content_hash() == CONTENT_HASH


def test_padding_is_dropped_and_counted(with_changes) -> None:
    dataset = with_changes({"options": ["N/A", "b", "N/A"]})
    shot = dataset.pool["computer_science"][0]
    assert (len(shot.options), shot.fields["padding"]) == (3, "7")
    assert shot.fields["cot"].startswith("A: Let's think")
    # "N/A" before another option is an option.
    assert dataset.items[0].options == ("N/A", "b")
    assert dataset.items[0].fields == {"padding": "1"}
    assert dataset.items[1].fields == {}
    assert dataset.items[1].options == ("None", "Right 1", " b ", "c 1")
    assert dataset.warnings == ()


def test_equal_options_and_contradicting_keys_are_warned_about(with_changes) -> None:
    dataset = with_changes({"options": ["a", "b", "a", "a"]}, {"answer_index": 0})
    assert dataset.warnings == (
        "computer_science-0070: options A and C are equal",
        "computer_science-0070: options A and D are equal",
        "computer_science-0070: options C and D are equal",
        "computer_science-0071: answer is B, answer_index is 0 (A); B counts",
    )


def test_missing_and_unknown_categories_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MMLU_PRO.use_constants(monkeypatch)
    test = [row for row in MMLU_PRO.splits["test"] if row["category"] != "law"]
    test.append(mmlu_pro_row("poetry", "test", 0))
    splits = {"test": test, "validation": MMLU_PRO.splits["validation"][1:]}
    with pytest.raises(DataError) as caught:
        MMLU_PRO.load(MMLU_PRO.write(tmp_path, splits))
    assert str(caught.value).endswith(
        "not the complete set: test law has 0 of 3 rows; test poetry has 1 of 0 rows;"
        " validation computer_science has 4 of 5 rows"
    )
