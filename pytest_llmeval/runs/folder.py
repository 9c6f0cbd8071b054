"""The run folder: its files, how one is made, and how one is found again to be continued."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_llmeval.core import RunError
from pytest_llmeval.plan import Plan

FORMAT = 1

_PACKAGES = (
    "pytest-llmeval",
    "pytest",
    "pytest-xdist",
    "numpy",
    "scipy",
    "torch",
    "transformers",
    "tokenizers",
    "datasets",
)


class RunFolder:
    """Paths and documents of one run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = path / "records.jsonl"

    def read(self, name: str) -> dict[str, Any]:
        """One of the folder's JSON documents. Raises RunError, in one line, if it is damaged."""
        file = self.path / name
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"{self.path} is not a run folder: it has no {name}") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{file} cannot be read: {error}") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise RunError(f"{file}: not a document of format {FORMAT} of this tool")
        return value

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Replace one of the documents in one step: a reader sees the old or the new one."""
        text = json.dumps({"format": FORMAT, **value}, indent=1, allow_nan=False) + "\n"
        temporary = self.path / f".{name}.tmp"
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, self.path / name)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"cannot write {self.path / name}: {reason}") from error


def create_run(root: Path, plan: Plan, manifest: Mapping[str, Any]) -> RunFolder:
    """Make ``root/<time>-<name>/`` with its ``run.json``; the name says model or benchmark."""
    label = plan.models[0] if len(plan.models) == 1 else f"{len(plan.models)}-models"
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(label).name or label).strip("-.")[:40]
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    for attempt in range(1, 1000):
        path = root / (f"{stamp}-{name}" if attempt == 1 else f"{stamp}-{name}-{attempt}")
        with contextlib.suppress(FileExistsError):
            try:
                path.mkdir(parents=True)
            except NotADirectoryError:
                raise RunError(f"--llm-runs {root}: not a folder") from None
            except PermissionError as error:
                raise RunError(f"cannot make {path}: {error.strerror}") from None
            folder = RunFolder(path)
            folder.write("run.json", manifest)
            return folder
    raise RunError(f"cannot make a new run folder in {root}")


def find_resumable(root: Path, plan: Plan) -> RunFolder | str | None:
    """The newest run under ``root`` of the same plan.

    Where there is none: a sentence that says how the newest run differs, or None when the
    folder holds no run at all. Raises RunError when the newest run folder is damaged.
    """
    candidates = sorted(root.glob("*/run.json"), reverse=True) if root.is_dir() else []
    difference: str | None = None
    for file in candidates:
        folder = RunFolder(file.parent)
        manifest = folder.read("run.json")
        if manifest.get("identity") == plan.identity:
            return folder
        if difference is None:
            difference = f"{folder.path.name} differs in " + ", ".join(_differences(manifest, plan))
    return difference


def describe(plan: Plan, command: Sequence[str], **more: Any) -> dict[str, Any]:
    """The ``run.json`` of a run that starts now."""
    return {
        "status": "running",
        "started": datetime.now().astimezone().isoformat(timespec="seconds"),
        "identity": plan.identity,
        "models": list(plan.models),
        "own_model": plan.own_model,
        "results": [asdict(result) for result in plan.results],
        "selected": len(plan.items),
        "command": list(command),
        "versions": {"python": platform.python_version(), **_versions()},
        "platform": platform.platform(),
        "git": _git_commit(),
        **more,
    }


def _differences(manifest: Mapping[str, Any], plan: Plan) -> list[str]:
    found = []
    if manifest.get("models") != list(plan.models):
        found.append("models")
    old = {(r["benchmark"], r["scorer"]): r for r in manifest.get("results", ())}
    new = {(r.benchmark, r.scorer): r for r in plan.results}
    if old.keys() != new.keys():
        found.append("benchmarks or scorers")
    for pair in old.keys() & new.keys():
        if old[pair]["fingerprint"] != new[pair].fingerprint:
            found.append(f"the protocol of {pair[0]}[{pair[1]}]")
        if old[pair]["data_hash"] != new[pair].data_hash:
            found.append(f"the data of {pair[0]}")
    return found or ["the selected items"]


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _git_commit() -> str | None:
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
