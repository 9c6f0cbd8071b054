"""The local cache of the hub, read without importing huggingface_hub.

Layout (documented by huggingface_hub, "Understand caching"): ``models--ORG--NAME/refs/REVISION``
holds a commit, ``models--ORG--NAME/snapshots/COMMIT/`` its files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

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
