"""Specs of ``hf:`` models, validated before anything is loaded, and the local cache of the hub."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal
from typing import NamedTuple

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import nearest
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.models.base import read_query

_COMMIT = re.compile(r"[0-9a-f]{40}")
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})


class Snapshot(NamedTuple):
    """Cached revision: its commit and the folder with its files."""

    commit: str
    folder: Path


def is_offline() -> bool:
    """Return True if the environment forbids requests to the hub."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in _TRUE for name in names)


def find_snapshot(name: str, revision: str | None) -> Snapshot | None:
    """Return the cached snapshot of a hub name at a branch, tag or commit, or None.

    Reads the cache without importing huggingface_hub. Layout (huggingface_hub, "Understand
    caching"): ``models--ORG--NAME/refs/REVISION`` contains a commit, and
    ``models--ORG--NAME/snapshots/COMMIT/`` its files.
    """
    folder = _cache() / f"models--{name.replace('/', '--')}"
    revision = revision or "main"
    if _COMMIT.fullmatch(revision):
        commit = revision
    else:
        try:
            commit = (folder / "refs" / revision).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
    files = folder / "snapshots" / commit
    return Snapshot(commit, files) if (files / "config.json").exists() else None


def _cache() -> Path:
    for variable, below in (
        ("HF_HUB_CACHE", ""),
        ("HUGGINGFACE_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
    ):
        if value := os.environ.get(variable):
            return Path(value).expanduser() / below
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "huggingface" / "hub"


Kind = Literal["hub", "folder", "gguf"]

KEYS = ("device", "devices", "dtype", "revision", "batch_tokens", "date", "name")
DEFAULT_DATE = date(2024, 7, 26)
"""Default date for chat templates that print the current date.

Templates of Llama 3.1 to 3.3 print ``26 Jul 2024`` if they have no clock.
"""
DATE_FUNCTION = "strftime_now"
"""Function of chat templates that returns the date."""
DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
}
_DEVICE = re.compile(r"cpu|mps|cuda(:\d+)?")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class HfSpec:
    """Validated spec of an ``hf:`` model."""

    #: The spec as messages show it.
    text: str
    kind: Kind
    #: Hub name, or path of a folder or of a GGUF file.
    target: str
    name: str
    #: None: chosen when the weights are loaded.
    device: str | None = None
    #: Number of GPUs over which the layers are distributed.
    devices: int = 1
    #: Name in torch, such as ``bfloat16``. None: chosen when the weights are loaded.
    dtype: str | None = None
    revision: str | None = None
    batch_tokens: int | None = None
    #: None: ``DEFAULT_DATE``.
    day: date | None = None


def parse_spec(rest: str, scheme: str = "hf") -> HfSpec:
    """Parse the spec ``scheme:rest``, with ``rest`` as ``NAME_OR_FOLDER_OR_GGUF[?key=value&…]``.

    Raises ConfigError, in one line, for an unknown or malformed option, a path that does not
    exist, a folder without a model, and a hub name that is not cached while offline.
    """
    text = f"{scheme}:{rest}"
    target, _, query = rest.partition("?")
    options = read_query(text, query, KEYS)
    if not target:
        raise ConfigError(f"{text}: no model named; use {scheme}:NAME, a folder or a .gguf file")
    kind, target = locate(text, target)
    revision = options.get("revision")
    device = _device(text, options.get("device"))
    devices = _count(text, "devices", options.get("devices")) or 1
    if devices > 1 and device not in (None, "cuda"):
        raise ConfigError(f"{text}: devices={devices} is for GPUs: leave out device={device}")
    if revision is not None and kind != "hub":
        raise ConfigError(f"{text}: revision is for names on the hub, {target} is a local {kind}")
    if kind == "hub" and is_offline() and find_snapshot(target, revision) is None:
        raise ConfigError(
            f"{text}: {target} at revision {revision or 'main'} is neither a local folder nor in"
            " the hub cache, and HF_HUB_OFFLINE is set"
        )
    return HfSpec(
        text=text,
        kind=kind,
        target=target,
        name=options.get("name") or _short_name(kind, target),
        device=device,
        devices=devices,
        dtype=_dtype(text, options.get("dtype")),
        revision=revision,
        batch_tokens=_count(text, "batch_tokens", options.get("batch_tokens")),
        day=_day(text, options.get("date")),
    )


def check_installed(text: str, modules: Sequence[str]) -> None:
    """Raise ConfigError with the extra to install unless all modules exist; imports none."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise ConfigError(f"{text}: {', '.join(missing)} not installed: {install_hint('hf')}")


def locate(text: str, target: str) -> tuple[Kind, str]:
    """Return the kind of a target, and its hub name or path; ``text`` is the spec in messages.

    Raises ConfigError for a path without a model, and for an invalid hub name.
    """
    path = Path(target).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            inside = sorted(file.name for file in path.glob("*.gguf"))
            hint = f"; did you mean {path / inside[0]}?" if inside else ""
            raise ConfigError(f"{text}: folder {path} contains no config.json{hint}")
        return "folder", str(path)
    if path.suffix == ".gguf":
        if path.is_file():
            return "gguf", str(path)
        raise ConfigError(f"{text}: no such file {path}{_sibling(path)}")
    if path.is_file():
        raise ConfigError(f"{text}: {path} is a file, but neither a .gguf file nor a folder")
    sibling = _sibling(path)
    if _looks_like_a_path(target) or (sibling and find_snapshot(target, None) is None):
        raise ConfigError(f"{text}: no such folder {path}{sibling}")
    if not _HUB_NAME.fullmatch(target):
        raise ConfigError(f"{text}: {target!r} is neither a folder nor a valid name on the hub")
    return "hub", target


def _looks_like_a_path(target: str) -> bool:
    return target.startswith((".", "/", "~", os.sep)) or target.count("/") > 1 or "\\" in target


def _sibling(path: Path) -> str:
    """Return ``; did you mean …?`` with the most similar model next to a missing path, or ""."""
    try:
        siblings = [entry.name for entry in path.parent.iterdir() if _is_model(entry)]
    except OSError:
        return ""
    near = nearest(path.name, siblings)
    return f"; did you mean {path.parent / near}?" if near else ""


def _is_model(entry: Path) -> bool:
    return entry.suffix == ".gguf" or (entry / "config.json").is_file()


def _short_name(kind: Kind, target: str) -> str:
    path = Path(target)
    base = target if kind == "hub" else str(path.resolve())
    name = Path(base).stem if kind == "gguf" else base.rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")[:60] or "model"


def _device(text: str, value: str | None) -> str | None:
    if value is not None and not _DEVICE.fullmatch(value):
        raise ConfigError(f"{text}: device {value!r}; use cpu, cuda, cuda:N or mps")
    return value


def _dtype(text: str, value: str | None) -> str | None:
    if value is None:
        return None
    if value not in DTYPES:
        raise ConfigError(f"{text}: dtype {value!r}{suggestion(value, DTYPES)}")
    return DTYPES[value]


def _count(text: str, key: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal()) or int(value) == 0:
        raise ConfigError(f"{text}: {key} {value!r}; use a whole number above 0")
    return int(value)


def _day(text: str, value: str | None) -> date | None:
    if value is None:
        return None
    try:
        day = date.fromisoformat(value)
    except ValueError:
        day = None
    if day is None or day.isoformat() != value:
        raise ConfigError(f"{text}: date {value!r}; write it as YYYY-MM-DD")
    return day
