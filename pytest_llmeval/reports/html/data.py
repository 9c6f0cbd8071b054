"""Content of the page as one plain dictionary, fully computed."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import group_subject_verdicts
from pytest_llmeval.gates import sort_worst_first
from pytest_llmeval.reports.formatting import duration
from pytest_llmeval.reports.html.result import measurements_with_records
from pytest_llmeval.reports.html.result import result_data
from pytest_llmeval.reports.html.sources import Sources
from pytest_llmeval.reports.terminal.audit import HEADER
from pytest_llmeval.reports.terminal.audit import Pair
from pytest_llmeval.reports.terminal.audit import pair_rows
from pytest_llmeval.reports.terminal.audit import pair_title
from pytest_llmeval.reports.terminal.audit import pair_words
from pytest_llmeval.reports.wording import gate_words
from pytest_llmeval.reports.wording import model_fingerprints
from pytest_llmeval.reports.wording import model_words
from pytest_llmeval.reports.wording import replica_lines
from pytest_llmeval.reports.wording import undecided_words
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.reports.wording import verdict_words
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.measured_orders import order_words
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import exclusions
from pytest_llmeval.runs.measurement import hybrid_line
from pytest_llmeval.runs.measurement import scorer_disagreements
from pytest_llmeval.runs.reply_problems import reply_notes
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import ResourceUse
from pytest_llmeval.runs.usage import cost
from pytest_llmeval.runs.usage import costs
from pytest_llmeval.runs.usage import resource_use
from pytest_llmeval.runs.usage import total_cost
from pytest_llmeval.storage.usage_log import stored_prices
from pytest_llmeval.storage.usage_log import usage_rows


def report_data(sources: Sources) -> dict[str, Any]:
    """Return the page's content as plain JSON values; equal sources give equal content."""
    run, comparison = sources.run, sources.judged.comparison
    measured = measurements_with_records(run)
    measurements = [entry.measurement for entry in measured]
    shots: dict[tuple[str, str], int] = {}
    results = [result_data(entry, measured, sources, shots) for entry in measured]
    used = _used(run, [entry.key for entry in measured])
    return {
        "run": str(run.manifest.get("run") or run.path.name),
        "status": run.manifest.get("status", "finished"),
        "unfinished": unfinished_words(run.manifest),
        **_gates(sources.judged),
        "facts": _facts(run.manifest),
        "models": _models(run, measurements),
        "usage": _usage(run.manifest),
        "pairs": [_pair(pair) for pair in sources.judged.pairs],
        "order_tests": [_order_test(entry) for entry in sources.judged.contamination],
        "notes": [*_notes(run, measurements), *map(hybrid_line, sources.judged.hybrids)],
        "baseline": comparison and comparison["baseline"],
        "results": [{**result, "used": use} for result, use in zip(results, used, strict=True)],
        "shots": list(shots),
    }


# The whole run ---------------------------------------------------------------------------


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "model": pair["model"],
        "title": pair_title(pair),
        "header": HEADER,
        "rows": pair_rows(pair),
        "words": pair_words(pair),
    }


def _order_test(entry: Mapping[str, Any]) -> dict[str, Any]:
    name = f"{entry['benchmark']}: {entry['test'].replace('_', '-')}"
    return {"model": entry["model"], "name": name, "words": order_words(entry)}


def _gates(run: JudgedRun) -> dict[str, Any]:
    counts = count_states(run.verdicts)
    undecided = counts.get("undecided")
    return {
        "verdict": run.verdict,
        "verdict_words": verdict_words(run.verdict, counts, run.items_failed),
        "gates_file": run.thresholds,
        "gates_hint": undecided and run.verdict != "pass" and undecided_words(undecided),
        "gates": [
            _gate(verdict) for verdict in sort_worst_first(group_subject_verdicts(run.verdicts))
        ],
    }


def _gate(verdict: Verdict) -> dict[str, Any]:
    gate = asdict(verdict)
    interval = None if verdict.interval is None else list(verdict.interval)
    more = {"words": gate_words(verdict), "margin": verdict.margin, "state": verdict.state}
    return {**gate, "interval": interval, **more}


def _facts(manifest: Mapping[str, Any]) -> list[list[str]]:
    versions = manifest.get("versions", {})
    shard = manifest.get("shard")
    seconds, amount = manifest.get("seconds"), total_cost(manifest)
    facts = [
        ("started", manifest.get("started")),
        ("finished", manifest.get("finished")),
        ("took", None if seconds is None else duration(seconds)),
        ("cost", None if amount is None else stored_prices(manifest).format_amount(amount)),
        ("seed", manifest.get("seed")),
        ("limit", manifest.get("limit") and f"{manifest['limit']} items of every subject"),
        ("shard", shard and f"{shard[0]} of {shard[1]}"),
        ("replicas", "; ".join(replica_lines(manifest))),
        ("git commit", manifest.get("git")),
        ("platform", manifest.get("platform")),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("command", "pytest " + " ".join(manifest.get("command", ()))),
    ]
    return [[name, str(value)] for name, value in facts if value not in (None, "")]


def _models(run: Run, measurements: Iterable[Measurement]) -> list[dict[str, str]]:
    """Return every model that answered, its description and the fingerprint of its weights."""
    custom = bool(run.manifest["own_model"])
    return [
        {"name": model, "words": model_words(model, custom), "fingerprint": fingerprint}
        for model, fingerprint in model_fingerprints(measurements).items()
    ]


def _usage(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the use of endpoints: a row for every model and benchmark, with the cost as text."""
    prices = stored_prices(manifest)
    rows = []
    for (model, benchmark), counts in usage_rows(manifest).items():
        amount = cost(model, counts, prices)
        money = "–" if amount is None else prices.format_amount(amount)
        row = {"model": model, "benchmark": benchmark, "counts": counts}
        rows.append({**row, "cost": money if prices.models else None})
    return rows


def _used(run: Run, results: Sequence[Key]) -> list[dict[str, Any]]:
    """Return the resource use of every result with its cost as text, None where unknown."""
    took, paid, prices = (
        resource_use(run.records),
        costs(run.manifest, results),
        stored_prices(run.manifest),
    )
    used = []
    for key in results:
        shared_cost = paid.get(key)
        sharing = () if shared_cost is None else shared_cost.scorers
        used.append(
            {
                **asdict(took.get(key, ResourceUse())),
                "cost": None if shared_cost is None else prices.format_amount(shared_cost.amount),
                "together": [f"{key[1]}[{scorer}]" for scorer in sharing if len(sharing) > 1],
            }
        )
    return used


def _notes(run: Run, measurements: Sequence[Measurement]) -> list[str]:
    warnings = dict.fromkeys(
        warning if warning.startswith(name := f"{planned.benchmark}: ") else f"{name}{warning}"
        for planned in run.planned
        for warning in planned.warnings
    )
    return [
        *exclusions(measurements),
        *warnings,
        *scorer_disagreements(measurements),
        *reply_notes(run.records),
    ]
