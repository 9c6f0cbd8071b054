"""MMLU: some of its subjects, rows of the hub in any order, and recorded prompts and scores."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import mmlu
from pytest_llmeval.catalog.mmlu import DEV_ROWS
from pytest_llmeval.catalog.mmlu import PROTOCOLS
from pytest_llmeval.catalog.mmlu import TEST_ROWS
from pytest_llmeval.catalog.mmlu import from_csv
from pytest_llmeval.catalog.mmlu import from_hub
from pytest_llmeval.catalog.mmlu import load
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import check_dataset
from pytest_llmeval.models.replay import open_model
from pytest_llmeval.scorers import get_scorer
from support.catalog_copies import write_csv

CONTENT_HASH = "2746b470c185cc22"
ROW = ["What is 1 + 1?", "1", "2", "None", " 4 "]


def write_tree(root: Path, test: dict[str, int], dev: dict[str, int] | None = None) -> Path:
    """A headerless CSV tree with so many rows of every subject."""
    for split, sizes in (("test", test), ("dev", dev or dict.fromkeys(test, DEV_ROWS))):
        for subject, rows in sizes.items():
            path = root / split / f"{subject}_{split}.csv"
            write_csv(path, [[f"{subject} {row}?", *ROW[1:], "B"] for row in range(rows)])
    return root


def one_subject(dataset: Dataset, subject: str) -> Dataset:
    return Dataset(
        items=tuple(item for item in dataset.items if item.subject == subject),
        pool={subject: dataset.pool[subject]},
    )


def test_published_sizes() -> None:
    assert len(TEST_ROWS) == 57
    assert sum(TEST_ROWS.values()) == 14042


def test_subjects_of_the_public_copy_are_sorted(data: Path) -> None:
    dataset = load(data)
    assert dataset.subject_sizes() == TEST_ROWS
    assert list(dataset.subject_sizes()) == sorted(TEST_ROWS)
    item = next(item for item in dataset.items if item.id == "college_mathematics-0042")
    assert item.subject == "college_mathematics"


def test_warnings_about_the_public_copy(data: Path) -> None:
    equal, *others = load(data).warnings
    assert equal.startswith("mmlu: 9 items have equal options, in 4 of them the right one (")
    assert all("occur" in line or "contradict" in line for line in others)


def test_some_subjects_are_a_benchmark_of_their_own(data: Path) -> None:
    chosen = ["virology", "anatomy", "college_mathematics"]
    dataset, whole = mmlu(subjects=chosen).source(data), load(data)
    check_dataset("mmlu", dataset)
    assert dataset.subject_sizes() == {name: TEST_ROWS[name] for name in sorted(chosen)}
    assert set(dataset.items) <= set(whole.items)
    assert dataset.pool == {name: whole.pool[name] for name in sorted(chosen)}
    assert dataset.content_hash() != CONTENT_HASH
    assert dataset.content_hash() == mmlu(reversed(chosen)).source(data).content_hash()


def test_all_subjects_are_the_benchmark(data: Path) -> None:
    assert mmlu(subjects=list(TEST_ROWS)).source(data).content_hash() == CONTENT_HASH


@pytest.mark.parametrize(
    ("subjects", "line"),
    [
        (["anatomy", "colege_mathematics"], "no subject 'colege_mathematics'; did you mean"),
        ([], "subjects is empty"),
        ("anatomy", "a list of subjects was expected, not 'anatomy'"),
    ],
)
def test_mistakes_in_the_subjects_are_one_line(subjects: Any, line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        mmlu(subjects=subjects)


def test_options_that_look_like_missing_values_are_text(data: Path) -> None:
    dataset = load(data)
    items = [*dataset.items, *(shot for pool in dataset.pool.values() for shot in pool)]
    assert sum(option == "None" for item in items for option in item.options) > 0
    assert all(isinstance(option, str) for item in items for option in item.options)


def test_header_layout_of_five_subjects_gives_the_same_items(data: Path) -> None:
    official, other = load(data), from_csv(data / "mmlu_hf_csv")
    assert len(other.items) == 766
    for subject in other.pool:
        assert (
            one_subject(other, subject).content_hash()
            == one_subject(official, subject).content_hash()
        )


def write_hub_copy(root: Path, dataset: Dataset) -> Path:
    """A folder like the hub repository: README with the configuration, parquet, class labels."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    text = {"dtype": "string", "_type": "Value"}
    features = {
        "question": text,
        "subject": text,
        "choices": {"feature": text, "_type": "Sequence"},
        "answer": {"names": ["A", "B", "C", "D"], "_type": "ClassLabel"},
    }
    (root / "all").mkdir(parents=True)
    shots = [shot for pool in dataset.pool.values() for shot in pool]
    for split, items in (("test", list(dataset.items)), ("dev", shots)):
        table = arrow.table(
            {
                "question": [item.question for item in items],
                "subject": [item.subject for item in items],
                "choices": [list(item.options) for item in items],
                "answer": arrow.array([item.gold for item in items], arrow.int64()),
            }
        ).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
        parquet.write_table(table, root / "all" / f"{split}-00000-of-00001.parquet")
    (root / "README.md").write_text(
        "---\nconfigs:\n- config_name: all\n  data_files:\n"
        "  - split: test\n    path: all/test-*\n  - split: dev\n    path: all/dev-*\n---\n",
        encoding="utf-8",
    )
    return root


