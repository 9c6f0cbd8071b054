"""Merging of the shards of one run (``--llm-shard i/n``) into a complete run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.runs.comparison import MismatchError
from pytest_llmeval.runs.comparison import describe_differences
from pytest_llmeval.runs.comparison import differing_fields
from pytest_llmeval.runs.measurement import count_answers
from pytest_llmeval.runs.run import Run
from pytest_llmeval.storage.folder import RunFolder
from pytest_llmeval.storage.folder import run_name
from pytest_llmeval.storage.prompts import merge_prompts
from pytest_llmeval.storage.records import RecordWriter
from pytest_llmeval.storage.records import key
from pytest_llmeval.storage.usage_log import merged_usage

# Provenance of a shard in run.json, stored with its name.
_PROVENANCE = ("started", "finished", "resumed", "command", "versions", "platform", "git")


def merge(runs: Sequence[Run], out: Path) -> RunFolder:
    """Merge all shards of one run into the new run folder ``out``.

    Its ``metrics.json`` is, byte for byte, that of the run without shards, except for measured time.
    Raises ConfigError, in one line, for runs that are not shards of one run, for missing, repeated,
    unfinished or overlapping shards, and if ``out`` exists; MismatchError, naming the fields with
    both values, if shards differ in models, protocols, data or sampled items.
    """
    if out.exists():
        raise ConfigError(f"{out} exists already")
    shards = _ordered_shards(runs)
    _check_same(shards)
    _check_complete(shards)
    _check_disjoint(shards)
    merged = Run(out, _manifest(shards), tuple(record for run in shards for record in run.records))
    hidden = RunFolder(out.parent / f".{out.name}.tmp")
    # Renamed when it is complete, so that an interrupted merge leaves no run behind.
    try:
        shutil.rmtree(hidden.path, ignore_errors=True)
        hidden.path.mkdir(parents=True)
        writer = RecordWriter(hidden.records)
        for run in shards:
            writer.append(*run.records)
        writer.close()
        merge_prompts((run.path for run in shards), hidden.path)
        hidden.write("metrics.json", merged.metrics())
        hidden.write("run.json", merged.manifest)
        hidden.path.rename(out)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(hidden.path, ignore_errors=True)
    return RunFolder(out)


def _ordered_shards(runs: Sequence[Run]) -> list[Run]:
    """Return the runs as shards 1 to n, after checking that each is given exactly once."""
    shards: dict[int, Run] = {}
    parts: int | None = None
    for run in runs:
        shard = run.manifest.get("shard")
        if shard is None:
            raise ConfigError(f"{run_name(run.path)} is not a shard (--llm-shard I/N)")
        try:
            number, of = (int(value) for value in shard)
        except (TypeError, ValueError):
            raise RunError(f"{run.path / 'run.json'}: shard {shard!r} is not [I, N]") from None
        parts = parts or of
        if of != parts:
            first = next(iter(shards.values()))
            raise ConfigError(
                f"{run_name(first.path)} is one of {parts} shards, {run_name(run.path)} one of {of}"
            )
        if number in shards:
            raise ConfigError(
                f"{run_name(shards[number].path)} and {run_name(run.path)} are both"
                f" shard {number}/{of}"
            )
        shards[number] = run
    if parts is None:
        raise ConfigError("no shards to merge")
    missing = [f"{number}/{parts}" for number in range(1, parts + 1) if number not in shards]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        plural = "s" if len(missing) > 1 else ""
        raise ConfigError(f"gap: shard{plural} {', '.join(missing)} {verb} missing")
    return [shards[number] for number in sorted(shards)]


def _check_same(shards: Sequence[Run]) -> None:
    """Check that all shards have the same models, protocols, data and sampled items."""
    first, *others = shards
    for run in others:
        differences = differing_fields(_shared_fields(first), _shared_fields(run))
        differences += _fingerprint_differences(first, run)
        if differences:
            raise MismatchError(
                f"{run_name(first.path)} and {run_name(run.path)} are not shards of one run:"
                f" {describe_differences(differences)}"
            )


def _shared_fields(run: Run) -> dict[str, Any]:
    """Return the fields that all shards of one run share."""
    manifest = run.manifest
    shared = {name: manifest.get(name) for name in ("models", "own_model", "seed", "limit")}
    for result in manifest["results"]:
        first = result["ways"][0]
        shared[f"{result['benchmark']}[{first['protocol']['scorer']}]"] = {
            **first["protocol"],
            "fingerprints": [variant["fingerprint"] for variant in result["ways"]],
            "data": result["data_hash"],
            "drawn": result["drawn"],
            "subjects": result["subjects"],
            "orders": result["arms"],
            "contamination": {
                test: document.get("fingerprint")
                for test, document in result.get("contamination", {}).items()
            },
        }
    return shared


def _fingerprint_differences(first: Run, other: Run) -> list[tuple[str, Any, Any]]:
    """Return the models with different fingerprints, except those without answers in a shard."""
    mine, theirs = _fingerprints(first), _fingerprints(other)
    if first.manifest.get("own_model") and mine and theirs and mine.keys() != theirs.keys():
        return [("model", sorted(mine), sorted(theirs))]
    return [
        (f"fingerprint of {model}", sorted(mine[model]), sorted(theirs[model]))
        for model in mine
        if model in theirs and mine[model] != theirs[model]
    ]


def _fingerprints(run: Run) -> dict[str, set[str]]:
    fingerprints: dict[str, set[str]] = {}
    for record in run.records:
        if record.error is None:
            names = fingerprints.setdefault(record.model, set())
            names.add(record.model_fingerprint or "(none)")
    return fingerprints


def _check_complete(shards: Sequence[Run]) -> None:
    """Check that every shard is finished and ran all items of its part."""
    for run in shards:
        manifest = run.manifest
        if manifest.get("status") != "finished":
            raise ConfigError(
                f"{run_name(run.path)} was not finished: resume it first (--llm-resume)"
            )
        part = sum(result.asked for result in run.planned if result.responses_of is None)
        part *= len(manifest["models"])
        selected = manifest.get("selected", 0)
        if selected != part:
            raise ConfigError(
                f"gap: {run_name(run.path)} left out {part - selected:,} of the {part:,} items of"
                " its shard (-k, -m or a node id)"
            )


def _check_disjoint(shards: Sequence[Run]) -> None:
    """Check that no item is in two shards."""
    seen: dict[tuple[Any, ...], Run] = {}
    for run in shards:
        for record in run.records:
            other = seen.setdefault(key(replace(record, sample=0, arm="")), run)
            if other is not run:
                raise ConfigError(
                    f"item {record.item} of {record.benchmark} is in {run_name(other.path)} and in"
                    f" {run_name(run.path)}"
                )


def _manifest(shards: Sequence[Run]) -> dict[str, Any]:
    manifests = [run.manifest for run in shards]
    # "format" is written by `RunFolder`; a merged run is never resumed, so it needs no plan identity.
    left_out = {"format", "identity", "usage", "prices", *_PROVENANCE}
    manifest = {name: value for name, value in manifests[0].items() if name not in left_out}
    fingerprints: dict[str, str] = {}
    for shard in manifests:
        fingerprints.update(shard.get("model_fingerprints") or {})
    results = [
        {**result, "asked": sum(shard["results"][number]["asked"] for shard in manifests)}
        for number, result in enumerate(manifests[0]["results"])
    ]
    if seconds := [shard["seconds"] for shard in manifests if "seconds" in shard]:
        manifest["seconds"] = sum(seconds)  # as if they had run sequentially
    manifest.update(
        results=results,
        status="finished",
        shard=None,
        selected=sum(shard.get("selected", 0) for shard in manifests),
        answers=sum(count_answers(run.measurements()) for run in shards),
        model_fingerprints=fingerprints,
        **merged_usage(manifests),
        merged=[
            {
                "run": run.path.name,
                **{name: run.manifest[name] for name in _PROVENANCE if name in run.manifest},
            }
            for run in shards
        ],
    )
    return manifest
