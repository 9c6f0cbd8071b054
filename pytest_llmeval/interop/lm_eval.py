"""Logs of lm-evaluation-harness: ``results_DATE.json`` with ``samples_TASK_DATE.jsonl``.

Written by ``lm_eval --log_samples --output_path DIR`` (``loggers/evaluation_tracker.py`` of 0.4.13).
A line of the samples is a document under one filter; it holds all requests, so that the files are
large and are read line by line. A group is a benchmark, its tasks are the subjects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.interop.collecting import Collector
from pytest_llmeval.interop.lm_eval_samples import PREFIX
from pytest_llmeval.interop.lm_eval_samples import LoggedDocument
from pytest_llmeval.interop.lm_eval_samples import joins_answers
from pytest_llmeval.interop.lm_eval_samples import pipeline
from pytest_llmeval.interop.lm_eval_samples import read_documents
from pytest_llmeval.interop.lm_eval_samples import scorer_of
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.log import Log
from pytest_llmeval.interop.log import LoggedBenchmark
from pytest_llmeval.interop.log import whole_sizes
from pytest_llmeval.interop.names import SetHash
from pytest_llmeval.interop.names import benchmark_name
from pytest_llmeval.interop.names import cleaned
from pytest_llmeval.interop.names import model_name
from pytest_llmeval.interop.names import without
from pytest_llmeval.sources.item_ids import row_id
from pytest_llmeval.sources.item_ids import safe_id

_SCORING = ("metric_list", "filter_list")  # part of the scorers, not of the protocol
# Of the model or the listing; the number of shots is that of the run.
_DROPPED = ("metadata", "task", "task_alias", "tag", "group", "group_alias", "num_fewshot")
_SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
_BYPASS = "bypass"
_ROUNDING = 1e-6
_CHAT_NOTE = (
    "the prompts are in the model's chat template, so that they are not compared: template, shots and"
    " documents are"
)


@dataclass(frozen=True)
class _Results:
    """A file of results, and where its samples are."""

    file: Path
    content: Mapping[str, Any]

    @property
    def tasks(self) -> list[str]:
        return list(self.content["n-samples"])

    @property
    def is_chat(self) -> bool:
        """Whether prompts are texts in the model's chat template, as opposed to messages."""
        return bool(self.content.get("chat_template"))

    def samples_file(self, task: str) -> Path:
        """Return the file of a task's samples. Raises ConfigError if there is none."""
        date = re.search(r"(\d{4}-\d\d-\d\dT[\d.-]+)\.json$", self.file.name)
        names = [f"samples_{task}_{date[1]}.jsonl"] if date else []
        if not date:  # renamed: the only samples of the task
            names = [file.name for file in self.file.parent.glob(f"samples_{task}_*.jsonl")]
        paths = [path for name in names if (path := self.file.parent / name).is_file()]
        if len(paths) != 1:
            expected = names[0] if names else f"samples_{task}_….jsonl"
            raise ConfigError(
                f"{self.file}: no answers of task {task}: {expected} is missing"
                " (lm_eval --log_samples writes it)"
            )
        return paths[0]

    def config(self, task: str) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.content["configs"][task]
        return config

    def scorers(self, task: str) -> frozenset[tuple[str, str]]:
        """Return the (metric, filter) pairs that the results of a task have."""
        keys = (key for key in self.content["results"].get(task, {}) if "," in key)
        pairs = (tuple(key.split(",", 1)) for key in keys)
        return frozenset((m, f) for m, f in pairs if not m.endswith("_stderr"))


