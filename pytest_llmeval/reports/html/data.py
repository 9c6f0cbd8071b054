"""A stored run as one plain dictionary: all that the page shows, and nothing it has to work out."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_llmeval.gates import Verdict
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import fold
from pytest_llmeval.gates import worst_first
from pytest_llmeval.reports.formatting import duration
from pytest_llmeval.reports.html.result import answered
from pytest_llmeval.reports.html.result import result_data
from pytest_llmeval.reports.html.sources import Sources
from pytest_llmeval.reports.terminal.audit import HEADER
from pytest_llmeval.reports.terminal.audit import Pair
from pytest_llmeval.reports.terminal.audit import pair_rows
from pytest_llmeval.reports.terminal.audit import pair_title
from pytest_llmeval.reports.terminal.audit import pair_words
from pytest_llmeval.reports.wording import gate_words
from pytest_llmeval.reports.wording import model_words
from pytest_llmeval.reports.wording import models_of
from pytest_llmeval.reports.wording import undecided_words
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.reports.wording import verdict_words
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.measurement import disagreements
from pytest_llmeval.runs.measurement import exclusions
from pytest_llmeval.runs.measurement import hybrid_line
from pytest_llmeval.runs.reply_problems import reply_notes
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.usage import Key
from pytest_llmeval.runs.usage import Spent
from pytest_llmeval.runs.usage import cost
from pytest_llmeval.runs.usage import costs
from pytest_llmeval.runs.usage import spent
from pytest_llmeval.runs.usage import total_cost
from pytest_llmeval.storage.usage_log import prices_of
from pytest_llmeval.storage.usage_log import rows_of


def report_data(sources: Sources) -> dict[str, Any]:
    """The page's content as plain JSON values. The same sources give the same content."""
    run, comparison = sources.run, sources.judged.comparison
    every = answered(run)
    measurements = [one.measurement for one in every]
    shots: dict[tuple[str, str], int] = {}
    results = [result_data(one, every, sources, shots) for one in every]
    used = _used(run, [one.key for one in every])
    return {
        "run": str(run.manifest.get("run") or run.path.name),
        "status": run.manifest.get("status", "finished"),
        "unfinished": unfinished_words(run.manifest),
        **_gates(sources.judged),
        "facts": _facts(run.manifest),
        "models": _models(run, measurements),
        "usage": _usage(run.manifest),
        "pairs": [_pair(pair) for pair in sources.judged.pairs],
        "notes": [*_notes(run, measurements), *map(hybrid_line, sources.judged.hybrids)],
        "baseline": comparison and comparison["baseline"],
        "results": [{**one, "used": own} for one, own in zip(results, used, strict=True)],
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


def _gates(run: JudgedRun) -> dict[str, Any]:
    counts = count_states(run.verdicts)
    undecided = counts.get("undecided")
    return {
        "verdict": run.verdict,
        "verdict_words": verdict_words(run.verdict, counts, run.items_failed),
        "gates_file": run.thresholds,
        "gates_hint": undecided and undecided_words(undecided),
        "gates": [_gate(verdict) for verdict in worst_first(fold(run.verdicts))],
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
        ("cost", None if amount is None else prices_of(manifest).format_amount(amount)),
        ("seed", manifest.get("seed")),
        ("limit", manifest.get("limit") and f"{manifest['limit']} items of every subject"),
        ("shard", shard and f"{shard[0]} of {shard[1]}"),
        ("git commit", manifest.get("git")),
        ("platform", manifest.get("platform")),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("command", "pytest " + " ".join(manifest.get("command", ()))),
    ]
    return [[name, str(value)] for name, value in facts if value not in (None, "")]


def _models(run: Run, measurements: Iterable[Measurement]) -> list[dict[str, str]]:
    """Every model that answered, in words, with the fingerprint of its weights."""
    own = bool(run.manifest["own_model"])
    return [
        {"name": model, "words": model_words(model, own), "fingerprint": fingerprint}
        for model, fingerprint in models_of(measurements).items()
    ]


def _usage(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What endpoints were used for: a row for every model and benchmark, the cost in words."""
    prices = prices_of(manifest)
    rows = []
    for (model, benchmark), counts in rows_of(manifest).items():
        amount = cost(model, counts, prices)
        money = "–" if amount is None else prices.format_amount(amount)
        about = {"model": model, "benchmark": benchmark, "counts": counts}
        rows.append({**about, "cost": money if prices.models else None})
    return rows


def _used(run: Run, results: Sequence[Key]) -> list[dict[str, Any]]:
    """What every result took, and what it cost in words, as far as that is known."""
    took, paid, prices = spent(run.records), costs(run.manifest, results), prices_of(run.manifest)
    used = []
    for key in results:
        own = paid.get(key)
        sharing = () if own is None else own.scorers
        used.append(
            {
                **asdict(took.get(key, Spent())),
                "cost": None if own is None else prices.format_amount(own.amount),
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
        *disagreements(measurements),
        *reply_notes(run.records),
    ]
