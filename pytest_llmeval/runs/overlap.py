"""Scores of a run on the items that do not overlap with a corpus."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.gates import Overlaps
from pytest_llmeval.metrics import CleanResult
from pytest_llmeval.metrics import Result
from pytest_llmeval.metrics import clean_gain
from pytest_llmeval.metrics import divide
from pytest_llmeval.metrics import tally_interval
from pytest_llmeval.overlap.report import BenchmarkOverlap
from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.overlap.report import read_report
from pytest_llmeval.runs.measurement import Measurement


def load_overlap(folder: Path, data: Mapping[str, str]) -> OverlapReport:
    """Read the result of ``llmeval overlap``, or the copy of it in a run folder.

    ``data``: benchmark → content hash of the run's data. Raises ConfigError for a report that is
    missing, damaged, or of other data.
    """
    report = read_report(folder)
    for name, data_hash in data.items():
        part = report.find(name, data_hash)
        if part is not None and part.data_hash != data_hash:
            raise ConfigError(
                f"{folder} is about other data of {name!r}: {part.data_hash}, the run has"
                f" {data_hash}; repeat llmeval overlap with the data of the run"
            )
    return report


def divided(measurements: Iterable[Measurement], report: OverlapReport | None) -> Overlaps:
    """Return the overlap of every benchmark, and every result divided by it."""
    benchmarks: dict[str, BenchmarkOverlap | str] = {}
    results: dict[tuple[str, str, str], CleanResult] = {}
    for measurement in measurements if report is not None else ():
        assert report is not None
        result = measurement.result
        part = benchmarks[result.benchmark] = _usable(report, measurement)
        if not isinstance(part, str):
            overlapping = {id: match.subject for id, match in part.overlapping.items()}
            results[result.key] = divide(result, measurement.items, overlapping, part.unjudged)
    return Overlaps(benchmarks, results)


def _usable(report: OverlapReport, measurement: Measurement) -> BenchmarkOverlap | str:
    """Return the overlap of a measurement's benchmark, or why it cannot be used."""
    name = measurement.result.benchmark
    part = report.find(name, measurement.data_hash)
    if part is None:
        names = [other.benchmark for other in report.benchmarks]
        return f"the overlap report has no benchmark {name!r}{suggestion(name, names)}"
    if part.data_hash != measurement.data_hash:
        return (
            f"the overlap report is about other data: {part.data_hash}, not {measurement.data_hash}"
        )
    if report.unread:
        return f"the overlap report is incomplete: {len(report.unread):,} of {report.files:,} files"
    return part


def add_overlap(
    results: Sequence[dict[str, Any]], measurements: Sequence[Measurement], overlaps: Overlaps
) -> None:
    """Add ``overlap`` to the entries of ``metrics.json``, which are those of the measurements.

    A result without a search keeps none.
    """
    for entry, measurement in zip(results, measurements, strict=True):
        entry.pop("overlap", None)
        part = overlaps.of(measurement.result.benchmark)
        if not isinstance(part, str):
            entry["overlap"] = _entry(part, overlaps.results[measurement.result.key])


def _entry(part: BenchmarkOverlap, result: CleanResult) -> dict[str, Any]:
    """Return numbers of items, both accuracies and the gain, each with its 95 % interval."""
    both = (result.clean, result.overlapping)
    defined = all(
        part_result.accuracy is not None or not part_result.counts.attempted for part_result in both
    )
    tallies = result.overlapping.counts.tally, result.clean.counts.tally
    gain = clean_gain(*tallies) if defined else None
    return {
        "items": part.items,
        "judged": part.judged,
        "overlapping": len(part.overlapping),
        "clean": _part(result.clean),
        "overlap": _part(result.overlapping),
        "gain": None if gain is None else gain[0],
        "gain_interval95": None if gain is None else list(gain[1]),
    }


def _part(result: Result) -> dict[str, Any]:
    value, counts = result.accuracy, result.counts
    return {
        "answered": counts.answered,
        "correct": counts.correct,
        "errors": counts.error,
        "accuracy": value,
        "wilson95": None if value is None else list(tally_interval(counts.tally)),
    }
