"""MBPP, full and sanitized: the same items from every layout, complete or refused."""

from __future__ import annotations

import ast
import gzip
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.catalog import mbpp
from pytest_llmeval.catalog import mbpp_sanitized
from pytest_llmeval.catalog.mbpp import all_tasks
from pytest_llmeval.catalog.mbpp import load
from pytest_llmeval.core import DataError
from pytest_llmeval.core import check_dataset
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.scorers.execution import reference_program

FULL_HASH = "446f51f09e9ca2c2"
SANITIZED_HASH = "d6fa3cc89f68771e"
MODULE = importlib.import_module("pytest_llmeval.catalog.mbpp")
SPLITS = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}

Row = dict[str, Any]


def full(**changes: Any) -> list[Row]:
    return [
        {
            "task_id": number,
            "text": f"Task {number}.",
            "code": f"def f(n):\r\n  return n + {number}",
            "test_list": [f"assert f({n}) == {n + number}" for n in range(3)],
            "test_setup_code": "",
            "challenge_test_list": [],
            **changes,
        }
        for number in range(1, 975)
    ]


def sanitized() -> list[Row]:
    """As many rows of every group as the published file has."""
    sizes = {"prompt": 7, "test": 257, "validation": 43, "train": 120}
    wanted = {first + n for name, (first, _) in SPLITS.items() for n in range(sizes[name])}
    return [
        {
            "source_file": "x",
            "task_id": row["task_id"],
            "prompt": row["text"],
            "code": row["code"],
            "test_imports": ["import math"],
            "test_list": row["test_list"],
        }
        for row in full()
        if row["task_id"] in wanted
    ]


