"""Run folders of HELM: ``run_spec.json``, ``scenario_state.json``, ``per_instance_stats.json``.

HELM puts the instances of several splits into one folder, and all metrics of an instance next to
one another, so that the user names the metric. Its folders have no version of HELM.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Sequence
from datetime import UTC
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.interop.collecting import Collector
from pytest_llmeval.interop.collecting import Value
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.log import Log
from pytest_llmeval.interop.log import LoggedAnswer
from pytest_llmeval.interop.log import LoggedBenchmark
from pytest_llmeval.interop.log import whole_sizes
from pytest_llmeval.interop.names import SetHash
from pytest_llmeval.interop.names import benchmark_name
from pytest_llmeval.interop.names import cleaned
from pytest_llmeval.interop.names import model_name
from pytest_llmeval.interop.names import scorer_name
from pytest_llmeval.interop.names import short_hash
from pytest_llmeval.interop.names import without
from pytest_llmeval.sources.item_ids import safe_id

PREFIX = "helm"
SPEC = "run_spec.json"
"""The file by which a folder is recognized."""

_STATE = "scenario_state.json"
_STATS = "per_instance_stats.json"
_SPLIT = "test"
_MOST = 10  # metrics in a message
_ROUNDING = 1e-6

State = Mapping[str, Any]
Stats = Mapping[tuple[str, int], Mapping[str, Mapping[str, Any]]]


def read_helm(folder: Path, options: ImportOptions) -> Log:
    """Read a run folder. Raises ConfigError, in one line, for one that is not whole."""
    spec, log = _read(folder / SPEC), str(folder)
    if options.subject is not None:
        raise ConfigError(f"{log}: --subject: the subject is the one of HELM's scenario")
    adapter, scenario = spec["adapter_spec"], spec["scenario_spec"]
    logged = _read(folder / _STATE)["request_states"]
    states, notes = _selected(logged)
    stats = _stats_by_instance(_read(folder / _STATS))
    arguments = scenario.get("args") or {}
    subject = str(arguments.get("subject") or spec["name"].partition(":")[0])
    collector, requests = Collector(log), SetHash()
    for state in states:
        item = safe_id(str(state["instance"]["id"]))
        requests.add(item, state["request"]["prompt"])
        collector.add(
            _answer(state, item, subject),
            _values(state, stats),
            _content(state),
            error=None if state["result"]["success"] else _error(state),
            options=len(state.get("output_mapping") or ()),
        )
    metrics = dict.fromkeys(name for entry in stats.values() for name in entry)
    if not options.scorers:
        binary = ", ".join(_binary_metrics(stats)[:_MOST]) or "none has values of 0 and 1"
        raise ConfigError(f"{log} has {len(metrics)} metrics: choose with --scorer ({binary})")
    scorers, answers, more = collector.scored(
        [scorer_name(PREFIX, name) for name in metrics], options.scorers, PREFIX
    )
    named = {scorer_name(PREFIX, name): name for name in metrics}
    _check_means(folder, {named[scorer] for scorer in scorers}, states, stats)
    most = adapter.get("max_eval_instances")
    instances = len({str(state["instance"]["id"]) for state in logged})
    limited = f"max_eval_instances {most}" if most and instances >= most else None
    started = [s["result"].get("request_datetime") for s in states]
    return Log(
        harness="helm",
        version="",
        model=model_name(log, str(adapter.get("model") or ""), options.model),
        model_fingerprint=None,
        started=_time(min((time for time in started if time), default=None)),
        benchmarks=(
            LoggedBenchmark(
                name=benchmark_name(PREFIX, options.name or spec["name"].partition(":")[0]),
                version="",
                protocol={
                    "ask": "text",
                    "chat": False,
                    "shots": adapter.get("max_train_instances"),
                    "adapter": cleaned(
                        without(
                            adapter,
                            *("model", "model_deployment", "max_eval_instances"),
                            "max_train_instances",
                        )
                    ),
                    "scenario": cleaned(scenario),
                    "requests": requests.hexdigest(),
                },
                scorers={scorer: {"metric": named[scorer]} for scorer in scorers},
                answers=answers,
                data_hash=collector.data.hexdigest(),
                sizes=whole_sizes(log, answers, None, limited, options),
                chance=collector.chance,
                samples=collector.samples,
            ),
        ),
        files=tuple(folder / name for name in (SPEC, _STATE, _STATS)),
        notes=(*notes, *(note for note in more if not options.scorers)),
    )


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ConfigError(
            f"{file.parent} has no {file.name}: it is not a whole run of HELM"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(timespec="seconds")


# Instances ---------------------------------------------------------------------------------


def _selected(states: Sequence[State]) -> tuple[list[State], list[str]]:
    """Return the answers to original instances of one split, and notes on the others."""
    notes = []
    original = [state for state in states if not state["instance"].get("perturbation")]
    if perturbed := len(states) - len(original):
        notes.append(f"left out: {perturbed:,} of the answers, to perturbed instances")
    splits = sorted({str(state["instance"].get("split")) for state in original})
    split = _SPLIT if _SPLIT in splits else splits[0] if splits else None
    chosen = [state for state in original if str(state["instance"].get("split")) == split]
    if others := len(original) - len(chosen):
        notes.append(f"left out: {others:,} of the answers, of splits other than {split}")
    return chosen, notes


def _stats_by_instance(entries: Sequence[Mapping[str, Any]]) -> Stats:
    """Return (instance, trial) → metric → statistic, of original instances."""
    return {
        (str(entry["instance_id"]), int(entry.get("train_trial_index") or 0)): {
            stat["name"]["name"]: stat
            for stat in entry["stats"]
            if not stat["name"].get("perturbation")
        }
        for entry in entries
        if not entry.get("perturbation")
    }


def _key(state: State) -> tuple[str, int]:
    return str(state["instance"]["id"]), int(state.get("train_trial_index") or 0)


def _values(state: State, stats: Stats) -> dict[str, Value]:
    """Return the metrics of an answer; those without a count are missing."""
    mapping = state.get("output_mapping") or {}
    text = _text(state)
    unparsed = bool(mapping) and (text or "").strip() not in mapping
    return {
        scorer_name(PREFIX, name): Value(
            stat["sum"] / stat["count"], None if text is None else text.strip(), unparsed
        )
        for name, stat in stats.get(_key(state), {}).items()
        if stat.get("count")
    }


def _binary_metrics(stats: Stats) -> list[str]:
    """Return the metrics with values of 0 and 1, those that have both first."""
    values: dict[str, set[Any]] = {}
    for entry in stats.values():
        for name, stat in entry.items():
            if stat.get("count"):
                values.setdefault(name, set()).add(stat["sum"] / stat["count"])
    binary = [name for name, own in values.items() if own <= {0, 1}]
    return sorted(binary, key=lambda name: len(values[name]) < 2)


def _text(state: State) -> str | None:
    completions = state["result"].get("completions") or ()
    return str(completions[0]["text"]) if completions else None


def _error(state: State) -> str:
    return str(state["result"].get("error") or "the request failed")


def _correct(state: State) -> list[str]:
    return [
        str(reference["output"]["text"])
        for reference in state["instance"].get("references") or ()
        if "correct" in (reference.get("tags") or ())
    ]


def _content(state: State) -> str:
    instance = state["instance"]
    return short_hash(instance["input"], instance.get("references") or [], instance.get("split"))


def _answer(state: State, item: str, subject: str) -> LoggedAnswer:
    prompt = str(state["request"]["prompt"])
    return LoggedAnswer(
        item,
        subject,
        int(state.get("train_trial_index") or 0),
        {},
        gold=" / ".join(_correct(state)),
        text=_text(state),
        prompt_sha256=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest(),
        seconds=state["result"].get("request_time"),
    )


def _check_means(folder: Path, metrics: set[str], states: Sequence[State], stats: Stats) -> None:
    """Check the verdicts against ``stats.json``, if it is there. Raises ConfigError if they differ."""
    file = folder / "stats.json"
    if not file.is_file() or not states:
        return
    split = states[0]["instance"].get("split")
    for reported in _read(file):
        name = reported["name"]
        if name["name"] not in metrics or name.get("split") != split or name.get("perturbation"):
            continue
        own = [
            entry[name["name"]] for s in states if name["name"] in (entry := stats.get(_key(s), {}))
        ]
        total, number = sum(stat["sum"] for stat in own), sum(stat["count"] for stat in own)
        if number and reported.get("count") and len({_key(s)[1] for s in states}) == 1:
            mean, mean_reported = total / number, reported["sum"] / reported["count"]
            if abs(mean - mean_reported) > _ROUNDING:
                raise ConfigError(
                    f"{folder}: {name['name']} has the mean {mean:.6f}, and {mean_reported:.6f} in"
                    f" {file.name}"
                )
