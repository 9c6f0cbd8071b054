"""The run folder: its files, how one is made, and how one is found again to be continued."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.core.errors import nearest
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.storage import format2
from pytest_llmeval.storage.line_writer import taken
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import latest_records
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.schema import check_document
from pytest_llmeval.storage.usage_log import UsageLog
from pytest_llmeval.storage.usage_log import read_usage
from pytest_llmeval.storage.usage_log import rows_of
from pytest_llmeval.storage.usage_log import with_usage

FORMAT = 3
"""Of the documents and records that are written; those of ``format2`` are read, too."""

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
        self.usage = path / "usage.jsonl"
        self.verdicts = path / "verdicts.jsonl"
        self._claim: int | None = None

    def read(self, name: str) -> dict[str, Any]:
        """One of the folder's JSON documents, with all that reading a run relies on.

        Raises RunError, in one line, if it is missing or damaged.
        """
        file = self.path / name
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            problem = f"{self.path} is not a run folder: it has no {name}"
            raise RunError(f"{problem}{_meant(self.path)}") from None
        except NotADirectoryError:
            raise RunError(f"{self.path} is not a run folder: it is a file") from None
        except OSError as error:
            raise RunError(f"{file} cannot be read: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:
            raise RunError(f"{file} cannot be read: {error}") from None
        if not isinstance(value, dict) or value.get("format") not in (format2.FORMAT, FORMAT):
            known = f"{format2.FORMAT} or {FORMAT}"
            raise RunError(f"{file}: not a document of format {known}, which this version reads")
        check_document(name, value, file)
        return value

    def manifest(self) -> dict[str, Any]:
        """``run.json``, with what a run that was killed or still goes on has used so far.

        Raises RunError, in one line, for what is missing or damaged.
        """
        manifest = self.read("run.json")
        rows = read_usage(self.usage)
        return with_usage(manifest, rows, Prices()) if rows else manifest

    def read_records(self, manifest: Mapping[str, Any]) -> Iterator[Record]:
        """The records in the order written, as of this format. Raises RunError for a damaged one.

        ``manifest``: the folder's ``run.json``.
        """
        return read_records(self.records, _earlier_arms(manifest))

    def latest_records(self, manifest: Mapping[str, Any]) -> list[Record]:
        """Those of ``read_records`` that no later one replaces."""
        return latest_records(self.records, _earlier_arms(manifest))

    def rewrite_records(self, manifest: Mapping[str, Any]) -> None:
        """Replace records of an earlier format by those of this one, in one step.

        Raises RunError, with nothing replaced, where that cannot be done.
        """
        if manifest["format"] == FORMAT or not self.records.exists():
            return
        temporary = self.path / f".{self.records.name}.tmp"
        writer = RecordWriter(temporary)
        try:
            temporary.unlink(missing_ok=True)
            writer.append(*self.read_records(manifest))
            os.replace(temporary, self.records)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"cannot write {self.records}: {reason}") from error
        finally:
            writer.close()

    def claim(self) -> None:
        """Keep other sessions out of this folder until this process ends.

        The operating system's lock of the file ``.lock``, which remains, empty. Raises RunError when
        another session works in the folder, or the lock cannot be taken.
        """
        try:
            self._claim = os.open(self.path / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
            is_mine = taken(self._claim)
        except OSError as error:
            self.release()
            reason = error.strerror or error
            raise RunError(f"cannot lock run {self.path}: {reason}") from None
        if not is_mine:
            self.release()
            raise RunError(f"run {self.path} is in use by another session")

    def release(self) -> None:
        """Let other sessions into this folder again."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def remove(self) -> None:
        """Delete the folder with all that is in it."""
        self.release()
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Replace one of the documents in one step: a reader sees the old or the new one."""
        document = {"format": FORMAT, **{k: v for k, v in value.items() if k != "format"}}
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
        temporary = self.path / f".{name}.tmp"
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, self.path / name)
        except OSError as error:
            reason = error.strerror or error
            raise RunError(f"cannot write {self.path / name}: {reason}") from error


def _earlier_arms(manifest: Mapping[str, Any]) -> dict[str, str] | None:
    """The arms by protocol for the records of a folder of format 2; None of this format."""
    is_earlier = manifest.get("format") == format2.FORMAT
    return format2.arms_by_protocol(manifest) if is_earlier else None


def run_name(path: Path) -> str:
    """A run's path as one would type it from here."""
    here, whole = Path.cwd(), Path.cwd() / path
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def _meant(path: Path) -> str:
    """``; did you mean …?``: the newest run inside, or the one beside it with the nearest name."""
    inside = sorted(path.glob("*/run.json"))
    beside = [*path.parent.glob("*/run.json"), *path.parent.glob("runs/*/run.json")]
    by_name = {file.parent.name: file.parent for file in beside}
    near = nearest(path.name, by_name)
    if inside:
        return f"; did you mean its newest, {str(inside[-1].parent)!r}?"
    return "" if near is None else f"; did you mean {str(by_name[near])!r}?"


