"""Results of lighteval with details: ``results_DATE.json`` and ``details_TASK_DATE.parquet``.

Written by ``--save-details``. The results have no version of lighteval (``versions`` is empty and
the commit ``?`` in 0.13), and their ``hash_full_prompts`` is the hash of nothing, so requests are
hashed here. Tasks called ``mmlu:anatomy`` are the subjects of ``mmlu``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.installation import install_hint
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

PREFIX = "lighteval"

_BATCH = 1_000  # rows read at a time
_ROUNDING = 1e-6
_DATE = re.compile(r"results_(\d{4}-\d\d-\d\dT[\d.-]+)\.json$")
# Of the listing, of the scorers, or of the size.
_DROPPED = (
    *("name", "metrics", "num_fewshots", "original_num_docs", "effective_num_docs", "suite"),
    *("evaluation_splits", "hf_avail_splits"),
)

Row = Mapping[str, Any]


def is_lighteval(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON document is a file of results of lighteval."""
    return "config_general" in content and "config_tasks" in content


def read_lighteval(file: Path, content: Mapping[str, Any], options: ImportOptions) -> Log:
    """Read results and their details. Raises ConfigError, in one line, for what is not whole."""
    if options.subject is not None:
        raise ConfigError(f"{file}: --subject: the subjects of lighteval are the parts of a task")
    if find_spec("pyarrow") is None:
        raise ConfigError(f"{file}: its details are parquet files: {install_hint('hub')}")
    general = content["config_general"]
    groups = _groups(content)
    if options.name is not None and len(groups) > 1:
        raise ConfigError(f"{file}: --name: the log has {len(groups)}: {', '.join(groups)}")
    files = {task: _details_of(file, task) for tasks in groups.values() for task in tasks}
    benchmarks, notes = [], []
    for name, tasks in groups.items():
        benchmark, more = _benchmark(file, content, name, tasks, files, options)
        benchmarks.append(benchmark)
        notes += more
    config = general.get("model_config") or {}
    return Log(
        harness="lighteval",
        version="",
        model=model_name(
            str(file),
            str(general.get("model_name") or config.get("model_name") or ""),
            options.model,
        ),
        model_fingerprint=None,
        started=_started(file),
        benchmarks=tuple(benchmarks),
        files=(file, *files.values()),
        notes=tuple(notes),
    )


def _started(file: Path) -> str | None:
    """Return the time in the name of a file of results, which is local time."""
    date = _DATE.search(file.name)
    if date is None:
        return None
    day, _, time = date[1].partition("T")
    return f"{day}T{time.replace('-', ':')[:8]}"


