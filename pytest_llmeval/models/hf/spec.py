"""What stands behind ``hf:``: a target and its options, checked before anything is loaded.

The local cache of the hub, read without importing huggingface_hub.

Layout (documented by huggingface_hub, "Understand caching"): ``models--ORG--NAME/refs/REVISION``
holds a commit, ``models--ORG--NAME/snapshots/COMMIT/`` its files.
"""

from __future__ import annotations

import importlib.util
import os
import re
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
    """A cached revision: the commit it stands for and the folder with its files."""

    commit: str
    folder: Path


def is_offline() -> bool:
    """Whether the environment forbids the hub to be asked."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(os.environ.get(name, "").upper() in _TRUE for name in names)


def snapshot(name: str, revision: str | None) -> Snapshot | None:
    """The cached snapshot of a hub name at a revision (a branch, a tag or a commit), or None."""
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

KEYS = ("device", "dtype", "revision", "batch_tokens", "date", "name")
DEFAULT_DATE = date(2024, 7, 26)
"""The date for chat templates that write one.

Templates of Llama 3.1 to 3.3 write ``26 Jul 2024`` where they have no clock.
"""
READS_DATE = "strftime_now"
"""The function with which a chat template reads the date."""
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
class Spec:
    """A checked spec. ``target`` is a hub name, or the path of a folder or of a GGUF file.

    ``device`` and ``dtype`` None mean: decided where the weights are loaded. ``dtype`` is a
    torch name such as ``bfloat16``. ``day`` None means ``DEFAULT_DATE``.
    """

    text: str
    kind: Kind
    target: str
    name: str
    device: str | None = None
    dtype: str | None = None
    revision: str | None = None
    batch_tokens: int | None = None
    day: date | None = None


def parse_spec(rest: str, scheme: str = "hf") -> Spec:
    """The spec ``scheme:rest``, with ``rest`` as ``NAME_OR_FOLDER_OR_GGUF[?key=value&…]``.

    Raises ConfigError, in one line, for an unknown or malformed option, a path that does not
    exist, a folder without a model, and a hub name that cannot be fetched.
    """
    text = f"{scheme}:{rest}"
    target, _, query = rest.partition("?")
    options = read_query(text, query, KEYS)
    if not target:
        raise ConfigError(f"{text}: no model named; use {scheme}:NAME, a folder or a .gguf file")
    kind, target = locate(text, target)
    revision = options.get("revision")
    if revision is not None and kind != "hub":
        raise ConfigError(f"{text}: revision is for names on the hub, {target} is a local {kind}")
    if kind == "hub" and is_offline() and snapshot(target, revision) is None:
        raise ConfigError(
            f"{text}: {target} at revision {revision or 'main'} is neither a local folder nor in"
            " the hub cache, and HF_HUB_OFFLINE is set"
        )
    return Spec(
        text=text,
        kind=kind,
        target=target,
        name=options.get("name") or _short_name(kind, target),
        device=_device(text, options.get("device")),
        dtype=_dtype(text, options.get("dtype")),
        revision=revision,
        batch_tokens=_batch_tokens(text, options.get("batch_tokens")),
        day=_day(text, options.get("date")),
    )


def check_installed(text: str, modules: tuple[str, ...]) -> None:
    """Raise ConfigError naming the extra unless all modules can be found (none is imported)."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise ConfigError(f"{text}: {', '.join(missing)} not installed: {install_hint('hf')}")


def locate(text: str, target: str) -> tuple[Kind, str]:
    """The kind of a target and its name or path; ``text`` is the spec in messages.

    Raises ConfigError for a path where no model is, and for what cannot be a name on the hub.
    """
    path = Path(target).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            inside = sorted(file.name for file in path.glob("*.gguf"))
            hint = f"; did you mean {path / inside[0]}?" if inside else ""
            raise ConfigError(f"{text}: folder {path} holds no config.json{hint}")
        return "folder", str(path)
    if path.suffix == ".gguf":
        if path.is_file():
            return "gguf", str(path)
        raise ConfigError(f"{text}: no such file {path}{_sibling(path)}")
    if path.is_file():
        raise ConfigError(f"{text}: {path} is a file, but neither a .gguf file nor a folder")
    sibling = _sibling(path)
    if _looks_like_a_path(target) or (sibling and snapshot(target, None) is None):
        raise ConfigError(f"{text}: no such folder {path}{sibling}")
    if not _HUB_NAME.fullmatch(target):
        raise ConfigError(f"{text}: {target!r} is no folder and cannot be a name on the hub")
    return "hub", target


def _looks_like_a_path(target: str) -> bool:
    return target.startswith((".", "/", "~", os.sep)) or target.count("/") > 1 or "\\" in target


def _sibling(path: Path) -> str:
    """``; did you mean …?`` with the nearest model beside a path that does not exist, or nothing."""
    try:
        beside = [entry.name for entry in path.parent.iterdir() if _is_model(entry)]
    except OSError:
        return ""
    near = nearest(path.name, beside)
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


def _batch_tokens(text: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not value.isdecimal() or int(value) == 0:
        raise ConfigError(f"{text}: batch_tokens {value!r}; a whole number above 0 was expected")
    return int(value)


def _day(text: str, value: str | None) -> date | None:
    if value is None:
        return None
    try:
        found = date.fromisoformat(value)
    except ValueError:
        found = None
    if found is None or found.isoformat() != value:
        raise ConfigError(f"{text}: date {value!r}; write it as YYYY-MM-DD")
    return found