def create_run(root: Path, plan: Plan, manifest: Mapping[str, Any]) -> RunFolder:
    """Make ``root/<time>-<name>/`` with its ``run.json``; the name says model or benchmark."""
    label = plan.models[0] if len(plan.models) == 1 else f"{len(plan.models)}-models"
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(label).name or label).strip("-.")[:40]
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    for attempt in range(1, 1000):
        path = root / (f"{stamp}-{name}" if attempt == 1 else f"{stamp}-{name}-{attempt}")
        try:
            _make_root(root)
            path.mkdir()
        except FileExistsError:
            if root.is_dir():
                continue
            raise RunError(f"--llm-runs {root}: not a folder") from None
        except OSError as error:
            raise RunError(f"--llm-runs {root}: {error.strerror or error}") from None
        folder = RunFolder(path)
        folder.write("run.json", manifest)
        return folder
    raise RunError(f"cannot make a new run folder in {root}")


def _make_root(root: Path) -> None:
    """Make the folder of all runs, which git is to ignore; an existing one is left as it is."""
    try:
        root.mkdir(parents=True)
    except FileExistsError:
        return
    (root / ".gitignore").write_text("# Runs are not for git; `llmeval baseline` saves one.\n*\n")


def find_resumable(root: Path, plan: Plan) -> RunFolder | str | None:
    """The newest run under ``root`` of the same plan.

    Where there is none: a sentence that says why not the newest run, or None when the folder
    holds no run at all. A finished run of a model that cannot tell its weights apart
    (``fingerprint`` None) is not continued: the model may have been changed since. Raises
    RunError for a damaged run folder when no other continues.
    """
    # os.path: a name that the file system refuses is told where the folder is made.
    there = os.path.isdir(root)
    candidates = sorted(root.glob("*/run.json"), reverse=True) if there else []
    difference: str | None = None
    damage: RunError | None = None
    for file in candidates:
        folder = RunFolder(file.parent)
        try:
            manifest = folder.read("run.json")
        except RunError as error:
            damage = damage or error
            continue
        same = manifest.get("identity") == plan.identity
        anonymous = manifest.get("status") == "finished" and not manifest.get("model_fingerprints")
        if same and not anonymous:
            return folder
        if difference is None and same:
            difference = f"{folder.path.name} is finished, and its model has no fingerprint"
        elif difference is None:
            difference = f"{folder.path.name} differs in " + ", ".join(_differences(manifest, plan))
    if damage is not None:
        raise damage
    return difference


def take_up(folder: RunFolder) -> None:
    """Claim a run that is to be continued, and have it told by its records alone until it ends.

    A folder of an earlier format becomes one of this format. Raises RunError, with nothing
    replaced, where another session works in it or its records are damaged.
    """
    for _ in folder.read_records(folder.read("run.json")):
        pass
    folder.claim()
    manifest = folder.manifest()
    folder.rewrite_records(manifest)
    if manifest.get("status") == "running":  # killed: nothing has summed up its last session
        manifest["seconds"] = manifest.get("seconds", 0.0) + _seconds_of_last_session(
            folder, manifest
        )
    if not folder.usage.exists():  # of an earlier version, or merged
        log = UsageLog(folder.usage)
        log.note((*about, counts) for about, counts in rows_of(manifest).items())
        log.close()
    manifest["status"] = "running"
    manifest.setdefault("resumed", []).append(now())
    for ended in ("baseline", "answers"):
        manifest.pop(ended, None)
    # They are about the answers that there were.
    for document in ("metrics.json", "gates.json", "comparison.json"):
        (folder.path / document).unlink(missing_ok=True)
    folder.write("run.json", manifest)


def _seconds_of_last_session(folder: RunFolder, manifest: Mapping[str, Any]) -> float:
    """From the beginning of a session that never ended to the last record that it wrote."""
    began = [manifest.get("started", ""), *manifest.get("resumed", ())][-1]
    try:
        return max(0.0, folder.records.stat().st_mtime - datetime.fromisoformat(began).timestamp())
    except (OSError, ValueError, TypeError):
        return 0.0


def now() -> str:
    """The time as ``run.json`` has it: to the second, with the zone."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def describe(plan: Plan, command: Sequence[str], **more: Any) -> dict[str, Any]:
    """The ``run.json`` of a run that starts now."""
    return {
        "status": "running",
        "started": now(),
        "identity": plan.identity,
        "seed": plan.seed,
        "shard": plan.shard,
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
    if manifest.get("seed") != plan.seed:
        found.append("the seed")
    if manifest.get("shard") != (plan.shard and list(plan.shard)):
        found.append("the shard")
    earlier = map(PlannedResult.from_json, manifest.get("results", ()))
    old = {(r.benchmark, r.scorer): r for r in earlier}
    new = {(r.benchmark, r.scorer): r for r in plan.results}
    if old.keys() != new.keys():
        found.append("benchmarks or scorers")
    for pair in old.keys() & new.keys():
        if old[pair].ways[0].fingerprint != new[pair].ways[0].fingerprint:
            found.append(f"the protocol of {pair[0]}[{pair[1]}]")
        if old[pair].data_hash != new[pair].data_hash:
            found.append(f"the data of {pair[0]}")
    return found or ["the selected items"]


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _git_commit() -> str | None:
    """The commit of the working folder; None outside of a repository and before its first commit."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