def is_results(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON document is a file of results of lm-eval."""
    return "configs" in content and "results" in content and "n-shot" in content


def read_lm_eval(file: Path, content: Mapping[str, Any], options: ImportOptions) -> Log:
    """Read results and their samples. Raises ConfigError, in one line, for what is not a whole log."""
    if "n-samples" not in content or "lm_eval_version" not in content:
        raise ConfigError(
            f"{file}: written by a version of lm-eval before 0.4.4, which is not read"
        )
    if options.subject is not None:
        raise ConfigError(f"{file}: --subject: the subjects of lm-eval are the tasks of a group")
    results = _Results(file, content)
    model = model_name(str(file), str(content.get("model_name") or ""), options.model)
    benchmarks = _benchmarks(results)
    if options.name is not None and len(benchmarks) > 1:
        raise ConfigError(f"{file}: --name: the log has {len(benchmarks)}: {', '.join(benchmarks)}")
    notes = [_CHAT_NOTE] if results.is_chat else []
    read = []
    for name, tasks in benchmarks.items():
        benchmark, more = _read_benchmark(results, name, tasks, options)
        read.append(benchmark)
        notes += more if len(benchmarks) == 1 else [f"{benchmark.name}: {note}" for note in more]
    date = content.get("date")
    started = None
    if isinstance(date, int | float):
        started = datetime.fromtimestamp(date, UTC).astimezone().isoformat(timespec="seconds")
    return Log(
        harness="lm-eval",
        version=str(content["lm_eval_version"]),
        model=model,
        model_fingerprint=content.get("config", {}).get("model_sha") or None,
        started=started,
        benchmarks=tuple(read),
        files=(file, *(results.samples_file(task) for task in results.tasks)),
        notes=tuple(notes),
    )


# Groups ------------------------------------------------------------------------------------


def _benchmarks(results: _Results) -> dict[str, list[str]]:
    """Return benchmark → tasks: the largest groups whose tasks have the same metrics and filters."""
    tasks = set(results.tasks)
    children: dict[str, list[str]] = {
        group: list(members)
        for group, members in results.content.get("group_subtasks", {}).items()
        if members
    }

    def leaves(name: str, above: tuple[str, ...] = ()) -> list[str]:
        if name in above:
            raise ConfigError(f"{results.file}: group {name} contains itself")
        if name not in children:
            return [name] if name in tasks else []
        inside = (leaf for child in children[name] for leaf in leaves(child, (*above, name)))
        return list(dict.fromkeys(inside))

    members = {group: leaves(group) for group in children}
    uniform = {
        group: own
        for group, own in members.items()
        if own and len({_kind(results, task) for task in own}) == 1
    }
    largest = {
        group: own
        for group, own in uniform.items()
        if not any(set(own) < set(other) for other in uniform.values())
    }
    grouped = {task for own in largest.values() for task in own}
    # Two names of the same tasks are one benchmark.
    named = {frozenset(own): group for group, own in reversed(largest.items())}
    groups = {group: largest[group] for group in largest if group in named.values()}
    return {**groups, **{task: [task] for task in results.tasks if task not in grouped}}


def _kind(results: _Results, task: str) -> tuple[Any, ...]:
    """Return what all tasks of a benchmark have in common."""
    config = results.config(task)
    return config.get("output_type"), config.get("repeats"), results.scorers(task)


# Samples -----------------------------------------------------------------------------------


def _read_benchmark(
    results: _Results, name: str, tasks: Sequence[str], options: ImportOptions
) -> tuple[LoggedBenchmark, list[str]]:
    log = str(results.file)
    collector = Collector(log)
    requests = {task: SetHash() for task in tasks}
    for task in tasks:
        _read_task(results, task, collector, requests[task])
    pairs = list(dict.fromkeys(pair for task in tasks for pair in _pairs(results, task)))
    named = {scorer_of(*pair): pair for pair in pairs}
    if any(metric == _BYPASS for metric, _ in pairs):
        raise ConfigError(f"{log}: task {tasks[0]} was not scored (--predict_only)")
    joined = {
        scorer: f"joins the {results.config(tasks[0])['repeats']} answers of a document to one"
        for scorer, (_, key) in named.items()
        if joins_answers(results.config(tasks[0]), key)
    }
    scorers, answers, notes = collector.scored(
        [scorer for scorer in named if scorer not in joined], options.scorers, PREFIX
    )
    notes += [f"scorer {scorer} is left out: it {reason}" for scorer, reason in joined.items()]
    counts = results.content["n-samples"]
    sizes = whole_sizes(
        log,
        answers,
        {task: int(counts[task]["original"]) for task in tasks},
        None,
        options,
    )
    versions = {task: str(results.content.get("versions", {}).get(task, "")) for task in tasks}
    return (
        LoggedBenchmark(
            name=benchmark_name(PREFIX, options.name or name),
            version=_common(versions),
            protocol=_protocol(results, tasks, versions, requests),
            scorers={scorer: _scorer_options(results, tasks, named[scorer]) for scorer in scorers},
            answers=answers,
            data_hash=collector.data.hexdigest(),
            sizes=sizes,
            chance=collector.chance,
        ),
        notes,
    )


def _pairs(results: _Results, task: str) -> Iterator[tuple[str, str]]:
    """Yield the (metric, filter) pairs of a task in the order of its configuration."""
    config, logged = results.config(task), results.scorers(task)
    metrics = [entry.get("metric") for entry in config.get("metric_list") or ()]
    filters = [entry.get("name") for entry in config.get("filter_list") or ()]
    order = {str(name): place for place, name in enumerate((*metrics, *filters))}
    last = len(order)
    yield from sorted(
        logged, key=lambda pair: (order.get(pair[1], last), order.get(pair[0], last), pair)
    )


def _read_task(results: _Results, task: str, collector: Collector, requests: SetHash) -> None:
    """Add the documents of a task. Raises ConfigError unless each is there once under each filter."""
    file, config = results.samples_file(task), results.config(task)
    documents = read_documents(file, config)
    filters = {key for _, key in results.scorers(task)}
    effective = int(results.content["n-samples"][task]["effective"])
    whole = sum(filters <= document.filters for document in documents.values())
    if whole != effective or len(documents) != effective:
        raise ConfigError(
            f"{file} has {whole:,} of the {effective:,} documents that were evaluated: it is not the"
            " whole log"
        )
    _check_means(results, task, file, documents.values())
    for key, document in documents.items():
        item = row_id(task, key) if isinstance(key, int) else safe_id(f"{task}-{key}")
        collector.add(
            document.answer(item, task),
            document.values,
            document.content,
            error=document.error,
            options=document.options,
        )
        if not results.is_chat:
            requests.add(item, document.requests)


def _check_means(
    results: _Results, task: str, file: Path, documents: Iterable[LoggedDocument]
) -> None:
    """Check the verdicts against the means that lm-eval itself computed; ConfigError if they differ."""
    aggregations = {
        entry.get("metric"): entry.get("aggregation")
        for entry in results.config(task).get("metric_list") or ()
    }
    values = [document.values for document in documents]
    for metric, key in results.scorers(task):
        reported = results.content["results"][task][f"{metric},{key}"]
        logged = [
            value[name].value for value in values if (name := scorer_of(metric, key)) in value
        ]
        is_mean = aggregations.get(metric) == "mean" and isinstance(reported, int | float)
        if is_mean and all(isinstance(value, bool | int | float) for value in logged) and logged:
            mean = sum(logged) / len(logged)
            if abs(mean - reported) > _ROUNDING:
                raise ConfigError(
                    f"{file}: {metric} under filter {key} has the mean {mean:.6f}, and"
                    f" {reported:.6f} in {results.file.name}"
                )


# Protocol ----------------------------------------------------------------------------------


def _protocol(
    results: _Results,
    tasks: Sequence[str],
    versions: Mapping[str, str],
    requests: Mapping[str, SetHash],
) -> dict[str, Any]:
    content = results.content
    run = content.get("config", {})
    configs = {task: cleaned(without(results.config(task), *_SCORING, *_DROPPED)) for task in tasks}
    config, differing = _factored(configs)
    first = results.config(tasks[0])
    shots = {task: content.get("n-shot", {}).get(task) for task in tasks}
    return {
        "ask": "text" if first.get("output_type") == "generate_until" else "choices",
        "shots": shots[tasks[0]] if len(set(shots.values())) == 1 else shots,
        "draw": "as lm-eval selects them",
        "chat": results.is_chat,
        "config": config,
        "subtasks": differing,
        "task_versions": versions,
        "generation": cleaned(run.get("gen_kwargs") or {}),
        "seeds": {name: run.get(name) for name in _SEEDS},
        "system_instruction": content.get("system_instruction"),
        "fewshot_as_multiturn": bool(content.get("fewshot_as_multiturn")),
        "requests": "not compared: in the model's chat template"
        if results.is_chat
        else {task: requests[task].hexdigest() for task in tasks},
    }


def _scorer_options(
    results: _Results, tasks: Sequence[str], pair: tuple[str, str]
) -> dict[str, Any]:
    """Return metric and filters of a scorer; by task where they differ."""
    metric, key = pair
    by_task: dict[str, dict[str, Any]] = {}
    for task in tasks:
        config = results.config(task)
        entries = [e for e in config.get("metric_list") or () if e.get("metric") == metric]
        by_task[task] = {
            "metric": cleaned(entries[0]) if entries else {"metric": metric},
            "filter": cleaned(pipeline(config, key)),
        }
    options, differing = _factored(by_task)
    return {**options, **({"subtasks": differing} if differing else {})}


def _factored(
    values: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the entries that all values share, and those of each value that differ."""
    first = next(iter(values.values()))
    shared = {
        key: entry
        for key, entry in first.items()
        if all(key in other and other[key] == entry for other in values.values())
    }
    differing = {name: without(value, *shared) for name, value in values.items()}
    return shared, {name: rest for name, rest in differing.items() if rest}


def _common(versions: Mapping[str, str]) -> str:
    """Return the version that all tasks share; otherwise all of them, in their order."""
    return ", ".join(dict.fromkeys(versions.values()))
