"""A stored run: computes its results from its records, without a model."""

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
from pytest_llmeval.core.plan import order_arm
from pytest_llmeval.gates.evidence import Key
from pytest_llmeval.gates.evidence import MeasuredOrders
from pytest_llmeval.metrics import Audit
from pytest_llmeval.metrics import ItemOutcomes
from pytest_llmeval.metrics import Result
from pytest_llmeval.runs.bias import audit_of
from pytest_llmeval.runs.bias import debiased_outcomes
from pytest_llmeval.runs.bias import missing_debiased_items
from pytest_llmeval.runs.bias import text_letter_pairs
from pytest_llmeval.runs.measured_orders import contamination_entries
from pytest_llmeval.runs.measured_orders import orders_of_records
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import count_answers
from pytest_llmeval.runs.measurement import hybrid_scores
from pytest_llmeval.runs.measurement import measure
from pytest_llmeval.runs.reply_problems import doubtful_patches
from pytest_llmeval.runs.reply_problems import error_groups
from pytest_llmeval.runs.reply_problems import missing_modules
from pytest_llmeval.storage.folder import RunFolder

RUNS = Path("runs")
"""Default folder of runs (``--llm-runs``)."""

LATEST = "latest"
"""Name of the newest run on command lines."""


def run_folder(text: str, root: Path = RUNS) -> Path:
    """Return the folder of a run: the path ``text``, or for ``latest`` the newest run in ``root``.

    An existing folder ``latest`` takes precedence. Raises ConfigError if there is no run.
    """
    path = Path(text)
    return newest_run(root) if text == LATEST and not path.exists() else path


def newest_run(root: Path) -> Path:
    """Return the folder of the run that started last. Raises ConfigError if there is none."""
    started = {
        file.parent: time
        for file in sorted(root.glob("*/run.json"))
        if (time := _started(file)) is not None
    }
    if not started:
        raise ConfigError(f"no run in {root}/: name the folder of one")
    # Of two runs started in the same second, the later one has the greater name.
    return max(started, key=lambda folder: (started[folder], folder.name))


def _started(file: Path) -> float | None:
    """Return the start of a run in seconds since 1970; None if its document has none."""
    try:
        return datetime.fromisoformat(json.loads(file.read_bytes())["started"]).timestamp()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


_FAILURES = 10  # maximum number of reasons of errors in metrics.json


def metrics_json(
    measurements: Sequence[Measurement],
    records: Callable[[], Iterable[Record]],
    hybrid: Mapping[str, float],
) -> dict[str, Any]:
    """Return the content of ``metrics.json``.

    ``records`` reads those of the run; ``hybrid``: the weights of the hybrid score, by scorer.
    """
    optional = {
        "hybrids": list(hybrid_scores(measurements, hybrid)),
        "pairs": list(text_letter_pairs(measurements, records)),
    }
    results = [
        {**measurement.as_json(), **_optional_entries(own)}
        for measurement, own in zip(
            measurements, _by_measurement(measurements, records()), strict=True
        )
    ]
    return {"results": results, **{name: value for name, value in optional.items() if value}}


def _by_measurement(
    measurements: Sequence[Measurement], records: Iterable[Record]
) -> list[list[Record]]:
    """Return the records that count, for every measurement.

    A custom model has no name until it answers, so that earlier errors have another name.
    """
    models = {measurement.result.model for measurement in measurements}
    owners = {
        (
            measurement.result.model if len(models) > 1 else None,
            measurement.result.benchmark,
            protocol,
        ): number
        for number, measurement in enumerate(measurements)
        for protocol in measurement.protocols
    }
    by_measurement: list[dict[tuple[str, int], Record]] = [{} for _ in measurements]
    for record in records:
        model = record.model if len(models) > 1 else None
        number = owners.get((model, record.benchmark, record.protocol))
        if number is not None and not record.left_out:
            by_measurement[number][record.item, record.sample] = record
    return [list(latest.values()) for latest in by_measurement]


def _optional_entries(records: Sequence[Record]) -> dict[str, Any]:
    """Return the optional entries of a result: reasons of errors, missing modules, doubts."""
    failures, modules = error_groups(records)[:_FAILURES], missing_modules(records)
    doubtful = doubtful_patches(records)
    return {
        **({"failures": [asdict(failure) for failure in failures]} if failures else {}),
        **({"lacked_modules": modules} if modules else {}),
        **({"doubtful": doubtful} if doubtful else {}),
    }


