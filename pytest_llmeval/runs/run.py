"""A stored run, read back: its results from its records, without a model."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.core.plan import arm_fingerprint
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.runs.bias import audit_of
from pytest_llmeval.runs.bias import debiased
from pytest_llmeval.runs.bias import pairs
from pytest_llmeval.runs.bias import what_is_lacking
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import count_answers
from pytest_llmeval.runs.measurement import hybrids
from pytest_llmeval.runs.measurement import measure
from pytest_llmeval.runs.reply_problems import failures_of
from pytest_llmeval.runs.reply_problems import lacked_modules
from pytest_llmeval.storage.folder import RunFolder

RUNS = Path("runs")
"""Where the runs are, unless ``--llm-runs`` says otherwise."""

LATEST = "latest"
"""What the newest run is called."""


def run_folder(text: str, root: Path = RUNS) -> Path:
    """The folder of a run: the path that is given, or of ``latest`` the newest run in ``root``.

    A folder of that name is meant itself. Raises ConfigError where there is no run.
    """
    path = Path(text)
    return newest_run(root) if text == LATEST and not path.exists() else path


def newest_run(root: Path) -> Path:
    """The folder of the run that was started last. Raises ConfigError where there is none."""
    started = {file.parent: _started(file) for file in sorted(root.glob("*/run.json"))}
    known = {folder: time for folder, time in started.items() if time is not None}
    if not known:
        raise ConfigError(f"no run in {root}/: name the folder of one")
    # Of two in one second the one that was made later has the greater name.
    return max(known, key=lambda folder: (known[folder], folder.name))


def _started(file: Path) -> float | None:
    """When a run was started, in seconds; None where its document does not say."""
    try:
        return datetime.fromisoformat(json.loads(file.read_bytes())["started"]).timestamp()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


_FAILURES = 10  # reasons of errors that metrics.json has


def metrics_json(
    measurements: Sequence[Measurement],
    records: Callable[[], Iterable[Record]],
    hybrid: Mapping[str, float],
) -> dict[str, Any]:
    """What ``metrics.json`` holds.

    ``records`` reads those of the run; ``hybrid``: the weights of a hybrid score that is asked for.
    """
    more = {
        "hybrids": list(hybrids(measurements, hybrid)),
        "pairs": list(pairs(measurements, records)),
    }
    results = [
        {**one.as_json(), **_more(found)}
        for one, found in zip(measurements, _by_measurement(measurements, records()), strict=True)
    ]
    return {"results": results, **{name: found for name, found in more.items() if found}}


def _by_measurement(
    measurements: Sequence[Measurement], records: Iterable[Record]
) -> list[list[Record]]:
    """The records that count, of every measurement.

    A custom model is named only once it answers, so that an error from before has another name.
    """
    models = {one.result.model for one in measurements}
    owners = {
        (one.result.model if len(models) > 1 else None, one.result.benchmark, protocol): number
        for number, one in enumerate(measurements)
        for protocol in one.protocols
    }
    found: list[dict[tuple[str, int], Record]] = [{} for _ in measurements]
    for record in records:
        model = record.model if len(models) > 1 else None
        number = owners.get((model, record.benchmark, record.protocol))
        if number is not None and not record.left_out:
            found[number][record.item, record.sample] = record
    return [list(latest.values()) for latest in found]


def _more(records: Sequence[Record]) -> dict[str, Any]:
    """What few results have: reasons of errors, modules that the sandbox lacked."""
    failures, modules = failures_of(records)[:_FAILURES], lacked_modules(records)
    return {
        **({"failures": [asdict(one) for one in failures]} if failures else {}),
        **({"lacked_modules": modules} if modules else {}),
    }


@dataclass(frozen=True)
class Run:
    """A run folder's ``run.json`` and its final records (later ones replace earlier ones)."""

    path: Path
    manifest: Mapping[str, Any]
    records: tuple[Record, ...]

    @property
    def planned(self) -> list[PlannedResult]:
        """The results that the run set out to measure, for each of its models."""
        return [PlannedResult.from_json(value) for value in self.manifest["results"]]

    @property
    def hybrid(self) -> Mapping[str, float]:
        """The weights of the hybrid score that was asked for; empty where none was."""
        weights: Mapping[str, float] = self.manifest.get("hybrid", {})
        return weights

    def measurements(self) -> list[Measurement]:
        """One per (model, benchmark, scorer), in the order of ``run.json``.

        An other scorer of the same responses is left out where it scored none.
        """
        return list(self.by_plan.values())

    @cached_property
    def by_plan(self) -> Mapping[tuple[int, int], Measurement]:
        """The measurements by the index of the model and of the planned result."""
        models = self.manifest["models"]
        if self.manifest["own_model"]:
            named = {record.model for record in self.records if record.model not in models}
            models = [min(named)] if named else models
        planned = self.planned
        found: dict[tuple[int, int], Measurement] = {}
        for index, model in enumerate(models):
            own = [self._measure(model, one) for one in planned]
            for number, one in enumerate(planned):
                # A baseline keeps their outcomes, having no log-probabilities.
                computed = one.debias is not None and not own[number].items
                if computed and one.responses_of is not None:
                    own[number] = self._debiased(model, one, own[one.responses_of])
                if own[number].items or not own[number].scored_again:
                    found[index, number] = own[number]
        return found

    def incomplete_debiasing(self) -> Iterator[str]:
        """Debiased results that lack items of the one that they are computed from, a line each."""
        for index in range(len(self.manifest["models"])):
            for number, one in enumerate(self.planned):
                if one.debias is None or one.responses_of is None:
                    continue
                first, found = (self.by_plan.get((index, n)) for n in (one.responses_of, number))
                line = what_is_lacking(
                    f"{one.benchmark}[{one.scorer}]",
                    {} if first is None else first.items,
                    {} if found is None else found.items,
                )
                if line is not None:
                    yield line

    def answers(self) -> Iterator[tuple[Measurement, list[Record]]]:
        """Every measurement with the records behind it, in the order in which they were written.

        A debiased result has none; what stands for them is outcomes alone. Their responses are in
        the records of the result that it is computed from.
        """
        debiased = {one.ways[0].fingerprint: one for one in self.planned if one.debias is not None}
        for one in self.measurements():
            model, benchmark = one.result.model, one.result.benchmark
            records = self._records(model, benchmark, one.protocols)
            planned = debiased.get(one.fingerprint)
            if planned is not None and planned.responses_of is not None and not records:
                first = self.planned[planned.responses_of].protocols
                asked = self._records(model, benchmark, first)
                records = [_computed(record, one) for record in asked if record.item in one.items]
            yield one, records

    def results(self) -> list[Result]:
        """The measurements without their items."""
        return [measurement.result for measurement in self.measurements()]

    def metrics(self) -> dict[str, Any]:
        """What ``metrics.json`` holds, computed again from the records."""
        return metrics_json(self.measurements(), lambda: self.records, self.hybrid)

    @cached_property
    def _counted(self) -> Mapping[str, Sequence[Record]]:
        """Benchmark → the records that count."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            if not record.left_out:
                found.setdefault(record.benchmark, []).append(record)
        return found

    def _records(
        self, model: str, benchmark: str, protocols: Container[str] | None = None
    ) -> list[Record]:
        """What a model did on a benchmark, under these protocols or any.

        A user's own model is one, whatever its records call it: lost items go by the spec.
        """
        own_model = self.manifest["own_model"]
        return [
            record
            for record in self._counted.get(benchmark, ())
            if (own_model or record.model == model)
            and (protocols is None or record.protocol in protocols)
        ]

    def _measure(self, model: str, planned: PlannedResult) -> Measurement:
        own = self._records(model, planned.benchmark, planned.protocols)
        weights = next((r.model_fingerprint for r in own if r.model_fingerprint), None)
        way = planned.variant_of(record.protocol for record in own)
        asked = self.manifest.get("asked", {}).get(model, {}).get(way.ask, "")
        day = self.manifest.get("template_dates", {}).get(model, "")
        measurement = measure(planned, way, model, dict(_outcomes(own)), weights)
        audit = self._audit(planned, way, measurement)
        result = replace(measurement.result, audit=audit)
        return replace(measurement, asked=asked, template_date=day, result=result)

    def _debiased(self, model: str, planned: PlannedResult, first: Measurement) -> Measurement:
        records = self._records(model, planned.benchmark)
        items = debiased(planned, first.fingerprint, first.items, records, self.manifest["seed"])
        measured = measure(planned, planned.ways[0], model, items, first.model_fingerprint)
        return replace(measured, asked=first.asked, template_date=first.template_date)

    def _audit(
        self, planned: PlannedResult, way: ProtocolVariant, measurement: Measurement
    ) -> Audit | None:
        if not planned.arms:
            return None
        arms = {arm_fingerprint(way.fingerprint, arm) for arm in planned.arms}
        found: dict[str, list[Record]] = {item: [] for item in measurement.items}
        protocols = {way.fingerprint, *arms}
        for record in self._records(measurement.result.model, planned.benchmark, protocols):
            if record.item in found:
                found[record.item].append(record)
        return audit_of(planned.arms, found.items(), planned.same)


def _computed(record: Record, debiased: Measurement) -> Record:
    """What stands for a record in a result that is computed from that of the record."""
    return replace(
        record,
        scorer=debiased.result.scorer,
        protocol=debiased.fingerprint,
        outcome=debiased.items[record.item].outcomes[record.sample],
        response_of=record.scorer,
        answer=None,
        text=None,
        reasoning=None,
        logprobs=(),
        seconds=None,
        tie=False,
    )


def samples_of(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of one result by item, samples in order; the one written last counts.

    An item lost with a worker may have an earlier answer under another scorer or name, and one
    that was resumed a later one.
    """
    found: dict[str, list[Record]] = {}
    for record in records:
        samples = found.get(record.item)
        if samples is None:
            found[record.item] = [record]
            continue
        place = bisect_left(samples, record.sample, key=attrgetter("sample"))
        is_later = place < len(samples) and samples[place].sample == record.sample
        samples[place : place + is_later] = [record]
    return found


def _outcomes(records: Iterable[Record]) -> Iterator[tuple[str, ItemOutcomes]]:
    for item, samples in samples_of(records).items():
        first = samples[0]
        yield (
            item,
            ItemOutcomes(
                subject=first.subject,
                outcomes=tuple([record.outcome for record in samples]),
                truncated=[one.truncated for one in samples].count(True),
                dropped_shots=first.dropped_shots > 0,
                encoded_apart=first.encoded_apart > 0,
                tie=first.tie,
                all_tied=[one.all_tied_answer for one in samples].count(True),
                details=tuple(one.detail for one in samples) if first.detail else (),
            ),
        )


def load_run(path: str | Path) -> Run:
    """Read a run folder. Raises RunError, in one line, for what is missing or damaged in it."""
    folder = RunFolder(Path(path))
    manifest = folder.manifest()
    run = Run(folder.path, manifest, tuple(folder.latest_records(manifest)))
    try:
        counted = count_answers(run.measurements())
    except ValueError as error:
        raise RunError(f"{folder.records} does not belong to its run.json: {error}") from None
    told = manifest.get("answers", counted)
    if told != counted:
        raise RunError(f"{folder.records} has {counted:,} of the {told:,} answers of its run.json")
    return run
