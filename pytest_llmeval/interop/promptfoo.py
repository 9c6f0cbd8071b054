"""Results of promptfoo, format 3: ``promptfoo eval --output results.json``.

A test is an item, a provider the model, and each prompt a benchmark. ``--repeat`` makes further
tests: ``testIdx`` counts repetitions of the first test, then of the second (``evaluator.ts``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
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

PREFIX = "promptfoo"
VERSION = 3
"""Version of promptfoo's format of results."""

_SUCCESS = "success"
_ASSERTED, _ERROR = 1, 2  # ResultFailureReason
_SECRETS = ("apiKey", "apiHost", "apiBaseUrl", "headers", "organization")

Row = Mapping[str, Any]


def is_promptfoo(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON document holds results of promptfoo."""
    return "evalId" in content and isinstance(content.get("results"), dict)


def read_promptfoo(file: Path, content: Mapping[str, Any], options: ImportOptions) -> Log:
    """Read results. Raises ConfigError, in one line, for those that are not whole."""
    results = content["results"]
    if results.get("version") != VERSION:
        raise ConfigError(
            f"{file} has version {results.get('version')!r} of promptfoo's results; version {VERSION}"
            " is read"
        )
    model, rows = _of_one_provider(str(file), results["results"], options.model)
    prompts = list(dict.fromkeys(_template(row) for row in sorted(rows, key=_place)))
    name = options.name or content["config"].get("description") or file.stem
    repeat = int((content.get("runtimeOptions") or {}).get("repeat") or 1)
    benchmarks, notes = [], []
    for number, prompt in enumerate(prompts, start=1):
        own = [row for row in rows if _template(row) == prompt]
        suffix = f"-prompt{number}" if len(prompts) > 1 else ""
        benchmark, more = _benchmark(str(file), own, repeat, f"{name}{suffix}", content, options)
        benchmarks.append(benchmark)
        notes += more
    _check_counts(str(file), results, model)
    return Log(
        harness="promptfoo",
        version=str((content.get("metadata") or {}).get("promptfooVersion", "")),
        model=model,
        model_fingerprint=None,
        started=results.get("timestamp"),
        benchmarks=tuple(benchmarks),
        files=(file,),
        notes=tuple(dict.fromkeys(notes)),
    )


def _place(row: Row) -> tuple[int, int]:
    return int(row["promptIdx"]), int(row["testIdx"])


def _template(row: Row) -> str:
    """Return the prompt of a row before its variables are filled in."""
    return str(row["prompt"].get("label") or row["promptId"])


# Providers ---------------------------------------------------------------------------------


def _of_one_provider(log: str, rows: Sequence[Row], given: str | None) -> tuple[str, list[Row]]:
    """Return the name of the model and its rows; a log with several has to be imported one by one."""
    if not rows:
        raise ConfigError(f"{log} has no results")
    providers = list(dict.fromkeys(_provider(row) for row in rows))
    if len(providers) == 1:
        return model_name(log, providers[0], given), list(rows)
    if given is None:
        raise ConfigError(
            f"{log} has {len(providers)} providers ({', '.join(providers)}): choose one with --model"
        )
    if given not in providers:
        raise ConfigError(f"{log} has no provider {given!r}{suggestion(given, providers)}")
    return model_name(log, given, None), [row for row in rows if _provider(row) == given]


def _provider(row: Row) -> str:
    provider = row["provider"]
    return str(provider.get("label") or provider["id"])


def _provider_config(content: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """Return the configuration of a provider, without what identifies model, account and address."""
    own = row["provider"].get("config")
    if own is None:
        for entry in content["config"].get("providers") or ():
            if isinstance(entry, Mapping) and _provider(row) in (
                entry.get("label"),
                entry.get("id"),
            ):
                own = entry.get("config")
    config: dict[str, Any] = cleaned(without(own or {}, *_SECRETS))
    return config


# Tests -------------------------------------------------------------------------------------


def _benchmark(
    log: str,
    rows: Sequence[Row],
    repeat: int,
    name: str,
    content: Mapping[str, Any],
    options: ImportOptions,
) -> tuple[LoggedBenchmark, list[str]]:
    benchmark = benchmark_name(PREFIX, name)
    collector, requests = Collector(log), SetHash()
    ids = _ids(rows, repeat)
    partial = _partial_metrics(rows)
    for row in sorted(rows, key=_place):
        test, sample = divmod(int(row["testIdx"]), repeat)
        item = ids[test]
        requests.add(item, row["prompt"]["raw"])
        collector.add(
            _answer(row, item, sample, _subject(log, row, options.subject, benchmark)),
            _values(row, partial),
            _content(row),
            error=_error(row),
        )
    names = dict.fromkeys(name for row in rows for name in _values(row, partial))
    scorers, answers, notes = collector.scored(names, options.scorers, PREFIX)
    notes += [
        f"scorer {scorer_name(PREFIX, metric)} is left out: not every test has an assertion for it"
        for metric in partial
    ]
    first = rows[0]
    protocol = {
        "ask": "text",
        "chat": True,
        "prompt": first["prompt"].get("label"),
        "prompt_config": cleaned(first["prompt"].get("config") or {}),
        "provider": _provider_config(content, first),
        "requests": requests.hexdigest(),
    }
    return (
        LoggedBenchmark(
            name=benchmark,
            version=str(VERSION),
            protocol=protocol,
            scorers={scorer: {} for scorer in scorers},
            answers=answers,
            data_hash=collector.data.hexdigest(),
            sizes=whole_sizes(log, answers, None, None, options),
            chance=None,
            samples=collector.samples,
        ),
        notes,
    )


def _ids(rows: Iterable[Row], repeat: int) -> dict[int, str]:
    """Return test → id: its description if all tests have one of their own, else its number."""
    tests = {int(row["testIdx"]) // repeat: row["testCase"] for row in rows}
    described = {
        number: safe_id(str(test["description"]))
        for number, test in tests.items()
        if test.get("description")
    }
    if len(set(described.values())) == len(tests):
        return described
    return {number: f"test-{number:04d}" for number in tests}


def _content(row: Row) -> str:
    """Return the hash of variables and assertions, which are the question and the right answer.

    Variables of the run, such as ``_conversation``, have a leading underscore.
    """
    test = row["testCase"]
    variables = {key: value for key, value in row["vars"].items() if not key.startswith("_")}
    return short_hash(
        cleaned(variables),
        cleaned(test.get("assert") or []),
        test.get("threshold"),
        cleaned(without(test.get("options") or {}, "provider")),
    )


def _subject(log: str, row: Row, field: str | None, benchmark: str) -> str:
    if field is None:
        return benchmark.removeprefix(f"{PREFIX}_")
    metadata = row["testCase"].get("metadata") or {}
    if not isinstance(metadata.get(field), str | int | bool) or metadata[field] == "":
        raise ConfigError(
            f"{log}: test {row['testIdx']}: no text or number in its metadata field {field!r}"
            f"{'' if field in metadata else suggestion(field, map(str, metadata))}"
        )
    return str(metadata[field])


def _partial_metrics(rows: Iterable[Row]) -> list[str]:
    """Return the named metrics that only some of the tests assert."""
    asserted = [
        {str(entry["metric"]) for entry in row["testCase"].get("assert") or () if "metric" in entry}
        for row in rows
    ]
    everywhere = set.intersection(*asserted)
    return sorted(set().union(*asserted) - everywhere)


def _values(row: Row, partial: Iterable[str]) -> dict[str, Value]:
    values = {scorer_name(PREFIX, _SUCCESS): Value(row["success"])}
    for metric, value in (row.get("namedScores") or {}).items():
        if metric not in partial:
            values[scorer_name(PREFIX, metric)] = Value(value)
    return values


def _error(row: Row) -> str | None:
    """Return why a row has no verdict: the provider failed, or no assertion was evaluated."""
    reason = row.get("failureReason")
    if row["success"] or reason == _ASSERTED or (reason is None and row.get("gradingResult")):
        return None
    return str(row.get("error") or "no assertion was evaluated")


def _answer(row: Row, item: str, sample: int, subject: str) -> LoggedAnswer:
    output = (row.get("response") or {}).get("output")
    usage = row.get("tokenUsage") or {}
    expected = [
        str(entry["value"])
        for entry in row["testCase"].get("assert") or ()
        if isinstance(entry.get("value"), str | int | float)
    ]
    prompt = str(row["prompt"]["raw"])
    return LoggedAnswer(
        item,
        subject,
        sample,
        {},
        gold="; ".join(expected),
        text=output if output is None or isinstance(output, str) else json.dumps(output),
        prompt_tokens=usage.get("prompt"),
        completion_tokens=usage.get("completion"),
        prompt_sha256=hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest(),
        seconds=row["latencyMs"] / 1000 if "latencyMs" in row else None,
    )


def _check_counts(log: str, results: Mapping[str, Any], model: str) -> None:
    """Check the rows against promptfoo's own counts. Raises ConfigError if they differ."""
    stats, rows = results["stats"], results["results"]
    failed = [row for row in rows if not row["success"]]
    errors = sum(row.get("failureReason") == _ERROR for row in failed)
    logged = {
        "successes": len(rows) - len(failed),
        "failures": len(failed) - errors,
        "errors": errors,
    }
    for kind, number in logged.items():
        if stats.get(kind, number) != number:
            raise ConfigError(
                f"{log} has {number:,} {kind} and reports {stats[kind]:,}: it is not the whole log"
            )
