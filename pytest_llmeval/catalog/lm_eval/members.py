"""Tasks of a group or a tag of lm-eval, with the settings that the group gives them.

The rules are those of lm-eval 0.4.13 (``tasks/_factory.py``), without running code of a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sources.lm_eval_index import Config
from pytest_llmeval.sources.lm_eval_index import Entry
from pytest_llmeval.sources.lm_eval_index import find_entry
from pytest_llmeval.sources.lm_eval_index import optional_entry
from pytest_llmeval.sources.lm_eval_index import read_config

_GROUP_KEYS = {"group", "group_alias", "task", "aggregate_metric_list", "metadata"}

_DEEPEST = 20
"""Groups within groups, before a cycle is assumed."""


@dataclass(frozen=True)
class Members:
    """The tasks of a benchmark in lm-eval's order."""

    name: str
    #: What lm-eval loads: the name, or the path of a YAML file.
    loaded_name: str
    #: Task → its configuration, with the settings of the group.
    configs: Mapping[str, Config]
    #: Folders of the YAML files.
    folders: tuple[str, ...]
    #: The group's rules for averages over its tasks.
    aggregation: Any = None


def members_of(entry: Entry, include_path: str | None = None) -> Members:
    """Return the tasks of an entry; of a task, itself. Raises ConfigError for a broken group."""
    leaves = list(_leaves(entry, {}, include_path, 0))
    configs: dict[str, Config] = {}
    for name, config, _ in leaves:
        if name in configs:
            raise ConfigError(f"lm-eval group {entry.name!r} has the task {name!r} twice")
        configs[name] = config
    if not configs:
        raise ConfigError(f"lm-eval group {entry.name!r} has no tasks")
    files = [entry.file, *(file for _, _, file in leaves)]
    folders = tuple(dict.fromkeys(str(Path(file).parent) for file in files if file))
    top = read_config(entry) if entry.kind == "group" else {}
    return Members(entry.name, entry.name, configs, folders, top.get("aggregate_metric_list"))


_Leaf = tuple[str, Config, str]
"""Task, configuration, YAML file."""


def _leaves(
    entry: Entry, overrides: Config, include_path: str | None, depth: int
) -> Iterator[_Leaf]:
    if depth > _DEEPEST:
        raise ConfigError(f"lm-eval group {entry.name!r} contains itself")
    if entry.kind == "tag":
        for member in entry.members:
            yield from _leaves(find_entry(member, include_path), overrides, include_path, depth + 1)
    elif entry.kind == "group":
        yield from _group(entry.name, entry, read_config(entry), overrides, include_path, depth)
    else:
        yield entry.name, {**read_config(entry), **overrides, "task": entry.name}, entry.file


def _group(
    name: str,
    entry: Entry,
    config: Config,
    overrides: Config,
    include_path: str | None,
    depth: int,
) -> Iterator[_Leaf]:
    settings = {key: value for key, value in config.items() if key not in _GROUP_KEYS}
    settings |= {key: value for key, value in overrides.items() if key != "task"}
    listed = config.get("task") or []
    for member in [listed] if isinstance(listed, str) else listed:
        fields = {"task": member} if isinstance(member, str) else dict(member)
        inner = fields.pop("group", None)
        if inner is not None:
            inner_entry = optional_entry(inner, include_path)
            if inner_entry is not None:
                more = {**settings, **fields}
                yield from _leaves(inner_entry, more, include_path, depth + 1)
            else:
                yield from _group(
                    f"{name}::{inner}", entry, fields, settings, include_path, depth + 1
                )
            continue
        task = fields.pop("task", None)
        if not isinstance(task, str):
            raise ConfigError(f"{entry.file}: a member of group {name!r} has no name")
        member_entry = optional_entry(task, include_path)
        more = {**settings, **fields}
        if member_entry is None:
            if isinstance(member, str):
                find_entry(task, include_path)  # raises, with the nearest name
            yield f"{name}::{task}", {**more, "task": f"{name}::{task}"}, entry.file
        else:
            yield from _leaves(member_entry, more, include_path, depth + 1)
