"""The run folder: its documents and lock, and creating and resuming one."""

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
from pytest_llmeval.storage.line_writer import try_lock
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import latest_records
from pytest_llmeval.storage.records import read_records
from pytest_llmeval.storage.schema import check_document
from pytest_llmeval.storage.usage_log import UsageLog
from pytest_llmeval.storage.usage_log import read_usage
from pytest_llmeval.storage.usage_log import usage_rows
from pytest_llmeval.storage.usage_log import with_usage

FORMAT = 3
"""Format version that is written; folders of ``format2`` are read as well."""

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
    """Paths, documents and lock of one run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = path / "records.jsonl"
        self.usage = path / "usage.jsonl"
        self.verdicts = path / "verdicts.jsonl"
        self._claim: int | None = None

    def read(self, name: str) -> dict[str, Any]:
        """Return one of the folder's JSON documents, checked against ``schema``.

        Raises RunError, in one line, if it is missing or damaged.
        """
        file = self.path / name
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            problem = f"{self.path} is not a run folder: it has no {name}"
            raise RunError(f"{problem}{_suggest_run(self.path)}") from None
        except NotADirectoryError:
            raise RunError(f"{self.path} is not a run folder: it is a file") from None
        except OSError as error:
            raise RunError(f"{file} cannot be read: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:
            raise RunError(f"{file} cannot be read: {error}") from None
        if not isinstance(value, dict) or value.get("format") not in (format2.FORMAT, FORMAT):
            formats = f"{format2.FORMAT} or {FORMAT}"
            raise RunError(f"{file}: not a document of format {formats}, which this version reads")
        check_document(name, value, file)
        return value

    def manifest(self) -> dict[str, Any]:
        """Return ``run.json`` with the usage so far, also of a run that was killed or is still running.

        Raises RunError, in one line, for a missing or damaged file.
        """
        manifest = self.read("run.json")
        rows = read_usage(self.usage)
        return with_usage(manifest, rows, Prices()) if rows else manifest

    def read_records(self, manifest: Mapping[str, Any]) -> Iterator[Record]:
        """Yield the records in the order written, converted to the current format.

        ``manifest``: the folder's ``run.json``. Raises RunError for a damaged record.
        """
        return read_records(self.records, _earlier_arms(manifest))

    def latest_records(self, manifest: Mapping[str, Any]) -> list[Record]:
        """Return the records of ``read_records`` that no later record replaces."""
        return latest_records(self.records, _earlier_arms(manifest))

    def rewrite_records(self, manifest: Mapping[str, Any]) -> None:
        """Convert the records of an earlier format to the current one, atomically.

        Raises RunError, with nothing replaced, if they cannot be written.
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
        """Lock the folder against other sessions until this process ends.

        Holds the operating system's lock of the empty file ``.lock``, which is never removed. Raises
        RunError if another session holds it or the file system has no locks.
        """
        try:
            self._claim = os.open(self.path / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
            is_mine = try_lock(self._claim)
        except OSError as error:
            self.release()
            reason = error.strerror or error
            raise RunError(f"cannot lock run {self.path}: {reason}") from None
        if not is_mine:
            self.release()
            raise RunError(f"run {self.path} is in use by another session")

    def release(self) -> None:
        """Release the lock."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def remove(self) -> None:
        """Delete the folder and its content."""
        self.release()
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Replace a document atomically: readers see the old or the new one.

        Raises RunError if it cannot be written.
        """
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
    """Return ``format2.arms_by_protocol`` for a folder of format 2; None for the current format."""
    is_earlier = manifest.get("format") == format2.FORMAT
    return format2.arms_by_protocol(manifest) if is_earlier else None


def run_name(path: Path) -> str:
    """Return a run's path, relative to the working directory if it is inside."""
    working, absolute = Path.cwd(), Path.cwd() / path
    return str(absolute.relative_to(working) if absolute.is_relative_to(working) else absolute)


def _suggest_run(path: Path) -> str:
    """Return ``; did you mean …?`` with the newest run inside, or the sibling of the nearest name."""
    inside = sorted(path.glob("*/run.json"))
    siblings = [*path.parent.glob("*/run.json"), *path.parent.glob("runs/*/run.json")]
    by_name = {file.parent.name: file.parent for file in siblings}
    near = nearest(path.name, by_name)
    if inside:
        return f"; did you mean its newest, {str(inside[-1].parent)!r}?"
    return "" if near is None else f"; did you mean {str(by_name[near])!r}?"


def create_run(root: Path, plan: Plan, manifest: Mapping[str, Any]) -> RunFolder:
    """Create ``root/<time>-<model>/`` with its ``run.json``.

    Raises RunError if it cannot be created.
    """
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
    """Create the folder of all runs with a ``.gitignore``; do not change an existing one."""
    try:
        root.mkdir(parents=True)
    except FileExistsError:
        return
    (root / ".gitignore").write_text("# Runs are not for git; `llmeval baseline` saves one.\n*\n")


def find_resumable(root: Path, plan: Plan) -> RunFolder | str | None:
    """Return the newest run under ``root`` that has the same plan.

    If there is none, return why the newest run is not resumed, or None if the folder holds no run.
    A finished run of a model without a fingerprint is not resumed: its weights may have changed.
    Raises RunError for a damaged run folder if no other can be resumed.
    """
    # os.path: a name that the file system refuses is reported by `create_run`.
    exists = os.path.isdir(root)
    candidates = sorted(root.glob("*/run.json"), reverse=True) if exists else []
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


def reopen(folder: RunFolder) -> None:
    """Lock a run that is to be resumed and remove the documents that its new session writes.

    A folder of an earlier format is converted to the current one. Raises RunError, with nothing
    replaced, if another session works in it or its records are damaged.
    """
    for _ in folder.read_records(folder.read("run.json")):
        pass
    folder.claim()
    manifest = folder.manifest()
    folder.rewrite_records(manifest)
    if (
        manifest.get("status") == "running"
    ):  # killed: the time of its last session is not counted yet
        manifest["seconds"] = manifest.get("seconds", 0.0) + _seconds_of_last_session(
            folder, manifest
        )
    if not folder.usage.exists():  # written by an earlier version, or merged
        log = UsageLog(folder.usage)
        log.note((*key, counts) for key, counts in usage_rows(manifest).items())
        log.close()
    manifest["status"] = "running"
    manifest.setdefault("resumed", []).append(now())
    for field in ("baseline", "answers"):
        manifest.pop(field, None)
    # These documents describe the earlier answers only.
    for document in ("metrics.json", "gates.json", "comparison.json", "overlap.json"):
        (folder.path / document).unlink(missing_ok=True)
    folder.write("run.json", manifest)


def _seconds_of_last_session(folder: RunFolder, manifest: Mapping[str, Any]) -> float:
    """Return the seconds from the start of a killed session to its last record."""
    began = [manifest.get("started", ""), *manifest.get("resumed", ())][-1]
    try:
        return max(0.0, folder.records.stat().st_mtime - datetime.fromisoformat(began).timestamp())
    except (OSError, ValueError, TypeError):
        return 0.0


def now() -> str:
    """Return the local time in ISO 8601 format, to the second, with the time zone."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def new_manifest(plan: Plan, command: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return the ``run.json`` of a run that starts now; ``more``: further fields."""
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
    differences = []
    if manifest.get("models") != list(plan.models):
        differences.append("models")
    if manifest.get("seed") != plan.seed:
        differences.append("the seed")
    if manifest.get("shard") != (plan.shard and list(plan.shard)):
        differences.append("the shard")
    earlier = map(PlannedResult.from_json, manifest.get("results", ()))
    old = {(r.benchmark, r.scorer): r for r in earlier}
    new = {(r.benchmark, r.scorer): r for r in plan.results}
    if old.keys() != new.keys():
        differences.append("benchmarks or scorers")
    for pair in old.keys() & new.keys():
        if old[pair].ways[0].fingerprint != new[pair].ways[0].fingerprint:
            differences.append(f"the protocol of {pair[0]}[{pair[1]}]")
        if old[pair].data_hash != new[pair].data_hash:
            differences.append(f"the data of {pair[0]}")
    return differences or ["the selected items"]


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _git_commit() -> str | None:
    """Return the commit of the working directory; None outside a repository or before a commit."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() or None if result.returncode == 0 else None
