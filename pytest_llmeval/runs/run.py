"""A stored run, read back: its results from its records, without a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import aggregate
from pytest_llmeval.metrics import summarize
from pytest_llmeval.runs.folder import RunFolder
from pytest_llmeval.runs.records import key
from pytest_llmeval.runs.records import read_records


@dataclass(frozen=True)
class Run:
    """A run folder's ``run.json`` and its final records (later ones replace earlier ones)."""

    path: Path
    manifest: dict[str, Any]
    records: tuple[Record, ...]

    def results(self) -> list[Result]:
        """One Result per (model, benchmark, scorer), in the order of ``run.json``."""
        return [result for result, _, _ in self._measured()]

    def metrics(self) -> dict[str, Any]:
        """What ``metrics.json`` holds, computed again from the records."""
        return {
            "results": [
                metrics_entry(result, fingerprint, planned["data_hash"])
                for result, fingerprint, planned in self._measured()
            ]
        }

    def _measured(self) -> Iterator[tuple[Result, str, dict[str, Any]]]:
        models = self.manifest["models"]
        if self.manifest.get("own_model"):
            named = [record.model for record in self.records if record.model not in models]
            models = named[:1] or models
        for model in models:
            for planned in self.manifest["results"]:
                yield self._measure(model, planned)

    def _measure(self, model: str, planned: dict[str, Any]) -> tuple[Result, str, dict[str, Any]]:
        # The protocol's fingerprint tells which scorer answered: the planned one, or, for a
        # model that gives only text, the generated letter's.
        ways = {planned["fingerprint"]: planned["scorer"]}
        ways.update(planned["generated"] or {})
        # Where a user's own model went by its name, items lost with a worker go by the spec.
        names = {model, *(self.manifest["models"] if self.manifest.get("own_model") else ())}
        records = [
            record
            for record in self.records
            if not record.left_out
            and record.benchmark == planned["benchmark"]
            and record.protocol in ways
            and record.model in names
        ]
        answered = next((r.protocol for r in records if r.outcome is not Outcome.ERROR), None)
        fingerprint = answered or planned["fingerprint"]
        scorer = ways[fingerprint]
        result = aggregate(
            [replace(record, model=model, scorer=scorer) for record in records],
            model=model,
            benchmark=planned["benchmark"],
            scorer=scorer,
            protocol=planned["protocol"]["name"],
            chance=planned["chance"],
            sizes=planned["subjects"],
        )
        return result, fingerprint, planned


def metrics_entry(result: Result, fingerprint: str, data_hash: str) -> dict[str, Any]:
    """One result as ``metrics.json`` shows it: its numbers, and what they may be compared with."""
    return {
        **summarize(result),
        "protocol_fingerprint": fingerprint,
        "data_hash": data_hash,
    }


def load_run(path: str | Path) -> Run:
    """Read a run folder. Raises RunError, in one line, for what is missing or damaged in it."""
    folder = RunFolder(Path(path))
    manifest = folder.read_manifest()
    latest = {key(record): record for record in read_records(folder.records)}
    run = Run(folder.path, manifest, tuple(latest.values()))
    try:
        run.results()
    except ValueError as error:
        raise RunError(f"{folder.records} does not belong to its run.json: {error}") from None
    return run
