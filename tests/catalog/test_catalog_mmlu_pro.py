"""MMLU-Pro: the same items from jsonl, parquet and hub; doubts about keys are told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import mmlu_pro
from pytest_llmeval.catalog.mmlu_pro import TEST_ROWS
from pytest_llmeval.catalog.mmlu_pro import VALIDATION_ROWS
from pytest_llmeval.catalog.mmlu_pro import from_folder
from pytest_llmeval.catalog.mmlu_pro import from_hub
from pytest_llmeval.catalog.mmlu_pro import load
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.sources import hub

CONTENT_HASH = "932884ddc970b76a"

Rows = list[dict[str, Any]]


def row(number: int, category: str, **changes: Any) -> dict[str, Any]:
    return {
        "question_id": number,
        "question": f" q{number}? ",
        "options": ["a", " b ", "c"],
        "answer": "B",
        "answer_index": 1,
        "cot_content": "",
        "category": category,
        "src": "made up",
        **changes,
    }


def made_up() -> tuple[Rows, Rows]:
    """Rows of test and validation, as many as the benchmark has of every category."""
    categories = [name.replace("_", " ") for name in TEST_ROWS]
    counted = [name for name in categories for _ in range(TEST_ROWS[name.replace(" ", "_")])]
    test = [row(number, name) for number, name in enumerate(counted)]
    padded = {"options": ["x", "y", "N/A", "N/A"], "cot_content": "A: Let's think step by step. B."}
    shots = [
        row(number, name, **padded)
        for number, name in enumerate(categories * VALIDATION_ROWS, start=20_000)
    ]
    return test, shots


def write(folder: Path, test: Rows, validation: Rows) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = {"test": test, "validation": validation}
    for split, rows in text.items():
        data = "".join(json.dumps(one) + "\n" for one in rows).encode()
        (folder / f"{split}.jsonl.gz").write_bytes(gzip.compress(data, 1))
    return folder


def test_asking_for_the_benchmark_reads_nothing() -> None:
    assert [one.name for one in mmlu_pro().protocols[:4]] == ["cot", "official", "lmeval", "letter"]
    assert [one.ask for one in mmlu_pro().protocols[:4]] == ["text", "text", "text", "choices"]
    assert sum(TEST_ROWS.values()) == 12032


def test_the_public_copy_is_complete_and_its_doubts_are_told(data: Path) -> None:
    dataset = load(data)
    check_dataset("mmlu_pro", dataset)
    assert dataset.content_hash() == CONTENT_HASH
    assert {subject: len(pool) for subject, pool in dataset.pool.items()} == dict.fromkeys(
        TEST_ROWS, 5
    )
    sizes: dict[int, int] = {}
    for item in dataset.items:
        sizes[len(item.options)] = sizes.get(len(item.options), 0) + 1
    assert sizes == {10: 9981, 9: 801, 4: 607, 8: 320, 7: 159, 6: 92, 5: 52, 3: 20}
    assert dataset.chance() == pytest.approx(0.110868, abs=1e-6)
    assert dataset.warnings == (
        "chemistry-3983: answer is C, answer_index is 1 (B); C counts",
        "math-8584: options A and D are equal",
    )
    assert dataset.items[0].id == "business-0070"
    assert not any(option == "N/A" for pool in dataset.pool.values() for option in pool[0].options)


def test_the_parquet_files_give_the_same_items(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    files = data / "mmlu_pro" / "data"
    (tmp_path / "mmlu_pro").symlink_to(files)
    assert load(tmp_path).content_hash() == CONTENT_HASH
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "data").symlink_to(files)
    assert from_folder(tmp_path / "other").content_hash() == CONTENT_HASH


def test_the_hub_gives_the_same_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test, validation = made_up()

    def load_rows(path: str, config: None, split: str, revision: str) -> Rows:
        assert (path, config, len(revision)) == ("TIGER-Lab/MMLU-Pro", None, 40)
        return test if split == "test" else validation

    monkeypatch.setattr(hub, "load_rows", load_rows)
    files = from_folder(write(tmp_path, test, validation))
    assert from_hub() == files
    assert from_hub().content_hash() == files.content_hash()


def test_padding_is_dropped_and_remembered(tmp_path: Path) -> None:
    test, validation = made_up()
    test[0]["options"] = ["N/A", "b", "N/A"]
    dataset = from_folder(write(tmp_path, test, validation))
    shot = dataset.pool["computer_science"][0]
    assert (shot.options, shot.fields["padding"]) == (("x", "y"), "2")
    # "N/A" before another option is an option.
    assert dataset.items[0].options == ("N/A", "b")
    assert dataset.items[1].fields == {}
    assert dataset.items[1].options == ("a", " b ", "c")
    assert dataset.warnings == ()


def test_equal_options_and_two_keys_are_warnings(tmp_path: Path) -> None:
    test, validation = made_up()
    test[0]["options"] = ["a", "b", "a", "a"]
    test[1]["answer_index"] = 0
    warnings = from_folder(write(tmp_path, test, validation)).warnings
    assert warnings == (
        "biology-0000: options A and C are equal",
        "biology-0000: options A and D are equal",
        "biology-0000: options C and D are equal",
        "biology-0001: answer is B, answer_index is 0 (A); B counts",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "D"}, "answer 'D' is not the letter of one of 3 options"),
        ({"answer": ""}, "answer '' is not the letter"),
        ({"answer": 1}, "answer 1 is not the letter"),
        ({"options": "abc"}, "question_id, category, question and options were expected"),
        ({"question_id": "7"}, "question_id, category, question and options were expected"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = write(tmp_path, [row(1, "law"), row(2, "law", **change)], [])
    with pytest.raises(DataError, match=rf"test\.jsonl\.gz, line 2: {message}"):
        from_folder(folder)


def test_an_incomplete_copy_is_refused(tmp_path: Path) -> None:
    test, validation = made_up()
    short = [one for one in test if one["category"] != "law"]
    write(tmp_path, [*short, row(50_000, "poetry")], validation[1:])
    with pytest.raises(DataError) as caught:
        from_folder(tmp_path)
    assert str(caught.value).endswith(
        "not the complete set: test law has 0 of 1,101 rows; test poetry has 1 of 0 rows;"
        " validation biology has 4 of 5 rows"
    )
    with pytest.raises(DataError, match="not a copy of mmlu_pro"):
        from_folder(tmp_path.parent)
