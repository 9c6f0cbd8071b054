"""GSM8K: the same items from every layout, complete or refused."""

from __future__ import annotations

import gzip
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import gsm8k
from pytest_llmeval.catalog.gsm8k import TEST_ROWS
from pytest_llmeval.catalog.gsm8k import TRAIN_ROWS
from pytest_llmeval.catalog.gsm8k import from_folder
from pytest_llmeval.catalog.gsm8k import from_hub
from pytest_llmeval.catalog.gsm8k import load
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import check_dataset
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.sources import hub

CONTENT_HASH = "61e5dd5d23eb7ba2"

Rows = dict[str, list[dict[str, Any]]]


def rows(**changes: Any) -> Rows:
    return {
        split: [
            {"question": f"{split} {n}?", "answer": f"It is {n}.\n#### {n:,}", **changes}
            for n in range(size)
        ]
        for split, size in (("test", TEST_ROWS), ("train", TRAIN_ROWS))
    }


def write(folder: Path, splits: Rows, ending: str = ".jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, lines in splits.items():
        data = "".join(json.dumps(row) + "\n" for row in lines).encode()
        (folder / f"{split}{ending}").write_bytes(
            gzip.compress(data) if ending.endswith(".gz") else data
        )
    return folder


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rows], list[tuple[Any, ...]]]:
    """Makes the hub give these rows; the list has what it was asked for."""
    asked: list[tuple[Any, ...]] = []

    def give(splits: Rows) -> list[tuple[Any, ...]]:
        def load_rows(*question: Any) -> list[dict[str, Any]]:
            asked.append(question)
            return splits[question[2]]

        monkeypatch.setattr(hub, "load_rows", load_rows)
        return asked

    return give


def test_asking_for_the_benchmark_reads_nothing() -> None:
    protocols = gsm8k().protocols
    assert [protocol.name for protocol in protocols] == ["cot", "lmeval", "lmeval_cot", "zero_shot"]
    assert all(protocol.ask == "text" for protocol in protocols)


def test_the_official_files_are_complete(data: Path) -> None:
    dataset = load(data)
    check_dataset("gsm8k", dataset)
    assert (len(dataset.items), len(dataset.pool["gsm8k"])) == (TEST_ROWS, TRAIN_ROWS)
    assert dataset.content_hash() == CONTENT_HASH
    assert dataset.items[0].gold == "18"
    golds = [item.gold for item in (*dataset.items, *dataset.pool["gsm8k"])]
    assert sum(gold.startswith("-") for gold in golds if isinstance(gold, str)) == 5
    assert sum("," in str(gold) for gold in golds) == 0
    separated = [item for item in dataset.items if "," in item.fields["answer"].split("####")[1]]
    assert len(separated) == 14


def test_every_layout_gives_the_same_items(
    tmp_path: Path, fake_hub: Callable[[Rows], list[tuple[Any, ...]]]
) -> None:
    splits = rows()
    first = from_folder(write(tmp_path / "plain", splits))
    packed = from_folder(write(tmp_path / "packed", splits, ".jsonl.gz"))
    clone = from_folder(write(tmp_path / "clone" / "grade_school_math" / "data", splits).parents[1])
    asked = fake_hub(splits)
    hashes = {one.content_hash() for one in (first, packed, clone, from_hub())}
    assert hashes == {first.content_hash()}
    assert [question[:3] for question in asked] == [
        ("openai/gsm8k", "main", "test"),
        ("openai/gsm8k", "main", "train"),
    ]
    assert all(len(question[3]) == 40 for question in asked)
    assert first.items[1000].gold == "1000"
    assert [first.items[7].id, first.pool["gsm8k"][7].id] == ["gsm8k-0007", "train-gsm8k-0007"]


def test_the_hub_clone_is_read_through_the_hub(data: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    files = {split: str(data / "gsm8k" / f"{split}.jsonl") for split in ("test", "train")}
    copy = tmp_path / "gsm8k"
    for split, path in files.items():
        loaded = datasets.Dataset.from_json(path, cache_dir=str(tmp_path / "cache"))
        loaded.to_parquet(str(copy / "main" / f"{split}-00000-of-00001.parquet"))
    (copy / "README.md").write_text(
        "---\nconfigs:\n- config_name: main\n  data_files:\n"
        "  - split: test\n    path: main/test-*\n  - split: train\n    path: main/train-*\n---\n",
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        assert load(tmp_path).content_hash() == CONTENT_HASH


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "It is 4."}, r"test\.jsonl, line 1: the answer does not end with '#### '"),
        ({"answer": "It is 4.\n#### four"}, r"line 1: the answer does not end"),
        ({"answer": None}, r"line 1: texts question and answer were expected"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_folder(write(tmp_path, rows(**change)))


def test_an_incomplete_copy_is_refused(tmp_path: Path) -> None:
    splits = rows()
    write(tmp_path, {"test": splits["test"][:100], "train": splits["train"]})
    with pytest.raises(DataError, match=r"not the complete set: test gsm8k has 100 of 1,319 rows$"):
        from_folder(tmp_path)
    (tmp_path / "train.jsonl").unlink()
    with pytest.raises(DataError, match="not a copy of gsm8k"):
        from_folder(tmp_path)


def test_found_nowhere_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def unreachable(*_: Any) -> None:
        raise DataError("hub data set 'openai/gsm8k' cannot be loaded (offline)")

    monkeypatch.setattr(hub, "load_rows", unreachable)
    with pytest.raises(DataError) as caught:
        gsm8k().source(tmp_path)
    assert str(tmp_path / "gsm8k") in str(caught.value)
    assert "offline" in str(caught.value)


def test_the_protocols_are_different_measurements() -> None:
    items = from_rows(3)
    prints = {fingerprint(protocol.bound_to(items)) for protocol in gsm8k().protocols}
    assert len(prints) == 4


def from_rows(size: int) -> Dataset:
    item = importlib.import_module("pytest_llmeval.catalog.gsm8k")._item
    made = [item("", f"q{n}", {"question": f"{n}?", "answer": f"#### {n}"}) for n in range(size)]
    return Dataset(tuple(made), {"gsm8k": tuple(made)})
