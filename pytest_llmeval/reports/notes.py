"""What a stored run has to be told beside its numbers, alike in every report."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator

from pytest_llmeval.core import Record
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import disagreements
from pytest_llmeval.runs.measurement import exclusions
from pytest_llmeval.runs.measurement import how_read
from pytest_llmeval.runs.reply_problems import Failure
from pytest_llmeval.runs.reply_problems import failures_of
from pytest_llmeval.runs.reply_problems import reply_notes
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.weighted_scores import hybrid_lines

_FAILURES = 10  # reasons of errors


def run_notes(run: Run) -> list[str]:
    """Items left out of the data, scorers that disagree, replies without an answer, hybrid scores."""
    measurements = run.measurements()
    return [
        *run.incomplete_debiasing(),
        *exclusions(measurements),
        *disagreements(measurements),
        *how_read(measurements),
        *reply_notes(run.records),
        *hybrid_lines(measurements, run.hybrid),
    ]


def failure_lines(records: Iterable[Record]) -> Iterator[str]:
    """The reasons of a run's errors, each once; other scorers' of one answer are not counted."""
    counted = (one for one in records if not one.left_out and not one.response_of)
    failures = failures_of(counted)
    yield from (failure_line(one, "answers") for one in failures[:_FAILURES])
    if len(failures) > _FAILURES:
        yield f"ERROR {len(failures) - _FAILURES:,} other reasons"


def failure_line(failure: Failure, noun: str) -> str:
    """``ERROR 12 items, such as ID: reason``; ``noun``: what is counted."""
    many = f"{failure.count:,} {noun}, such as " if failure.count > 1 else ""
    return f"ERROR {many}{failure.example}: {failure.reason}"


def models_of(measurements: Iterable[Measurement]) -> dict[str, str]:
    """Model → the fingerprint of its weights, empty where it has none."""
    found: dict[str, str] = {}
    for one in measurements:
        found[one.result.model] = one.model_fingerprint or found.get(one.result.model, "")
    return found
