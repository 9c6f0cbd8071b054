"""Stored runs that a session continues: the same plan, or the same with more samples per item."""

from __future__ import annotations

import os
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import now
from pytest_llmeval.storage.folder import run_name
from pytest_llmeval.storage.usage_log import UsageLog
from pytest_llmeval.storage.usage_log import usage_rows


@dataclass(frozen=True)
class ResumableRun:
    """A run that has the plan of the session, or the same plan with fewer samples per item."""

    folder: RunFolder
    #: Samples per item that the run has, if the plan has more of some protocol.
    earlier_samples: int | None = None
    #: Fingerprint of a protocol of the run → that of the plan, where they differ in the samples.
    protocols: Mapping[str, str] = field(default_factory=dict)


def find_resumable(root: Path, plan: Plan) -> ResumableRun | str | None:
    """Return the newest run under ``root`` that has the same plan, else one with fewer samples.

    If there is none, return why the newest run is not resumed, or None if the folder holds no run.
    A finished run of a model without a fingerprint is not resumed: its weights may have changed.
    Raises ConfigError if the newest run differs only in that it has more samples per item, and
    RunError for a damaged run folder if no other can be resumed.
    """
    # os.path: a name that the file system refuses is reported by `create_run`.
    exists = os.path.isdir(root)
    candidates = sorted(root.glob("*/run.json"), reverse=True) if exists else []
    smaller: ResumableRun | None = None
    difference: str | ConfigError | None = None
    damage: RunError | None = None
    for file in candidates:
        folder = RunFolder(file.parent)
        try:
            manifest = folder.read("run.json")
        except RunError as error:
            damage = damage or error
            continue
        name = folder.path.name
        if "imported" in manifest:
            origin = manifest["imported"]["harness"]
            difference = difference or f"{name} was imported from {origin}"
            continue
        anonymous = manifest.get("status") == "finished" and not manifest.get("model_fingerprints")
        if manifest.get("identity") == plan.identity:
            if not anonymous:
                return ResumableRun(folder)
            difference = difference or f"{name} is finished, and its model has no fingerprint"
            continue
        try:
            growth = _growth(folder, manifest, plan)
        except ConfigError as error:
            difference = difference or error
            continue
        if growth is None:
            difference = (
                difference or f"{name} differs in {', '.join(_differences(manifest, plan))}"
            )
        elif anonymous:
            difference = difference or f"{name} is finished, and its model has no fingerprint"
        else:
            smaller = smaller or growth
    if smaller is not None:
        return smaller
    if damage is not None:
        raise damage
    if isinstance(difference, ConfigError):
        raise difference
    return difference


def _growth(folder: RunFolder, manifest: Mapping[str, Any], plan: Plan) -> ResumableRun | None:
    """Return a run whose plan has fewer samples per item and is the same otherwise, else None.

    Raises ConfigError for a run that has more samples of a protocol.
    """
    if manifest.get("sequential") is not None:
        return None  # the order of its items depends on the protocol
    earlier = list(map(PlannedResult.from_json, manifest.get("results", ())))
    if len(earlier) != len(plan.results):
        return None
    pairs = [
        (old, new)
        for stored, planned in zip(earlier, plan.results, strict=True)
        for old, new in zip(stored.variants, planned.variants, strict=False)
    ]
    if any(_without_samples(old) != _without_samples(new) for old, new in pairs):
        return None
    results = tuple(
        replace(planned, variants=stored.variants)
        for stored, planned in zip(earlier, plan.results, strict=True)
    )
    if replace(plan, results=results).identity != manifest.get("identity"):
        return None
    more = [old.samples for old, new in pairs if old.samples > new.samples]
    if more:
        raise ConfigError(
            f"--llm-resume: run {run_name(folder.path)} has {max(more)} samples per item, more than"
            f" this session: give --llm-samples {max(more)}, or leave out --llm-resume"
        )
    fewer = [old.samples for old, new in pairs if old.samples < new.samples]
    protocols = {old.fingerprint: new.fingerprint for old, new in pairs}
    return ResumableRun(folder, min(fewer, default=None), protocols)


def _without_samples(variant: ProtocolVariant) -> dict[str, Any]:
    return {key: value for key, value in variant.protocol.items() if key != "samples"}


def reopen(run: ResumableRun, plan: Plan) -> None:
    """Lock a run that is to be resumed and remove the documents that its new session writes.

    A folder of an earlier format is converted to the current one, and the records of a run with
    fewer samples to the protocols of the plan: a sample is the same request, however many there
    are. Raises RunError, with nothing replaced, if another session works in it or its records are
    damaged.
    """
    folder = run.folder
    for _ in folder.read_records(folder.read("run.json")):
        pass
    folder.claim()
    manifest = folder.manifest()
    folder.rewrite_records(manifest, _with_arms(run.protocols, plan.results))
    if run.protocols:
        manifest["results"] = [result.as_json() for result in plan.results]
        manifest["identity"] = plan.identity
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
    for field_name in ("baseline", "answers"):
        manifest.pop(field_name, None)
    # These documents describe the earlier answers only.
    for document in ("metrics.json", "gates.json", "comparison.json", "overlap.json"):
        (folder.path / document).unlink(missing_ok=True)
    folder.write("run.json", manifest)


def _with_arms(protocols: Mapping[str, str], results: Sequence[PlannedResult]) -> Mapping[str, str]:
    """Add the fingerprints of protocols in the arms of a bias audit."""
    arms = {arm for result in results for arm in result.arms}
    in_arms = {
        arm_fingerprint(old, arm): arm_fingerprint(new, arm)
        for old, new in protocols.items()
        for arm in arms
    }
    return {**protocols, **in_arms}


def _seconds_of_last_session(folder: RunFolder, manifest: Mapping[str, Any]) -> float:
    """Return the seconds from the start of a killed session to its last record."""
    began = [manifest.get("started", ""), *manifest.get("resumed", ())][-1]
    try:
        return max(0.0, folder.records.stat().st_mtime - datetime.fromisoformat(began).timestamp())
    except (OSError, ValueError, TypeError):
        return 0.0


def _differences(manifest: Mapping[str, Any], plan: Plan) -> list[str]:
    return list(_differing(manifest, plan)) or ["the selected items"]


def _differing(manifest: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    """Yield the parts of the plan in which a run differs."""
    if manifest.get("models") != list(plan.models):
        yield "models"
    if manifest.get("seed") != plan.seed:
        yield "the seed"
    if manifest.get("shard") != (plan.shard and list(plan.shard)):
        yield "the shard"
    earlier = map(PlannedResult.from_json, manifest.get("results", ()))
    old = {(r.benchmark, r.scorer): r for r in earlier}
    new = {(r.benchmark, r.scorer): r for r in plan.results}
    if old.keys() != new.keys():
        yield "benchmarks or scorers"
    for pair in old.keys() & new.keys():
        if old[pair].variants[0].fingerprint != new[pair].variants[0].fingerprint:
            yield f"the protocol of {pair[0]}[{pair[1]}]"
        if old[pair].data_hash != new[pair].data_hash:
            yield f"the data of {pair[0]}"