@dataclass(frozen=True)
class Run:
    """A run folder's ``run.json`` and its latest records."""

    path: Path
    #: Content of ``run.json``.
    manifest: Mapping[str, Any]
    #: Records that no later record replaces.
    records: tuple[Record, ...]

    @property
    def planned(self) -> list[PlannedResult]:
        """Planned results, for each of the models."""
        return [PlannedResult.from_json(value) for value in self.manifest["results"]]

    @property
    def hybrid(self) -> Mapping[str, float]:
        """Weights of the hybrid score by scorer; empty if none was requested."""
        weights: Mapping[str, float] = self.manifest.get("hybrid", {})
        return weights

    def measurements(self) -> list[Measurement]:
        """Return one measurement per (model, benchmark, scorer), in the order of ``run.json``.

        Further scorers of the same responses are left out if they scored none.
        """
        return list(self.by_plan.values())

    @cached_property
    def by_plan(self) -> Mapping[tuple[int, int], Measurement]:
        """Measurements by the index of the model and of the planned result."""
        models = self.manifest["models"]
        if self.manifest["own_model"]:
            named = {record.model for record in self.records if record.model not in models}
            models = [min(named)] if named else models
        planned = self.planned
        measurements: dict[tuple[int, int], Measurement] = {}
        for index, model in enumerate(models):
            own = [self._measure(model, result) for result in planned]
            for number, result in enumerate(planned):
                # Baselines store debiased outcomes, because they have no log-probabilities.
                is_computed = result.debias is not None and not own[number].items
                if is_computed and result.responses_of is not None:
                    own[number] = self._debiased(model, result, own[result.responses_of])
                if own[number].items or not own[number].shares_responses:
                    measurements[index, number] = own[number]
        return measurements

    def incomplete_debiasing(self) -> Iterator[str]:
        """Describe debiased results that lack items of their source, one line each."""
        for index in range(len(self.manifest["models"])):
            for number, planned in enumerate(self.planned):
                if planned.debias is None or planned.responses_of is None:
                    continue
                source = self.by_plan.get((index, planned.responses_of))
                computed = self.by_plan.get((index, number))
                line = missing_debiased_items(
                    f"{planned.benchmark}[{planned.scorer}]",
                    {} if source is None else source.items,
                    {} if computed is None else computed.items,
                )
                if line is not None:
                    yield line

    def answers(self) -> Iterator[tuple[Measurement, list[Record]]]:
        """Yield every measurement with its records, in the order in which they were written.

        A debiased result has no records of its own: those of its source are returned with the
        debiased outcomes, without responses.
        """
        debiased = {
            planned.variants[0].fingerprint: planned
            for planned in self.planned
            if planned.debias is not None
        }
        for measurement in self.measurements():
            model, benchmark = measurement.result.model, measurement.result.benchmark
            records = self.records_of(model, benchmark, measurement.protocols)
            planned = debiased.get(measurement.fingerprint)
            if planned is not None and planned.responses_of is not None and not records:
                source = self.planned[planned.responses_of].protocols
                records = [
                    _debiased_record(record, measurement)
                    for record in self.records_of(model, benchmark, source)
                    if record.item in measurement.items
                ]
            yield measurement, records

    def results(self) -> list[Result]:
        """Return the results of the measurements."""
        return [measurement.result for measurement in self.measurements()]

    def metrics(self) -> dict[str, Any]:
        """Compute the content of ``metrics.json`` from the records."""
        metrics = metrics_json(self.measurements(), lambda: self.records, self.hybrid)
        entries = contamination_entries(self.measured_orders)
        return {**metrics, "contamination": entries} if entries else metrics

    @cached_property
    def measured_orders(self) -> Mapping[Key, MeasuredOrders]:
        """Order tests by (model, benchmark, test)."""
        orders: dict[Key, MeasuredOrders] = {}
        planned = self.planned
        for (_, number), measurement in self.by_plan.items():
            model, benchmark = measurement.result.model, measurement.result.benchmark
            for test, document in planned[number].contamination.items():
                fingerprint = arm_fingerprint(document.get("fingerprint", ""), order_arm(test))
                records = self.records_of(model, benchmark, {fingerprint})
                orders[model, benchmark, test] = orders_of_records(document, records)
        return orders

    @cached_property
    def _counted(self) -> Mapping[str, Sequence[Record]]:
        """Records that count, by benchmark."""
        by_benchmark: dict[str, list[Record]] = {}
        for record in self.records:
            if not record.left_out:
                by_benchmark.setdefault(record.benchmark, []).append(record)
        return by_benchmark

    def records_of(
        self, model: str, benchmark: str, protocols: Container[str] | None = None
    ) -> list[Record]:
        """Return the records of a model and benchmark, under these protocols or any.

        With a custom model, all records count: lost items have its spec instead of its name.
        """
        own_model = self.manifest["own_model"]
        return [
            record
            for record in self._counted.get(benchmark, ())
            if (own_model or record.model == model)
            and (protocols is None or record.protocol in protocols)
        ]

    def _measure(self, model: str, planned: PlannedResult) -> Measurement:
        own = self.records_of(model, planned.benchmark, planned.protocols)
        weights = next((r.model_fingerprint for r in own if r.model_fingerprint), None)
        variant = planned.variant_of(record.protocol for record in own)
        mode = self.manifest.get("asked", {}).get(model, {}).get(variant.ask, "")
        day = self.manifest.get("template_dates", {}).get(model, "")
        measurement = measure(planned, variant, model, dict(_outcomes(own)), weights)
        audit = self._audit(planned, variant, measurement)
        first = self._first_of_order(model, planned, measurement)
        result = replace(measurement.result, audit=audit, first_of_order=first)
        return replace(measurement, request_mode=mode, template_date=day, result=result)

    def _first_of_order(
        self, model: str, planned: PlannedResult, measurement: Measurement
    ) -> bool | None:
        """Return ``Result.first_of_order``, from the order of the items of a sequential run."""
        if "sequential" not in self.manifest or not measurement.result.counts.missing:
            return None
        answered = measurement.items
        for course in self._order["courses"]:
            items = [item for item, _ in course["items"]]
            index = course["model"]
            name = model if self.manifest["own_model"] else self.manifest["models"][index]
            other = self.planned[course["result"]]
            if (name, other.benchmark) == (model, planned.benchmark) and answered.keys() <= {
                *items
            }:
                return all(item in answered for item in items[: len(answered)])
        return False

    @cached_property
    def _order(self) -> Mapping[str, Any]:
        return RunFolder(self.path).read("order.json")

    def _debiased(self, model: str, planned: PlannedResult, first: Measurement) -> Measurement:
        records = self.records_of(model, planned.benchmark)
        items = debiased_outcomes(
            planned, first.fingerprint, first.items, records, self.manifest["seed"]
        )
        measured = measure(planned, planned.variants[0], model, items, first.model_fingerprint)
        return replace(measured, request_mode=first.request_mode, template_date=first.template_date)

    def _audit(
        self, planned: PlannedResult, variant: ProtocolVariant, measurement: Measurement
    ) -> Audit | None:
        if not planned.arms:
            return None
        arms = {arm_fingerprint(variant.fingerprint, arm) for arm in planned.arms}
        by_item: dict[str, list[Record]] = {item: [] for item in measurement.items}
        protocols = {variant.fingerprint, *arms}
        for record in self.records_of(measurement.result.model, planned.benchmark, protocols):
            if record.item in by_item:
                by_item[record.item].append(record)
        return audit_of(planned.arms, by_item.items(), planned.same)