@pytest.mark.usefixtures("hub_cache")
def test_the_hub_is_sorted_and_its_labels_are_read(tmp_path: Path) -> None:
    # Without the public data: rows of two subjects, interleaved, against the CSV of the same.
    tree = from_csv(write_tree(tmp_path / "tree", {"anatomy": 3, "virology": 2}))
    mixed = Dataset(items=tuple(tree.items[n] for n in (3, 0, 1, 4, 2)), pool=tree.pool)
    copy = write_hub_copy(tmp_path / "hub", mixed)
    assert from_hub(str(copy)).content_hash() == tree.content_hash()


def test_hendrycks_prompts_equal_the_recorded_ones(data: Path) -> None:
    recorded = data / "outputs" / "mmlu" / "llama-2-7b-hf_5shot_predictions.jsonl.gz"
    dataset = load(data)
    items = {item.id: item for item in dataset.items}
    protocol = PROTOCOLS[1]
    equal = hashed = 0
    with gzip.open(recorded, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["prompt_sha256"] is None:
                continue
            item = items[f"{row['subject']}-{row['row']:04d}"]
            hashed += 1
            prompt = protocol.render(item, dataset.pool[item.subject])
            equal += prompt.sha256 == row["prompt_sha256"]
    assert (equal, hashed) == (12333, 12333)


def test_replayed_predictions_give_the_recorded_score(data: Path) -> None:
    dataset = load(data)
    protocol = PROTOCOLS[1].with_generation()
    score = get_scorer(protocol.scorer)
    model = open_model(str(data / "outputs/mmlu/llama-2-7b-hf_5shot_predictions.jsonl.gz"))
    items = {item.id: item for item in dataset.items}
    counts: dict[str, int] = {}
    for response in model.answer(
        protocol.request(item, dataset.pool[item.subject]) for item in dataset.items
    ):
        outcome = score(items[response.id], response).outcome
        counts[outcome] = counts.get(outcome, 0) + 1
    assert counts == {"correct": 5791, "wrong": 6550, "unparsed": 2, "error": 1699}


def test_missing_and_short_subjects_are_named(tmp_path: Path) -> None:
    sizes = {**TEST_ROWS, "professional_law": 1000}
    del sizes["virology"], sizes["anatomy"]
    write_tree(tmp_path / "mmlu", sizes)
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    message = str(caught.value)
    assert "test lacks anatomy, virology" in message
    assert "professional_law has 1,000 of 1,534 test rows" in message
    assert "\n" not in message


def test_a_dev_row_too_many_is_named(tmp_path: Path) -> None:
    dev = {**dict.fromkeys(TEST_ROWS, DEV_ROWS), "virology": 6}
    write_tree(tmp_path / "mmlu", dict(TEST_ROWS), dev)
    with pytest.raises(DataError, match="virology has 6 of 5 dev rows"):
        load(tmp_path)


def test_five_subjects_are_not_the_benchmark(data: Path, tmp_path: Path) -> None:
    (tmp_path / "mmlu").symlink_to(data / "mmlu_hf_csv")
    with pytest.raises(DataError, match=r"test lacks astronomy, .* and 47 more"):
        load(tmp_path)


def test_a_complete_tree_with_stray_files_is_taken(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "mmlu" / "data", dict(TEST_ROWS))
    (root / "README.txt").write_text("stray", encoding="utf-8")
    (root / "test" / "notes.csv").write_text("a,b\n", encoding="utf-8")
    (root / "test" / "._anatomy_test.csv").write_bytes(b"\x00\xff")
    assert len(load(tmp_path).items) == 14042


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q?,a,b,c,B\n", r"anatomy_test\.csv, row 1: 5 cells"),
        ("q?,a,b,c,d,B\nq?,a,b,c,B\n", r"anatomy_test\.csv, row 2: 5 cells"),
        ("question,x,y,z,w,answer\n", r"anatomy_test\.csv, row 1: a header without"),
        ("question,A,B,C,D,answer\nq?,a,b,c,d,4\n", r"anatomy_test\.csv, row 2: answer '4'"),
        ("", r"anatomy_test\.csv: no rows"),
    ],
)
def test_unusable_files_are_named(tmp_path: Path, content: str, message: str) -> None:
    root = write_tree(tmp_path / "mmlu", {"anatomy": 2})
    (root / "test" / "anatomy_test.csv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load(tmp_path)
