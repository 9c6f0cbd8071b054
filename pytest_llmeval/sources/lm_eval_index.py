"""Names and configurations of lm-evaluation-harness's tasks, read without running their code.

lm-eval reads some 14,000 YAML files to find a task by its name, which takes seconds in every
process. The index of the installed files is kept in the user's cache folder instead, under lm-eval's
version and location.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from typing import Literal

from filelock import FileLock

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.installation import install_hint

OLDEST, FIRST_UNSUPPORTED = (0, 4, 13), (0, 5)
"""Versions of lm-eval that are supported: from the first to before the second."""

Kind = Literal["task", "class", "group", "tag"]

Config = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A name that lm-eval can run: a task in YAML, a Python class, a group or a tag of tasks."""

    name: str
    kind: Kind
    #: The YAML file; empty for a tag.
    file: str = ""
    #: Names of the tasks of a tag.
    members: tuple[str, ...] = ()


def lm_eval_version() -> str:
    """Return the version of the installed lm-eval.

    Raises ConfigError if it is not installed, or if this version is not supported.
    """
    if find_spec("lm_eval") is None:
        raise ConfigError(f"lm_eval_task needs lm-eval: {install_hint('lm-eval')}")
    from importlib import metadata  # its import takes a tenth of a command's time

    version = metadata.version("lm-eval")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if not OLDEST <= numbers < FIRST_UNSUPPORTED:
        raise ConfigError(
            f"lm_eval_task supports lm-eval from {_dotted(OLDEST)} to before"
            f" {_dotted(FIRST_UNSUPPORTED)}, and {version} is installed"
        )
    return version


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def find_entry(name: str, include_path: str | None = None) -> Entry:
    """Return the entry of a task, group or tag by its name, or by the path of its YAML file.

    ``include_path``: a folder of YAML files, whose names take precedence. Raises ConfigError for
    an unknown name, with the nearest valid one.
    """
    lm_eval_version()
    if name.endswith((".yaml", ".yml")):
        return _entry_of_file(Path(name).expanduser().resolve())
    own = {} if include_path is None else _folder_index(include_path)
    entry = own.get(name) or _installed_index().get(name)
    if entry is None:
        where = "" if include_path is None else f" (include_path={include_path!r})"
        candidates = [*own, *_installed_index()]
        raise ConfigError(
            f"lm-eval has no task, group or tag {name!r}{where}{suggestion(name, candidates)}"
        )
    return entry


def optional_entry(name: str, include_path: str | None = None) -> Entry | None:
    """Return the entry of a name; None if lm-eval does not have it."""
    own = {} if include_path is None else _folder_index(include_path)
    return own.get(name) or _installed_index().get(name)


def read_config(entry: Entry) -> Config:
    """Return the configuration in an entry's file with what it includes; functions are their paths.

    Raises ConfigError for a file that cannot be read.
    """
    try:
        config = _yaml_loader().load_yaml(entry.file, resolve_func=False)
    except Exception as error:  # of yaml, of files that are included, and of lm-eval
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"{entry.file}: {reason[:200]}") from error
    return dict(config)


def installed_entries() -> Mapping[str, Entry]:
    """Return every name of the installed lm-eval with its entry."""
    lm_eval_version()
    return _installed_index()


def is_function(value: Any) -> bool:
    """Return true for a function of a configuration, which is a path: ``/folder/module.name``."""
    return (
        isinstance(value, str)
        and os.path.isabs(value)
        and re.fullmatch(r"[\w.]*\w\.\w+", os.path.basename(value)) is not None
    )


def function_identity(path: str) -> str:
    """Return a function's name with a hash of its module's file, independent of folders.

    A change of the module changes it, and its code is not run.
    """
    module = Path(path).with_suffix(".py")
    digest = hashlib.sha256(module.read_bytes()).hexdigest()[:16] if module.is_file() else "-"
    return f"!function {os.path.basename(path)} {digest}"


def _yaml_loader() -> Any:
    return importlib.import_module("lm_eval.tasks._yaml_loader")  # an extra


def _entry_of_file(file: Path) -> Entry:
    if not file.is_file():
        raise ConfigError(f"{file}: no such file of an lm-eval task")
    config = read_config(Entry("", "task", str(file)))
    kind: Kind = "class" if "class" in config else "group" if "group" in config else "task"
    name = config.get("group" if kind == "group" else "task")
    if not isinstance(name, str):
        raise ConfigError(f"{file}: has neither the key 'task' nor the key 'group' with a name")
    return Entry(name, kind, str(file))


@cache
def _folder_index(folder: str) -> Mapping[str, Entry]:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ConfigError(f"include_path: {folder} is not a folder")
    return _build(include_path=str(path.resolve()), include_defaults=False)


def _build(**options: Any) -> dict[str, Entry]:
    """Read all YAML files of some folders with lm-eval's own rules."""
    manager: Any = importlib.import_module("lm_eval.tasks").TaskManager(**options)
    kinds: dict[str, Kind] = {"TASK": "task", "PY_TASK": "class", "GROUP": "group", "TAG": "tag"}
    return {
        name: Entry(
            name,
            kinds[entry.kind.name],
            str(entry.yaml_path or ""),
            tuple(sorted(entry.tags)) if entry.kind.name == "TAG" else (),
        )
        for name, entry in manager.task_index.items()
        if entry.kind.name in kinds
    }


@cache
def _installed_index() -> Mapping[str, Entry]:
    """Return the index of the installed tasks, from the cache folder if it is there."""
    spec = find_spec("lm_eval")
    assert spec is not None
    assert spec.origin is not None
    tasks = Path(spec.origin).parent / "tasks"
    version = lm_eval_version()
    place = hashlib.sha256(str(tasks).encode()).hexdigest()[:8]
    file = _cache_folder() / f"lm-eval-{version}-{place}.json"
    entries = _read_index(file)
    if entries is not None:
        return entries
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            # Another process may have written it in the meantime.
            return _read_index(file) or _write_index(file, _build())
    except OSError:
        return _build()  # a folder that cannot be written costs time, not the run


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "pytest-llmeval"


def _read_index(file: Path) -> dict[str, Entry] | None:
    """Return the entries of a stored index; None if there is none or it is damaged."""
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        return {row[0]: Entry(row[0], row[1], row[2], tuple(row[3])) for row in rows} or None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _write_index(file: Path, entries: dict[str, Entry]) -> dict[str, Entry]:
    rows = [[entry.name, entry.kind, entry.file, entry.members] for entry in entries.values()]
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(rows), encoding="utf-8")
    partial.replace(file)
    return entries
