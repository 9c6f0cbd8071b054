"""One result of a run as a plain dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_llmeval.core import LABELS
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Record
from pytest_llmeval.metrics import calibration
from pytest_llmeval.metrics import choice_confidence
from pytest_llmeval.metrics import summarize
from pytest_llmeval.metrics import wilson_interval
from pytest_llmeval.runs.prompts import StoredPrompt
from pytest_llmeval.runs.run import Measurement
from pytest_llmeval.runs.run import Run

from .areas import areas_of
from .gather import Sources
from .items import by_item
from .items import details
from .items import index
from .words import protocol_words


def result_data(
    one: Measurement,
    measurements: Sequence[Measurement],
    sources: Sources,
    shots: dict[tuple[str, str], int],
) -> dict[str, Any]:
    numbers = summarize(one.result)
    key = (one.result.model, one.result.benchmark, one.result.scorer)
    records = _records(sources.run, one)
    compared = _comparison(sources.comparison, key)
    stored = next((m for m in sources.measured if _key(m) == key), {})
    first = next((m for m in measurements if _first_scorer(m, one, records)), one)
    return {
        "name": one.name,
        "numbers": numbers,
        "complete": numbers["complete"],
        "protocol": {
            "name": one.result.protocol,
            "words": protocol_words(one.protocol, one.asked),
            "fingerprint": one.fingerprint,
            "data": one.data_hash,
            "chat": bool(one.protocol["chat"]),
        },
        "areas": _areas(numbers["subjects"], compared),
        "comparison": compared,
        "calibration": _calibration(records),
        "outcomes": _breakdown(records),
        "speed": _speed(records),
        "audit": stored.get("audit"),
        "extraction": stored.get("extraction"),
        "items": index(by_item(records), _flips(compared), _before(sources, compared)),
        # Other scorers of the same responses point to the result that holds them.
        "details_of": measurements.index(first),
        "details": details(
            by_item(records),
            {
                other.result.scorer: by_item(_records(sources.run, other))
                for other in measurements
                if other is not one and _first_scorer(one, other, _records(sources.run, other))
            },
            _prompts_of(sources.prompts, one),
            shots,
        )
        if first is one
        else None,
    }


def _key(entry: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return entry.get("model"), entry.get("benchmark"), entry.get("scorer")


def _records(run: Run, one: Measurement) -> list[Record]:
    """The records behind a measurement."""
    return [
        record
        for record in run.records
        if record.benchmark == one.result.benchmark
        and record.protocol == one.fingerprint
        and (record.model == one.result.model or run.manifest["own_model"])
        and not record.left_out
    ]


def _first_scorer(first: Measurement, other: Measurement, records: Sequence[Record]) -> bool:
    """Whether ``first`` holds the responses that ``other``, with these records, has scored again."""
    return (
        other.scored_again
        and not first.scored_again
        and bool(records)
        and records[0].response_of == first.result.scorer
        and (first.result.model, first.result.benchmark)
        == (other.result.model, other.result.benchmark)
    )


def _prompts_of(
    prompts: Mapping[tuple[str, str, str], StoredPrompt], one: Measurement
) -> dict[str, StoredPrompt]:
    return {
        item: prompts[key]
        for item in one.items
        if (key := (one.result.benchmark, one.fingerprint, item)) in prompts
    }


def _areas(
    subjects: Mapping[str, Mapping[str, Any]], compared: Mapping[str, Any] | None
) -> list[dict[str, Any]] | None:
    """The areas with their own accuracy over items, where the subjects' areas are known."""
    areas = areas_of(subjects)
    if areas is None:
        return None
    shown = []
    for area, members in areas.items():
        correct, answered, errors = (
            sum(subjects[name][count] for name in members)
            for count in ("correct", "answered", "errors")
        )
        known = answered and not errors
        shown.append(
            {
                "name": area,
                "subjects": members,
                "accuracy": correct / answered if known else None,
                "interval": list(wilson_interval(correct, answered)) if known else None,
                "baseline": _area_before(members, compared),
            }
        )
    return shown


def _area_before(members: Sequence[str], compared: Mapping[str, Any] | None) -> float | None:
    """The baseline's accuracy over an area's paired items."""
    if compared is None:
        return None
    found = [compared["subjects"][name] for name in members if name in compared["subjects"]]
    items = sum(one["items"] for one in found)
    return sum(one["items"] * (one["baseline"] or 0) for one in found) / items if items else None


def _comparison(
    document: Mapping[str, Any] | None, key: tuple[str, str, str]
) -> dict[str, Any] | None:
    model, benchmark, scorer = key
    for one in (document or {}).get("comparisons", ()):
        if (one["candidate"], one["benchmark"], one["scorer"]) == (model, benchmark, scorer):
            name = f"{benchmark}[{scorer}]"
            differences = [
                f"{entry['field']}: {entry['baseline']} against {entry['candidate']}"
                for entry in (document or {}).get("mismatches", ())
                if entry["result"] == name
            ]
            return {**one, "differences": differences}
    return None


def _flips(compared: Mapping[str, Any] | None) -> dict[str, str]:
    if compared is None:
        return {}
    wrong, right = compared["newly_wrong"], compared["newly_right"]
    return {**dict.fromkeys(wrong, "w"), **dict.fromkeys(right, "r")}


def _before(sources: Sources, compared: Mapping[str, Any] | None) -> dict[str, list[Record]]:
    """The baseline's records of a result's items; empty where they are not at hand."""
    if compared is None or sources.baseline is None:
        return {}
    for one in sources.baseline.measurements():
        about = (one.result.model, one.result.benchmark, one.result.scorer)
        if about == (compared["baseline"], compared["benchmark"], compared["scorer"]):
            return by_item(_records(sources.baseline, one))
    return {}


def _calibration(records: Iterable[Record]) -> dict[str, Any] | None:
    """The reliability diagram of answers that were compared by log-likelihood."""
    pairs = []
    for record in records:
        chosen = LABELS.find(record.answer) if record.answer and len(record.answer) == 1 else -1
        if record.outcome is Outcome.ERROR or not 0 <= chosen < len(record.logprobs):
            continue
        confidence = choice_confidence(record.logprobs, chosen)
        if confidence is not None:
            pairs.append((confidence, record.outcome is Outcome.CORRECT))
    found = calibration(pairs)
    return None if found is None else asdict(found)


def _breakdown(records: Iterable[Record]) -> dict[str, Any]:
    """How often each kind of error and each way to end occurred."""
    errors: Counter[str] = Counter()
    finishes: Counter[str] = Counter()
    for record in records:
        if record.outcome is Outcome.ERROR:
            errors[" ".join((record.error or "no reason given").split())[:160]] += 1
        elif record.finish_reason:
            finishes[record.finish_reason] += 1
    return {
        "errors": [list(entry) for entry in errors.most_common(5)],
        "kinds_of_errors": len(errors),
        "finish_reasons": [list(entry) for entry in finishes.most_common()],
    }


def _speed(records: Sequence[Record]) -> dict[str, Any]:
    """Seconds and tokens of the answers, as far as they are known."""
    seconds = [record.seconds for record in records if record.seconds is not None]
    tokens = [r.completion_tokens for r in records if r.completion_tokens is not None]
    prompts = [r.prompt_tokens for r in records if r.prompt_tokens is not None]
    return {
        "seconds": sum(seconds) if seconds else None,
        "answers_timed": len(seconds),
        "completion_tokens": sum(tokens) if tokens else None,
        "prompt_tokens": sum(prompts) if prompts else None,
    }
