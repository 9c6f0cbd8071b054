"""MBPP, full and sanitized: groups by task id, and the programs of the tasks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pytest_llmeval.catalog import mbpp
from pytest_llmeval.catalog import mbpp_sanitized
from pytest_llmeval.catalog.mbpp import all_tasks
from pytest_llmeval.catalog.mbpp import load
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.scorers.execution import reference_program
from support.catalog_copies import CatalogCopy
from support.catalog_copies import fake_hub
from support.generation_copies import MBPP
from support.generation_copies import MBPP_IDS
from support.generation_copies import MBPP_SANITIZED


def test_shots_and_protocols() -> None:
    assert mbpp().protocols == mbpp_sanitized().protocols
    assert [protocol.shots for protocol in mbpp().protocols] == [3, 3, 3, 0, 3, 3]


@pytest.mark.parametrize(
    ("sanitized", "tasks", "last"), [(False, 974, 510), (True, 427, 479)], ids=["full", "sanitized"]
)
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_reference_programs_of_the_public_copy(
    data: Path, sanitized: bool, tasks: int, last: int
) -> None:
    dataset = load(data, sanitized=sanitized)
    every = all_tasks(data, sanitized=sanitized)
    assert len(every) == tasks
    assert {*dataset.items, *dataset.pool["mbpp"]} <= set(every)
    scored = [int(item.id.removeprefix("mbpp-")) for item in dataset.items]
    assert scored == sorted(scored)
    assert (scored[0], scored[-1]) == (11, last)
    for item in every:
        program = reference_program(item)
        names = [
            node.name
            for node in ast.parse(program.source).body
            if isinstance(node, ast.FunctionDef)
        ]
        assert program.entry_point in names
        assert item.fields["test_list"] in program.tests


def test_code_that_the_tests_need(data: Path) -> None:
    tasks = {item.id: item for item in all_tasks(data)}
    # The code of a tree comes from the candidate, the trees of the tests from the data.
    assert tasks["mbpp-0367"].fields["tests"].startswith("root = Node(1)")
    assert [name for name, item in tasks.items() if item.fields["context"]] == ["mbpp-0596"]
    assert tasks["mbpp-0596"].fields["context"] == "import sys"
    assert tasks["mbpp-0601"].gold_label == "max_chain_length"  # not the class of its arguments
    sanitized = {item.id: item for item in all_tasks(data, sanitized=True)}
    assert sanitized["mbpp-0082"].fields["context"] == "import math"
    assert len(sanitized["mbpp-0002"].fields["test_list"].split("\n")) == 3


@pytest.mark.parametrize("benchmark", [mbpp(), mbpp_sanitized()], ids=["full", "sanitized"])
def test_shots_are_the_three_of_the_paper(data: Path, benchmark: Benchmark) -> None:
    dataset = benchmark.source(data)
    for protocol in benchmark.protocols:
        if protocol.shots:
            for item in dataset.items[:20]:
                shots = protocol.select_shots(item, dataset.pool["mbpp"])
                assert [shot.id for shot in shots] == ["mbpp-0002", "mbpp-0003", "mbpp-0004"]


@pytest.mark.parametrize("copy", [MBPP, MBPP_SANITIZED], ids=["full", "sanitized"])
def test_groups_go_by_task_id(
    copy: CatalogCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy.use_constants(monkeypatch)
    sanitized = copy is MBPP_SANITIZED
    requested = fake_hub(monkeypatch, copy.repo, copy.to_hub(copy.splits))
    dataset, every = load(sanitized=sanitized), all_tasks(sanitized=sanitized)
    config = "sanitized" if sanitized else "full"
    groups = ("prompt", "test", "prompt", "test", "validation", "train")
    assert requested == [(config, group) for group in groups]
    for items, group in ((dataset.items, "test"), (dataset.pool["mbpp"], "prompt")):
        assert [item.id for item in items] == [f"mbpp-{task:04d}" for task in MBPP_IDS[group]]
    copy.write(tmp_path)
    assert load(tmp_path, sanitized=sanitized) == dataset
    assert all_tasks(tmp_path, sanitized=sanitized) == every


def test_all_tasks_of_a_public_clone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    MBPP.clone(tmp_path, MBPP.read(data / "mbpp"))
    assert all_tasks(tmp_path) == all_tasks(data)


@pytest.mark.parametrize("text", ["{}", "[1]", "[", "\x00"])
def test_a_broken_array_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mbpp" / "sanitized-mbpp.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"sanitized-mbpp\.json: "):
        load(tmp_path, sanitized=True)


def test_neither_edition_is_taken_for_the_other(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a copy of mbpp \(neither sanitized-mbpp\.json"):
        load(MBPP.write(tmp_path / "full"), sanitized=True)
    with pytest.raises(DataError, match=r"not a copy of mbpp \(neither mbpp\.jsonl"):
        load(MBPP_SANITIZED.write(tmp_path / "sanitized"))