def write(path: Path, rows: list[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if ".jsonl" in path.suffixes:
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    else:
        data = json.dumps(rows, indent=1).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Makes the hub give made-up rows; the list has what it was asked for."""
    asked: list[tuple[Any, ...]] = []

    def load_rows(*question: Any) -> list[Row]:
        asked.append(question)
        first, last = SPLITS[question[2]]
        rows = full() if question[1] == "full" else sanitized()
        return [row for row in rows if first <= row["task_id"] <= last]

    monkeypatch.setattr(MODULE.hub, "load_rows", load_rows)
    return asked


def test_asking_for_the_benchmarks_reads_nothing() -> None:
    assert mbpp().protocols == mbpp_sanitized().protocols
    assert [(protocol.name, protocol.shots) for protocol in mbpp().protocols] == [
        ("official", 3),
        ("official_sampled", 3),
        ("instruct", 3),
        ("chat", 0),
        ("lmeval", 3),
        ("lmeval_instruct", 3),
    ]


@pytest.mark.parametrize(
    ("clean", "tasks", "items", "last", "pool", "content"),
    [(False, 974, 500, 510, 10, FULL_HASH), (True, 427, 257, 479, 7, SANITIZED_HASH)],
)
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_the_official_files_are_complete(
    data: Path, clean: bool, tasks: int, items: int, last: int, pool: int, content: str
) -> None:
    dataset = load(data, sanitized=clean)
    check_dataset("mbpp", dataset)
    shots = dataset.pool["mbpp"]
    assert (len(dataset.items), len(shots)) == (items, pool)
    assert dataset.content_hash() == content
    every = all_tasks(data, sanitized=clean)
    assert len(every) == tasks
    assert set(dataset.items) | set(shots) <= set(every)
    scored = [int(item.id.removeprefix("mbpp-")) for item in dataset.items]
    assert scored == sorted(scored)
    assert (scored[0], scored[-1]) == (11, last)
    for item in every:
        program = reference_program(item)
        names = [
            one.name for one in ast.parse(program.source).body if isinstance(one, ast.FunctionDef)
        ]
        assert program.entry_point in names
        assert item.fields["test_list"] in program.tests


def test_what_tests_need_beside_the_code(data: Path) -> None:
    tasks = {item.id: item for item in all_tasks(data)}
    # The code of a tree comes from the candidate, the trees of the tests from the data.
    assert tasks["mbpp-0367"].fields["tests"].startswith("root = Node(1)")
    assert [name for name, item in tasks.items() if item.fields["context"]] == ["mbpp-0596"]
    assert tasks["mbpp-0596"].fields["context"] == "import sys"
    assert tasks["mbpp-0601"].gold_label == "max_chain_length"  # not the class of its arguments
    clean = {item.id: item for item in all_tasks(data, sanitized=True)}
    assert clean["mbpp-0082"].fields["context"] == "import math"
    assert len(clean["mbpp-0002"].fields["test_list"].split("\n")) == 3


@pytest.mark.parametrize("benchmark", [mbpp(), mbpp_sanitized()])
def test_shots_are_the_three_of_the_paper_and_never_scored(data: Path, benchmark: Any) -> None:
    dataset = benchmark.source(data)
    asked = {item.id for item in dataset.items}
    for protocol in benchmark.protocols:
        if protocol.shots:
            for item in dataset.items[:20]:
                shots = protocol.draw_shots(item, dataset.pool["mbpp"])
                assert [shot.id for shot in shots] == ["mbpp-0002", "mbpp-0003", "mbpp-0004"]
    assert not asked & {shot.id for shot in dataset.pool["mbpp"]}


@pytest.mark.parametrize(
    ("clean", "name"),
    [(False, "mbpp.jsonl"), (False, "mbpp.jsonl.gz"), (True, "sanitized-mbpp.json")],
)
def test_every_layout_gives_the_same_items(
    tmp_path: Path, fake_hub: list[tuple[Any, ...]], clean: bool, name: str
) -> None:
    rows = sanitized() if clean else full()
    write(tmp_path / "a" / "mbpp" / name, rows)
    write(tmp_path / "b" / "mbpp" / "mbpp" / name, list(reversed(rows)))
    (tmp_path / "c").mkdir()
    found = [load(tmp_path / folder, sanitized=clean) for folder in "abc"]
    assert len({dataset.content_hash() for dataset in found}) == 1
    assert len({dataset.items for dataset in found}) == 1
    config = "sanitized" if clean else "full"
    assert [question[:3] for question in fake_hub] == [
        ("google-research-datasets/mbpp", config, "prompt"),
        ("google-research-datasets/mbpp", config, "test"),
    ]
    assert all(len(question[3]) == 40 for question in fake_hub)
    assert all_tasks(tmp_path / "a", sanitized=clean) == all_tasks(tmp_path / "c", sanitized=clean)


def test_the_hub_clone_is_read_through_the_hub(data: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    lines = (data / "mbpp" / "mbpp.jsonl").read_text(encoding="utf-8").splitlines()
    rows = datasets.Dataset.from_list([json.loads(line) for line in lines])
    copy = tmp_path / "mbpp"
    for name, (first, last) in SPLITS.items():
        path = copy / "full" / f"{name}-00000-of-00001.parquet"
        rows.select(range(first - 1, last)).to_parquet(str(path))
    files = "".join(f"  - split: {name}\n    path: full/{name}-*\n" for name in SPLITS)
    (copy / "README.md").write_text(
        f"---\nconfigs:\n- config_name: full\n  data_files:\n{files}---\n", encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
        assert load(tmp_path).content_hash() == FULL_HASH
        assert all_tasks(tmp_path) == all_tasks(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_id": "11"}, "line 1: task_id is not a whole number"),
        ({"task_id": 7}, "line 2: task_id 7 occurs twice"),
        ({"text": None}, "line 1: texts text and code were expected"),
        ({"test_list": "assert"}, "line 1: test_list is not a list of texts"),
        ({"test_list": []}, "line 1: test_list is not a list of texts"),
        ({"test_setup_code": 1}, "line 1: test_list is not a list of texts"),
        ({"code": "def f(:"}, "line 1: code or tests are not Python"),
        ({"test_list": ["assert g(1)"]}, "line 1: the tests call no function of the code"),
    ],
)
def test_unusable_rows_are_named(tmp_path: Path, change: Row, message: str) -> None:
    write(tmp_path / "mbpp" / "mbpp.jsonl", full(**change))
    with pytest.raises(DataError, match=rf"mbpp\.jsonl, {message}"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["{}", "[1]", "[", "\x00"])
def test_a_broken_array_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mbpp" / "sanitized-mbpp.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"sanitized-mbpp\.json: "):
        load(tmp_path, sanitized=True)


def test_an_incomplete_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mbpp" / "mbpp.jsonl", full()[:-1])
    with pytest.raises(
        DataError, match=r"\(full\).* not the complete set: train mbpp has 373 of 374"
    ):
        load(tmp_path)
    write(tmp_path / "mbpp" / "mbpp.jsonl", [row for row in full() if row["task_id"] != 11])
    with pytest.raises(DataError, match="test mbpp has 499 of 500 rows"):
        load(tmp_path)
    # Neither edition stands in for the other.
    with pytest.raises(DataError, match=r"not a copy of mbpp \(neither sanitized-mbpp\.json"):
        load(tmp_path, sanitized=True)


def test_found_nowhere_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any) -> None:
        raise DataError("hub data set cannot be loaded (offline)")

    monkeypatch.setattr(MODULE.hub, "load_rows", unreachable)
    with pytest.raises(DataError) as caught:
        mbpp_sanitized().source(tmp_path)
    assert str(tmp_path / "mbpp") in str(caught.value)
    assert "offline" in str(caught.value)


def test_the_protocols_are_different_measurements(
    tmp_path: Path, fake_hub: Callable[..., Any]
) -> None:
    dataset = load(tmp_path)
    prints = {fingerprint(protocol.bound_to(dataset)) for protocol in mbpp().protocols}
    assert len(prints) == 6
