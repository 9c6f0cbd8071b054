"""A stored run as one plain dictionary: all that the page shows, and nothing it has to work out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import describe
from pytest_llmeval.gates import fold
from pytest_llmeval.runs.run import Measurement
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import disagreements

from .gather import Sources
from .result import answered
from .result import result_data
from .words import gate_words
from .words import verdict_words

_STATUSES = ("fail", "undecided", "pass", "not run")


def report_data(sources: Sources) -> dict[str, Any]:
    """The page's content as plain JSON values. The same sources give the same content."""
    run = sources.run
    every = answered(run)
    measurements = [one.measurement for one in every]
    shots: dict[tuple[str, str], int] = {}
    results = [result_data(one, every, sources, shots) for one in every]
    return {
        "run": str(run.manifest.get("run") or run.path.name),
        "status": run.manifest.get("status", "finished"),
        **_gates(sources.gates),
        "facts": _facts(run.manifest),
        "models": _models(run.manifest, measurements),
        "usage": _usage(run.manifest),
        "notes": _notes(run, measurements),
        "baseline": None if sources.comparison is None else sources.comparison["baseline"],
        "results": results,
        "shots": list(shots),
    }


# The whole run ---------------------------------------------------------------------------


def _gates(document: Mapping[str, Any] | None) -> dict[str, Any]:
    verdict = "not gated" if document is None else str(document["verdict"])
    every = [_verdict(value) for value in (document or {}).get("gates", ())]
    counts = Counter(verdict.status for verdict in every)
    shown = [_gate(one) for one in fold(every, {"pass", "undecided"})]
    shown.sort(key=lambda gate: _STATUSES.index(gate["status"]))
    return {
        "verdict": verdict,
        "verdict_words": verdict_words(verdict, counts),
        "gate_counts": dict(counts),
        "gates_file": (document or {}).get("thresholds"),
        "gates": shown,
    }


def _verdict(value: Mapping[str, Any]) -> Verdict:
    interval = value.get("interval")
    return Verdict(**{**value, "interval": None if interval is None else tuple(interval)})


def _gate(verdict: Verdict) -> dict[str, Any]:
    gate = asdict(verdict)
    low, high, value = verdict.min, verdict.max, verdict.measured
    two_sided = low is not None and low == high
    rooms = (
        []
        if value is None or two_sided
        else [
            *([] if low is None else [value - low]),
            *([] if high is None else [high - value]),
        ]
    )
    return {
        **gate,
        "interval": None if verdict.interval is None else list(verdict.interval),
        "words": gate_words(gate),
        "text": describe(verdict),
        "margin": min(rooms, default=None),
    }


def _facts(manifest: Mapping[str, Any]) -> list[list[str]]:
    versions = manifest.get("versions", {})
    shard = manifest.get("shard")
    facts = [
        ("started", manifest.get("started")),
        ("finished", manifest.get("finished")),
        ("took", _duration(manifest.get("seconds"))),
        ("seed", manifest.get("seed")),
        ("limit", manifest.get("limit") and f"{manifest['limit']} items of every subject"),
        ("shard", shard and f"{shard[0]} of {shard[1]}"),
        ("git commit", manifest.get("git")),
        ("platform", manifest.get("platform")),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("command", "pytest " + " ".join(manifest.get("command", ()))),
    ]
    return [[name, str(value)] for name, value in facts if value not in (None, "")]


def _duration(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3600)
    return (f"{hours} h " if hours else "") + f"{rest // 60} min {rest % 60} s"


def _models(manifest: Mapping[str, Any], measurements: Iterable[Measurement]) -> list[list[str]]:
    """Every model that answered, with the fingerprint of its weights."""
    found: dict[str, str] = {}
    for one in measurements:
        found[one.result.model] = one.model_fingerprint or found.get(one.result.model, "")
    return [[model, fingerprint] for model, fingerprint in found.items()]


def _usage(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What endpoints were used for: a row for every model and benchmark."""
    return [
        {"model": model, "benchmark": benchmark, **counts}
        for model, benchmark, counts in manifest.get("usage", ())
    ]


def _notes(run: Run, measurements: Sequence[Measurement]) -> list[str]:
    warnings = dict.fromkeys(
        f"{planned.benchmark}: {warning}" for planned in run.planned for warning in planned.warnings
    )
    return [*warnings, *disagreements(measurements)]
