"""Results of a run in the formats of other tools: lm-eval's JSON, and results of model cards."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import result_name
from pytest_llmeval.runs.run import Run


def lm_eval_results(run: Run, judged: JudgedRun) -> str:
    """Return the results as lm-eval's ``results_*.json``: ``results.TASK["acc,none"]``.

    Each scorer is a metric without filter; an undefined accuracy is left out. Raises ConfigError for
    a run of several models, which that format cannot hold.
    """
    if len(judged.models) != 1:
        raise ConfigError(
            f"{judged.path} has {len(judged.models)} models; the format has one a file"
        )
    planned = {
        (result.benchmark, variant.scorer): (result, variant)
        for result in run.planned
        for variant in result.variants
    }
    results: dict[str, dict[str, Any]] = {}
    samples: dict[str, dict[str, int]] = {}
    configs: dict[str, Any] = {}
    better: dict[str, dict[str, bool]] = {}
    for result in judged.results:
        task, scorer = result["benchmark"], result["scorer"]
        benchmark, variant = planned[task, scorer]
        own = results.setdefault(task, {"alias": task})
        if result["accuracy"] is not None:
            better.setdefault(task, {})[scorer] = True
            own[f"{scorer},none"] = result["accuracy"]
            own[f"{scorer}_stderr,none"] = _standard_error(result)
        effective = (result["answered"] + result["errors"]) // variant.samples
        samples[task] = {"original": sum(benchmark.subjects.values()), "effective": effective}
        configs[task] = {
            "task": task,
            "num_fewshot": variant.protocol.get("shots"),
            "metadata": {
                "version": benchmark.version,
                "protocol_fingerprint": result["protocol_fingerprint"],
                "data_hash": result["data_hash"],
            },
        }
    document = {
        "results": results,
        "group_subtasks": {task: [] for task in results},
        "configs": configs,
        "versions": {task: config["metadata"]["version"] for task, config in configs.items()},
        "n-shot": {task: config["num_fewshot"] for task, config in configs.items()},
        "higher_is_better": better,
        "n-samples": samples,
        "config": {"model": "pytest-llmeval", "limit": run.manifest.get("limit")},
        "date": _seconds(run.manifest.get("started")),
        "model_name": judged.models[0],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def model_card_results(run: Run, judged: JudgedRun, data_sets: Mapping[str, str]) -> str:
    """Return the accuracies as ``.eval_results/*.yaml`` of a model repository.

    ``data_sets``: benchmark → ``ORG/NAME:TASK``, the data set on the hub and its task there, which
    only the user knows; other benchmarks are left out. Fingerprints and the interval are in the
    notes, because the format has no field for them. Raises ConfigError for a name that is not in the
    run, and for a result without an accuracy.
    """
    if not data_sets:
        names = ", ".join(dict.fromkeys(result["benchmark"] for result in judged.results))
        raise ConfigError(
            f"name the data sets of the hub: --dataset BENCHMARK=ORG/NAME:TASK ({names})"
        )
    benchmarks = {result["benchmark"] for result in judged.results}
    for name in data_sets:
        if name not in benchmarks:
            raise ConfigError(
                f"{judged.path} has no benchmark {name!r}{suggestion(name, benchmarks)}"
            )
    lines = []
    for result in judged.results:
        if result["benchmark"] in data_sets:
            lines += _entry(result, data_sets[result["benchmark"]], run.manifest.get("started"))
    return "".join(f"{line}\n" for line in lines)


def read_data_sets(texts: list[str]) -> dict[str, str]:
    """Parse ``BENCHMARK=ORG/NAME:TASK``. Raises ConfigError for anything else."""
    data_sets = {}
    for text in texts:
        benchmark, equals, data_set = text.partition("=")
        name, colon, task = data_set.partition(":")
        if not (equals and colon and benchmark and task and name.count("/") == 1):
            raise ConfigError(f"--dataset {text}: write BENCHMARK=ORG/NAME:TASK")
        data_sets[benchmark] = data_set
    return data_sets


def _entry(result: Mapping[str, Any], data_set: str, started: str | None) -> list[str]:
    """Return the lines of one result; JSON strings are YAML strings."""
    if result["accuracy"] is None:
        raise ConfigError(f"{result_name(result)} has no accuracy: it is incomplete")
    name, _, task = data_set.partition(":")
    low, high = result["wilson95"]
    notes = (
        f"{result_name(result)}, {result['correct']:,} of {result['answered']:,} correct, 95 %"
        f" interval {low:.4f} to {high:.4f}, protocol {result['protocol_fingerprint']}, data"
        f" {result['data_hash']}"
    )
    return [
        "- dataset:",
        f"    id: {json.dumps(name)}",
        f"    task_id: {json.dumps(task)}",
        f"  value: {result['accuracy']!r}",
        *([f"  date: {json.dumps(started)}"] if started else []),
        f"  notes: {json.dumps(notes)}",
    ]


def _standard_error(result: Mapping[str, Any]) -> float | str:
    """Return lm-eval's standard error of a mean of 0 and 1; it writes ``N/A`` where there is none."""
    number, mean = result["answered"], result["accuracy"]
    return math.sqrt(mean * (1 - mean) / (number - 1)) if number > 1 else "N/A"


def _seconds(started: str | None) -> float | None:
    return None if started is None else datetime.fromisoformat(started).timestamp()
