"""MBPP (Austin et al., 2021): small Python tasks with three tests each; 500 of 974 are scored.

The authors group tasks by id: 1 to 10 for prompts, 11 to 510 for testing, 511 to 600 for
validation, the rest for training. ``mbpp_sanitized`` is the part that they verified by hand and
partly reworded, 427 tasks in the same groups, 257 of them for testing (lm-eval has only the full
set). Shots come from the tasks for prompts, beginning with the three of the paper, 2, 3 and 4.

Items, ids and content hash are the same from every source: the official files or the hub. Item ids
are ``mbpp-<task id>``. Incomplete copies are rejected. Every protocol needs a sandbox.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.code import MBPP
from pytest_llmeval.prompts.code import MBPP_CHAT
from pytest_llmeval.prompts.code import MBPP_INSTRUCT
from pytest_llmeval.prompts.code import MBPP_STOP
from pytest_llmeval.sources import hub
from pytest_llmeval.sources.files import READ_ERRORS
from pytest_llmeval.sources.files import open_binary
from pytest_llmeval.sources.files import read_error
from pytest_llmeval.sources.files import read_jsonl
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import first_file
from pytest_llmeval.sources.locate import load_first

REPO = "google-research-datasets/mbpp"
REVISION = "4bb6404fdc6cacfda99d4ac4205087b89d32030c"

_NAME = "mbpp"
_SHOTS = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class _Edition:
    """One of the two sets of tasks."""

    #: Configuration on the hub.
    config: str
    #: Names of the official file.
    files: tuple[str, ...]
    #: Name of the column with the question.
    question: str
    #: Group → number of tasks.
    sizes: Mapping[str, int]


_FULL = _Edition(
    "full",
    ("mbpp.jsonl", "mbpp.jsonl.gz"),
    "text",
    {"prompt": 10, "test": 500, "validation": 90, "train": 374},
)
_SANITIZED = _Edition(
    "sanitized",
    ("sanitized-mbpp.json", "sanitized-mbpp.json.gz"),
    "prompt",
    {"prompt": 7, "test": 257, "validation": 43, "train": 120},
)
_GROUPS = ("prompt", "test", "validation", "train")
_SCORED = ("prompt", "test")
"""The groups that make up the benchmark."""

# The paper's format and stop string; it gives no number of tokens that would suit all models.
# lm-eval's two tasks generate 256.
_DECODING = Decoding(max_tokens=512, stop=MBPP_STOP)
_OFFICIAL = Protocol(
    "official", MBPP, scorer="execution_raw", shots=3, ask="text", decoding=_DECODING
)
_INSTRUCT = Protocol(
    "instruct",
    MBPP_INSTRUCT,
    scorer="execution",
    shots=3,
    ask="text",
    decoding=Decoding(max_tokens=512),
)

# `official` runs the completion unchanged, as lm-eval's task mbpp does. `instruct` has the prompt
# of lm-eval's mbpp_instruct and extracts the program with `extract_code`; `lmeval_instruct` also
# extracts it as that task does. `chat` is for chat models without support for an answer prefix.
PROTOCOLS = (
    _OFFICIAL,
    replace(
        _OFFICIAL,
        name="official_sampled",
        decoding=replace(_DECODING, temperature=0.5),  # the paper's, for its 80 samples
    ),
    _INSTRUCT,
    Protocol(
        "chat",
        MBPP_CHAT,
        scorer="execution",
        ask="text",
        chat=True,
        decoding=Decoding(max_tokens=512),
    ),
    replace(
        _OFFICIAL,
        name="lmeval",
        decoding=replace(_DECODING, max_tokens=256),
    ),
    replace(
        _INSTRUCT,
        name="lmeval_instruct",
        scorer="execution_first_block",
        also=("execution",),
        decoding=Decoding(max_tokens=256),
    ),
)


def mbpp() -> Benchmark:
    """Return the 500 test tasks of the full set; its rows are loaded on first use."""
    return Benchmark("mbpp", source=load, protocols=PROTOCOLS)


def mbpp_sanitized() -> Benchmark:
    """Return the 257 test tasks of the sanitized set; its rows are loaded on first use."""
    return Benchmark("mbpp_sanitized", source=partial(load, sanitized=True), protocols=PROTOCOLS)


def load(data_dir: Any = None, *, sanitized: bool = False) -> Dataset:
    """Load the test tasks, with those for prompts as pool, from ``DIR/mbpp`` or else from the hub.

    Raises DataError if there is no copy or it is incomplete.
    """
    return _load(data_dir, sanitized, _SCORED, _dataset)


def all_tasks(data_dir: Any = None, *, sanitized: bool = False) -> tuple[Item, ...]:
    """Return all tasks of the set, 974 or 427, by id; for checks of a sandbox, not for scores."""
    return _load(data_dir, sanitized, _GROUPS, _all_groups).items


_Groups = Mapping[str, tuple[Item, ...]]


def _load(
    data_dir: Any,
    sanitized: bool,
    group_names: tuple[str, ...],
    build: Callable[[_Groups], Dataset],
) -> Dataset:
    edition = _SANITIZED if sanitized else _FULL
    return load_first(
        _NAME,
        data_dir,
        lambda folder: build(_from_folder(edition, folder, group_names)),
        lambda: build(_from_hub(edition, REPO, group_names)),
    )


def _dataset(groups: _Groups) -> Dataset:
    shots = {row_id(_NAME, number): rank for rank, number in enumerate(_SHOTS)}
    pool = sorted(groups["prompt"], key=lambda item: shots.get(item.id, len(shots)))
    return Dataset(items=groups["test"], pool={_NAME: tuple(pool)})


def _all_groups(groups: _Groups) -> Dataset:
    return Dataset(items=tuple(item for group in _GROUPS for item in groups[group]))


def _from_folder(edition: _Edition, folder: Path, group_names: tuple[str, ...]) -> _Groups:
    """Read the official file, or a clone of its repository or of the hub repository."""
    for root in (folder, folder / "mbpp"):
        path = first_file(root, *edition.files)
        if path is not None:
            groups = _by_group(edition, _read(path))
            _check(edition, str(path), groups, _GROUPS)
            return groups
    if any((folder / edition.config).glob("test-*.parquet")):
        return _from_hub(edition, str(folder), group_names)
    raise DataError(
        f"{folder}: not a copy of mbpp (neither {edition.files[0]} nor"
        f" {edition.config}/test-*.parquet)"
    )


def _from_hub(edition: _Edition, path: str, group_names: tuple[str, ...]) -> _Groups:
    rows = (
        (f"{path}, {edition.config}, {split}, row {number}", row)
        for split in group_names
        for number, row in enumerate(hub.load_rows(path, edition.config, split, REVISION))
    )
    groups = _by_group(edition, rows)
    _check(edition, path, groups, group_names)
    return groups


def _check(edition: _Edition, where: str, groups: _Groups, group_names: tuple[str, ...]) -> None:
    check_sizes(
        f"mbpp ({edition.config})",
        where,
        [
            (group, {_NAME: len(groups.get(group, ()))}, {_NAME: edition.sizes[group]})
            for group in group_names
        ],
    )


_Rows = Iterable[tuple[str, dict[str, Any]]]


def _read(path: Path) -> _Rows:
    if ".jsonl" in path.suffixes:
        return ((f"{path}, line {number}", row) for number, row in read_jsonl(path))
    return _read_array(path)


def _read_array(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with open_binary(path) as file:
            rows = json.loads(file.read())
    except READ_ERRORS as error:
        raise read_error(path, error) from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: a list of JSON objects was expected")
    for number, row in enumerate(rows):
        yield f"{path}, row {number}", row


def _by_group(edition: _Edition, rows: _Rows) -> _Groups:
    """Return group → items, in the order of their ids; the id determines the group."""
    groups: dict[str, list[Item]] = {}
    seen: Counter[str] = Counter()
    for where, row in rows:
        task = row.get("task_id")
        if not isinstance(task, int) or isinstance(task, bool):
            raise DataError(f"{where}: task_id is not a whole number")
        item = _item(where, task, row, edition)
        seen[item.id] += 1
        if seen[item.id] > 1:
            raise DataError(f"{where}: task_id {task} occurs twice")
        groups.setdefault(_group(task), []).append(item)
    return {
        group: tuple(sorted(items, key=lambda item: item.id)) for group, items in groups.items()
    }


def _group(task: int) -> str:
    if task <= 10:
        return "prompt"
    if task <= 510:
        return "test"
    return "validation" if task <= 600 else "train"


def _item(where: str, task: int, row: dict[str, Any], edition: _Edition) -> Item:
    """Return the item of a row; ``gold`` is the function's name, since any program may be right."""
    question, code = row.get(edition.question), row.get("code")
    tests, imports = row.get("test_list"), row.get("test_imports") or []
    setup = row.get("test_setup_code") or ""
    if not isinstance(question, str) or not isinstance(code, str):
        raise DataError(f"{where}: texts {edition.question} and code were expected")
    if not _texts(tests) or not _texts(imports) or not isinstance(setup, str) or not tests:
        raise DataError(
            f"{where}: test_list and test_imports must be lists of texts, test_setup_code a text"
        )
    test_lines = "\n".join(tests)
    checks = f"{setup}\n{test_lines}" if setup else test_lines
    try:
        entry_point, needed = _entry_point_and_imports(code, checks)
    except (SyntaxError, ValueError) as error:
        raise DataError(f"{where}: code or tests are not Python ({error})") from None
    if entry_point is None:
        raise DataError(f"{where}: the tests do not call a function of the code")
    return Item(
        row_id(_NAME, task),
        _NAME,
        question,
        entry_point,
        fields={
            "entry_point": entry_point,
            "test_list": test_lines,
            "tests": checks,
            "context": "\n".join(dict.fromkeys((*imports, *needed))),
            "solution": code,
        },
    )


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _entry_point_and_imports(code: str, tests: str) -> tuple[str | None, list[str]]:
    """Return the first function of the code that the tests call, and the imports they need.

    The imports are those of the code: the tests of task 596 use ``sys`` without importing it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data has invalid escape sequences
        body, checks = ast.parse(code).body, ast.parse(tests)
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    # Breadth first: in `f(Pair(1, 2))` it is f.
    called = [
        node.func.id
        for check in checks.body
        for node in ast.walk(check)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in functions
    ]
    used = {node.id for node in ast.walk(checks) if isinstance(node, ast.Name)}
    needed = [
        ast.unparse(node)
        for node in body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not used.isdisjoint(alias.asname or alias.name for alias in node.names)
    ]
    return (called[0] if called else None), needed