def _groups(content: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return benchmark → tasks: those with a common name before the colon, shots and metrics."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for task, config in content["config_tasks"].items():
        metrics = tuple(metric["metric_name"] for metric in config.get("metrics") or ())
        key = (_parts(task)[0], config.get("num_fewshots"), metrics)
        groups.setdefault(key, []).append(task)
    names = [key[0] for key in groups]
    return {
        key[0] if names.count(key[0]) == 1 else tasks[0]: tasks for key, tasks in groups.items()
    }


def _parts(task: str) -> tuple[str, str]:
    """Return benchmark and subject of a task: of ``suite|mmlu:anatomy|5``, mmlu and anatomy."""
    names = [part for part in task.split("|") if not part.isdecimal()]
    name, _, subject = names[-1].partition(":")
    return name, subject or name


def _details_of(file: Path, task: str) -> Path:
    """Return the file of a task's details. Raises ConfigError if there is none.

    It is ``OUT/details/MODEL/DATE/details_TASK_DATE.parquet`` for results in ``OUT/results/MODEL``,
    or next to the results.
    """
    date = _DATE.search(file.name)
    if date is None:
        raise ConfigError(f"{file}: its name has no date, by which its details are found")
    name = f"details_{task}_{date[1]}.parquet"
    folders = [file.parent]
    parts = file.parent.parts
    if "results" in parts:
        place = len(parts) - 1 - parts[::-1].index("results")
        folders.append(Path(*parts[:place], "details", *parts[place + 1 :], date[1]))
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise ConfigError(f"{file}: no answers of task {task}: {name} is missing (--save-details)")


def _rows(file: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        for batch in table.iter_batches(_BATCH):
            yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None


def _benchmark(
    file: Path,
    content: Mapping[str, Any],
    name: str,
    tasks: Sequence[str],
    files: Mapping[str, Path],
    options: ImportOptions,
) -> tuple[LoggedBenchmark, list[str]]:
    log = str(file)
    collector, requests = Collector(log), SetHash()
    names: dict[str, None] = {}
    for task in tasks:
        means: dict[str, list[Any]] = {}
        for row in _rows(files[task]):
            item = safe_id(f"{_parts(task)[1]}-{row['doc']['id']}")
            values = row.get("metric") or row.get("metrics") or {}
            requests.add(item, _request(row))
            collector.add(
                _answer(row, item, _parts(task)[1]),
                {scorer_name(PREFIX, metric): Value(value) for metric, value in values.items()},
                short_hash(
                    row["doc"]["query"], row["doc"].get("choices"), row["doc"]["gold_index"]
                ),
                options=_options(row),
            )
            names |= dict.fromkeys(scorer_name(PREFIX, metric) for metric in values)
            for metric, value in values.items():
                means.setdefault(metric, []).append(value)
        _check_task(file, content, task, means)
    scorers, answers, notes = collector.scored(names, options.scorers, PREFIX)
    configs = [content["config_tasks"][task] for task in tasks]
    whole = [config.get("original_num_docs", -1) for config in configs]
    limit = content["config_general"].get("max_samples")
    sizes = dict(zip((_parts(task)[1] for task in tasks), whole, strict=True))
    return (
        LoggedBenchmark(
            name=benchmark_name(PREFIX, options.name or name),
            version=str(configs[0].get("version", "")),
            protocol=_protocol(content, configs[0], requests),
            scorers={scorer: _scorer_options(configs[0], scorer) for scorer in scorers},
            answers=answers,
            data_hash=collector.data.hexdigest(),
            sizes=whole_sizes(
                log,
                answers,
                sizes if min(whole) > 0 else None,
                None if limit is None else f"max_samples {limit}",
                options,
            ),
            chance=collector.chance,
        ),
        notes,
    )


def _check_task(
    file: Path, content: Mapping[str, Any], task: str, values: Mapping[str, Sequence[Any]]
) -> None:
    """Check the number of answers and their means against the results; ConfigError if they differ."""
    effective = content["config_tasks"][task].get("effective_num_docs", -1)
    number = max(map(len, values.values()), default=0)
    if not number or (effective > 0 and effective != number):
        raise ConfigError(
            f"{file}: task {task} has {number:,} of {max(effective, 0):,} answers: it is not the whole"
            " log"
        )
    corpus = {
        metric["metric_name"]: metric.get("corpus_level_fn")
        for metric in content["config_tasks"][task].get("metrics") or ()
    }
    for metric, logged in values.items():
        reported = content["results"].get(task, {}).get(metric)
        is_mean = corpus.get(metric) == "mean" and isinstance(reported, int | float)
        if is_mean and all(isinstance(value, int | float) for value in logged):
            mean = sum(logged) / len(logged)
            if abs(mean - reported) > _ROUNDING:
                raise ConfigError(
                    f"{file}: {metric} of task {task} has the mean {mean:.6f} over its answers, and"
                    f" {reported:.6f} in the results"
                )


def _request(row: Row) -> list[Any]:
    """Return what was sent to the model, as far as the log has it."""
    doc = row["doc"]
    keys = ("query", "instruction", "fewshot_samples", "choices", "stop_sequences")
    return [doc.get(key) for key in (*keys, "generation_size")]


def _options(row: Row) -> int:
    """Return the number of choices of which one is right; 0 for a generated answer."""
    doc = row["doc"]
    several = isinstance(doc["gold_index"], list) and len(doc["gold_index"]) > 1
    is_compared = "LOGPROBS" in (doc.get("sampling_methods") or ()) and not several
    return len(doc.get("choices") or ()) if is_compared else 0


def _answer(row: Row, item: str, subject: str) -> LoggedAnswer:
    doc, response = row["doc"], row.get("model_response") or {}
    gold, choices = doc["gold_index"], doc.get("choices") or []
    right = gold if isinstance(gold, list) else [gold]
    texts = response.get("text") or ()
    return LoggedAnswer(
        item,
        subject,
        0,
        {},
        gold=" / ".join(str(choices[index]).strip() for index in right if index < len(choices)),
        text=str(texts[0]) if texts else None,
        logprobs=tuple(map(float, response.get("logprobs") or ())) if _options(row) else (),
    )


def _protocol(
    content: Mapping[str, Any], config: Mapping[str, Any], requests: SetHash
) -> dict[str, Any]:
    model = content["config_general"].get("model_config") or {}
    metrics = config.get("metrics") or ()
    is_choice = all(metric.get("category") == "LOGPROBS" for metric in metrics)
    return {
        "ask": "choices" if is_choice else "text",
        "chat": False,
        "shots": config.get("num_fewshots"),
        "config": cleaned(without(config, *_DROPPED)),
        "generation": cleaned(model.get("generation_parameters") or {}),
        "system_prompt": model.get("system_prompt"),
        "requests": requests.hexdigest(),
    }


def _scorer_options(config: Mapping[str, Any], scorer: str) -> dict[str, Any]:
    for metric in config.get("metrics") or ():
        if scorer_name(PREFIX, metric["metric_name"]) == scorer:
            options: dict[str, Any] = cleaned(metric)
            return options
    return {}