def _debiased_record(record: Record, debiased: Measurement) -> Record:
    """Return a record with the outcome of a debiased result, without its response."""
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
    """Group the records of one result by item, samples in order; the last record written counts.

    An item lost with a worker may have an earlier record under another scorer or name, and a resumed
    one a later record.
    """
    by_item: dict[str, list[Record]] = {}
    for record in records:
        samples = by_item.get(record.item)
        if samples is None:
            by_item[record.item] = [record]
            continue
        place = bisect_left(samples, record.sample, key=attrgetter("sample"))
        is_later = place < len(samples) and samples[place].sample == record.sample
        samples[place : place + is_later] = [record]
    return by_item


def _outcomes(records: Iterable[Record]) -> Iterator[tuple[str, ItemOutcomes]]:
    for item, samples in samples_of(records).items():
        first = samples[0]
        yield (
            item,
            ItemOutcomes(
                subject=first.subject,
                outcomes=tuple([record.outcome for record in samples]),
                truncated=[record.truncated for record in samples].count(True),
                refused=[record.refused for record in samples].count(True),
                dropped_shots=first.dropped_shots > 0,
                encoded_apart=first.encoded_apart > 0,
                tie=first.tie,
                all_tied=[record.all_tied_answer for record in samples].count(True),
                details=tuple(record.detail for record in samples)
                if any(record.detail for record in samples)
                else (),
            ),
        )


def load_run(path: str | Path) -> Run:
    """Read a run folder. Raises RunError, in one line, for missing or damaged files."""
    folder = RunFolder(Path(path))
    manifest = folder.manifest()
    run = Run(folder.path, manifest, tuple(folder.latest_records(manifest)))
    try:
        counted = count_answers(run.measurements())
    except ValueError as error:
        raise RunError(f"{folder.records} does not belong to its run.json: {error}") from None
    expected = manifest.get("answers", counted)
    if expected != counted:
        raise RunError(
            f"{folder.records} has {counted:,} of the {expected:,} answers of its run.json"
        )
    return run
