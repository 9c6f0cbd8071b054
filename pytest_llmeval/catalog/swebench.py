"""SWE-bench (Jimenez et al., 2024): issues of Python projects to be resolved by a patch.

A patch is resolved where the tests of the instance pass on it, in the instance's own image. Most
patches come from an agent, and are replayed: ``--llm-model replay:preds.jsonl`` reads the
predictions that SWE-bench's own harness reads. A model can also write the patch itself.

``swebench_verified`` has 500 instances, ``swebench_lite`` 300. ``resolved`` runs the tests under
guard; ``resolved_official`` runs the script of the row by the rules of the leaderboard, for
comparison with it. Items are called by their instance ids, subjects are the repositories.

Rows need the columns ``image``, ``eval_script`` and ``log_parser``, which were published in August
2026. They are read from ``DIR/swebench_verified`` (parquet, JSONL or JSON), or from the hub at a
``revision`` that has them. The protocol ``text`` shows the prompts of ``SWE-bench_oracle`` or
``_bm25``: those rows, or any with ``instance_id`` and ``text``, are read from ``prompts.jsonl`` or
``prompts.parquet`` in the same folder.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Decoding
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.swebench import ISSUE
from pytest_llmeval.prompts.swebench import TEXT
from pytest_llmeval.sources.files import hub_rows
from pytest_llmeval.sources.files import json_rows
from pytest_llmeval.sources.files import jsonl_rows
from pytest_llmeval.sources.files import parquet_rows
from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.locate import check_sizes
from pytest_llmeval.sources.locate import find_file
from pytest_llmeval.sources.locate import load_first

Row = dict[str, Any]
Rows = Iterable[tuple[str, Row]]
Exclude = Collection[str] | Mapping[str, Any]

VERIFIED_SIZES = {
    "django/django": 231,
    "sympy/sympy": 75,
    "sphinx-doc/sphinx": 44,
    "matplotlib/matplotlib": 34,
    "scikit-learn/scikit-learn": 32,
    "astropy/astropy": 22,
    "pydata/xarray": 22,
    "pytest-dev/pytest": 19,
    "pylint-dev/pylint": 10,
    "psf/requests": 8,
    "mwaskom/seaborn": 2,
    "pallets/flask": 1,
}
LITE_SIZES = {
    "django/django": 114,
    "sympy/sympy": 77,
    "matplotlib/matplotlib": 23,
    "scikit-learn/scikit-learn": 23,
    "pytest-dev/pytest": 17,
    "sphinx-doc/sphinx": 16,
    "astropy/astropy": 6,
    "psf/requests": 6,
    "pylint-dev/pylint": 6,
    "pydata/xarray": 5,
    "mwaskom/seaborn": 4,
    "pallets/flask": 3,
}
"""Instances of every repository in the published sets."""

_NEW = ("image", "eval_script", "log_parser")
_TEXTS = ("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement", *_NEW)
_TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
_ENDINGS = (".parquet", ".jsonl", ".jsonl.gz", ".json")
_PROMPTS = tuple(f"prompts{ending}" for ending in _ENDINGS)

LOG_PARSERS = frozenset(
    f"parse_log_{name}"
    for name in (
        *("astropy", "django", "flask", "matplotlib", "pylint", "pytest", "requests", "scikit"),
        *("seaborn", "sphinx", "sympy", "xarray"),
        *("astroid", "marshmallow", "pvlib", "pydicom", "pyvista", "sqlfluff"),
        *("pytest_options", "pytest_v2"),
    )
)
"""Parsers of the test and dev splits, as the scorers have them."""

# Columns that only other sets have, with the set and why its rules are not ours.
_OTHER_SETS = {
    "image_assets": ("SWE-bench Multimodal", "a test that is absent from a log passes there"),
    "selected_test_files_to_run": ("SWE-bench Pro", "every instance has a log parser of its own"),
    "dockerhub_tag": ("SWE-bench Pro", "every instance has a log parser of its own"),
    "install_config": ("SWE-rebench", "its fork of the harness has rules of its own"),
    "test_cmds": ("SWE-bench-Live", "a test that is absent from a log is no failure there"),
    "rebuild_cmds": ("SWE-bench-Live", "a test that is absent from a log is no failure there"),
    "image_name": ("SWE-smith", "its patch is the bug, and an absent test passes"),
    "trajectory": ("a set of trajectories", "it has no tests"),
    "messages": ("a set of trajectories", "it has no tests"),
}

_PATCH = Protocol(
    "patch",
    ISSUE,
    scorer="resolved",
    ask="text",
    chat=True,
    decoding=Decoding(max_tokens=8192),
)
PROTOCOLS = (
    _PATCH,
    replace(_PATCH, name="official", scorer="resolved_official"),
    replace(_PATCH, name="both", also=("resolved_official",)),
    replace(_PATCH, name="text", template=TEXT),
    replace(_PATCH, name="text_official", template=TEXT, scorer="resolved_official"),
)


def swebench_verified(*, exclude: Exclude = (), revision: str | None = None) -> Benchmark:
    """Return the 500 instances of SWE-bench Verified.

    ``exclude``: instances that are left out, such as those that ``llmeval swebench check`` found
    flaky. ``revision``: that of SWE-bench/SWE-bench_Verified on the hub, where the data folder has
    no copy.
    """
    source = _Published(
        "swebench_verified",
        "SWE-bench/SWE-bench_Verified",
        tuple(VERIFIED_SIZES.items()),
        revision,
    )
    return Benchmark(source.name, source=source, protocols=PROTOCOLS, exclude=exclude)


def swebench_lite(*, exclude: Exclude = (), revision: str | None = None) -> Benchmark:
    """Return the 300 instances of SWE-bench Lite; ``exclude`` and ``revision`` as of Verified."""
    sizes = tuple(LITE_SIZES.items())
    source = _Published("swebench_lite", "SWE-bench/SWE-bench_Lite", sizes, revision)
    return Benchmark(source.name, source=source, protocols=PROTOCOLS, exclude=exclude)


def swebench_rows(
    path: str | PathLike[str], *, name: str = "swebench", exclude: Exclude = ()
) -> Benchmark:
    """Instances of a file or folder in the format of SWE-bench, however many.

    A relative path is looked up in the run's data folder first, then in the working folder.
    """
    return Benchmark(name, source=_OwnRows(Path(path)), protocols=PROTOCOLS, exclude=exclude)


@dataclass(frozen=True)
class _Published:
    """A published set: from ``DIR/<name>``, or from the hub."""

    name: str
    repo: str
    sizes: tuple[tuple[str, int], ...]
    revision: str | None

    def __call__(self, data_dir: Any = None) -> Dataset:
        return load_first(self.name, data_dir, self._from_folder, self._from_hub)

    def _from_folder(self, folder: Path) -> Dataset:
        return self._complete(str(folder), dataset(*_files(folder)))

    def _from_hub(self) -> Dataset:
        if self.revision is None:
            raise ConfigError(
                f"no revision of {self.repo} with the columns {', '.join(_NEW)} is pinned: give"
                f" {self.name}(revision=…)"
            )
        return self._complete(self.repo, dataset(hub_rows(self.repo, None, "test", self.revision)))

    def _complete(self, where: str, loaded: Dataset) -> Dataset:
        check_sizes(self.name, where, [("test", loaded.subject_sizes(), dict(self.sizes))])
        return loaded


@dataclass(frozen=True)
class _OwnRows:
    path: Path

    def __call__(self, data_dir: Any = None) -> Dataset:
        if self.path.is_dir():
            return dataset(*_files(self.path))
        file = find_file(self.path, data_dir)
        return dataset(_rows(file), *_prompts(file.parent))


def dataset(rows: Rows, prompts: Rows = ()) -> Dataset:
    """Return the items of rows, with the prompts of others. DataError for unusable rows."""
    texts = {_text(where, row, "instance_id"): _text(where, row, "text") for where, row in prompts}
    items: dict[str, Item] = {}
    for where, row in rows:
        item = _item(where, row, texts)
        if item.id in items:
            raise DataError(f"{where}: instance {item.id} occurs twice")
        items[item.id] = item
    return Dataset(tuple(items.values()))


def _files(folder: Path) -> Iterator[Rows]:
    """Return the rows of a folder, and the prompts in it if there are any."""
    published = sorted([*folder.glob("test-*.parquet"), *folder.glob("data/test-*.parquet")])
    if published:
        yield parquet_rows(published)
    else:
        files = [
            file
            for file in sorted(folder.iterdir())
            if file.name.endswith(_ENDINGS) and file.name not in _PROMPTS
        ]
        if len(files) != 1:
            names = f": {', '.join(file.name for file in files[:5])}" if files else ""
            raise DataError(
                f"{folder}: {len(files)} files of rows, where test-*.parquet or one .parquet, .jsonl"
                f" or .json was expected{names}"
            )
        yield _rows(files[0])
    yield from _prompts(folder)


def _prompts(folder: Path) -> Iterator[Rows]:
    for name in _PROMPTS:
        if (folder / name).is_file():
            yield _rows(folder / name)
            return


def _rows(file: Path) -> Rows:
    if file.suffix == ".parquet":
        return parquet_rows([file])
    return json_rows(file) if file.suffix == ".json" else jsonl_rows(file)


def _item(where: str, row: Row, prompts: Mapping[str, str]) -> Item:
    _check_set(where, row)
    texts = {name: _text(where, row, name) for name in _TEXTS}
    if texts["log_parser"] not in LOG_PARSERS:
        raise DataError(
            f"{where}: unknown log parser {texts['log_parser']!r}: supported are SWE-bench, Lite and"
            " Verified, not Multilingual, to whose parsers no recorded verdicts are public"
        )
    fail_to_pass, pass_to_pass = (_tests(where, row, name) for name in _TESTS)
    if not fail_to_pass:
        raise DataError(f"{where}: FAIL_TO_PASS is empty")
    prompt = prompts.get(texts["instance_id"], row.get("text"))
    return Item(
        safe_id(texts["instance_id"]),
        texts["repo"],
        texts["problem_statement"],
        "resolved",
        fields={
            **{name: texts[name] for name in ("image", "base_commit", "test_patch")},
            **{name: texts[name] for name in ("eval_script", "log_parser")},
            "solution": texts["patch"],
            "fail_to_pass": json.dumps(fail_to_pass),
            "pass_to_pass": json.dumps(pass_to_pass),
            **({"text": prompt} if isinstance(prompt, str) else {}),
            **{name: str(row[name]) for name in ("version", "difficulty") if row.get(name)},
        },
    )


def _check_set(where: str, row: Row) -> None:
    """Refuse rows of other sets, and those that are too old to be run."""
    for column, (name, reason) in _OTHER_SETS.items():
        if column in row:
            raise DataError(
                f"{where}: a row of {name} (column {column}), which is not supported: {reason}"
            )
    missing = [column for column in (*_TEXTS, *_TESTS) if row.get(column) is None]
    if set(missing) & set(_NEW):
        raise DataError(
            f"{where}: no {' and no '.join(name for name in missing if name in _NEW)}: the data set"
            " is older than August 2026, when these columns were published"
        )
    if missing:
        raise DataError(f"{where}: no {missing[0]}: not a row of SWE-bench")
    if row.get("eval_type", "pass_and_fail") != "pass_and_fail":
        raise DataError(
            f"{where}: eval_type {row['eval_type']!r}, which is not supported: a test that is absent"
            " from a log passes there"
        )


def _text(where: str, row: Row, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise DataError(f"{where}: no text in {column}")
    return value


def _tests(where: str, row: Row, column: str) -> list[str]:
    """Names of tests, a list or a list as JSON."""
    value = row[column]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise DataError(f"{where}: {column} is neither a list of names nor one as JSON")
    return value
