"""Results of OpenCompass with details: ``results/MODEL/DATASET.json``.

Only results written with ``dump_details`` have a verdict on each answer (``openicl_eval.py``);
predictions have none. Neither has a version, a configuration or a date.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.interop.collecting import Collector
from pytest_llmeval.interop.collecting import Value
from pytest_llmeval.interop.json_files import read_json
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.log import Log
from pytest_llmeval.interop.log import LoggedAnswer
from pytest_llmeval.interop.log import LoggedBenchmark
from pytest_llmeval.interop.log import whole_sizes
from pytest_llmeval.interop.names import SetHash
from pytest_llmeval.interop.names import benchmark_name
from pytest_llmeval.interop.names import model_name
from pytest_llmeval.interop.names import scorer_name
from pytest_llmeval.interop.names import short_hash

PREFIX = "opencompass"

_ROUNDING = 1e-4  # accuracies are percentages
_SCORER = scorer_name(PREFIX, "correct")


def is_opencompass(content: Mapping[str, Any]) -> bool:
    """Return whether a JSON document holds results or predictions of OpenCompass."""
    return isinstance(content.get("details"), dict | list) or _is_predictions(content)


def _is_predictions(content: Mapping[str, Any]) -> bool:
    entries = list(content.values())
    return bool(entries) and all(
        isinstance(entry, dict) and ("prediction" in entry or "origin_prompt" in entry)
        for entry in entries
    )


def read_opencompass(file: Path, content: Mapping[str, Any], options: ImportOptions) -> Log:
    """Read results. Raises ConfigError, in one line, for predictions, and for results in part."""
    if "details" not in content:
        raise ConfigError(
            f"{file} holds predictions without verdicts: import the file of results/ with details"
            f" (dump_details), or score them here with --llm-model replay:{file}"
        )
    if options.subject is not None:
        raise ConfigError(f"{file}: --subject: answers of OpenCompass have no metadata")
    details = content["details"]
    entries = (
        {key: entry for key, entry in details.items() if isinstance(entry, dict)}
        if isinstance(details, dict)
        else {str(number): entry for number, entry in enumerate(details)}
    )
    predictions = _predictions(file)
    if predictions and len(predictions) != len(entries):
        raise ConfigError(
            f"{file} has details of {len(entries):,} of the {len(predictions):,} predictions: it is"
            " not the whole log"
        )
    name = options.name or file.stem
    collector, requests = Collector(str(file)), SetHash()
    has_prompts = True
    for key, entry in entries.items():
        item = f"{key:0>4}"
        prompt = entry.get("prompt") or predictions.get(key, {}).get("origin_prompt")
        has_prompts = has_prompts and prompt is not None
        requests.add(item, prompt)
        gold = entry.get("references", entry.get("answer", predictions.get(key, {}).get("gold")))
        text = entry.get("origin_prediction", predictions.get(key, {}).get("prediction"))
        answer = entry.get("predictions", entry.get("pred"))
        collector.add(
            LoggedAnswer(
                item,
                name,
                0,
                {},
                gold=str(gold),
                text=text if isinstance(text, str) else None,
            ),
            {_SCORER: Value(entry.get("correct"), None if answer is None else str(answer))}
            if "correct" in entry
            else {},
            short_hash(gold),
        )
    scorers, answers, notes = collector.scored([_SCORER], options.scorers, PREFIX)
    _check_mean(file, content, entries)
    return Log(
        harness="opencompass",
        version="",
        model=model_name(str(file), _model_of(file), options.model),
        model_fingerprint=None,
        started=None,
        benchmarks=(
            LoggedBenchmark(
                name=benchmark_name(PREFIX, name),
                version="",
                protocol={
                    "ask": "choices" if _kind(content) == "PPL" else "text",
                    "chat": False,
                    "requests": requests.hexdigest()
                    if has_prompts
                    else "not compared: not in the log",
                },
                scorers={scorer: {} for scorer in scorers},
                answers=answers,
                data_hash=collector.data.hexdigest(),
                sizes=whole_sizes(str(file), answers, None, None, options),
                chance=None,
            ),
        ),
        files=(file,),
        notes=(
            *notes,
            "the log has no configuration: only prompts and right answers are compared"
            if has_prompts
            else "the log has no configuration and no prompts: only right answers are compared",
        ),
    )


def _kind(content: Mapping[str, Any]) -> str:
    details = content["details"]
    inner = details.get("type") if isinstance(details, dict) else None
    return str(content.get("type") or inner or "GEN")


def _model_of(file: Path) -> str:
    """Return MODEL of ``results/MODEL/DATASET.json``; empty for another path."""
    return file.parent.name if file.parent.parent.name == "results" else ""


def _predictions(file: Path) -> Mapping[str, Any]:
    """Return the predictions that belong to results, of one file or of its parts; empty if none."""
    if file.parent.parent.name != "results":
        return {}
    folder = file.parent.parent.parent / "predictions" / file.parent.name
    whole = folder / file.name
    parts = [whole] if whole.is_file() else sorted(folder.glob(f"{file.stem}_[0-9]*.json"))
    predictions: dict[str, Any] = {}
    for part in parts:
        start = len(predictions)
        content = read_json(part)
        predictions |= {str(start + number): content[str(number)] for number in range(len(content))}
    return predictions


def _check_mean(file: Path, content: Mapping[str, Any], entries: Mapping[str, Any]) -> None:
    """Check the verdicts against the accuracy of the results; ConfigError if they differ."""
    reported = content.get("accuracy")
    verdicts = [entry.get("correct") for entry in entries.values()]
    if isinstance(reported, int | float) and all(isinstance(v, bool | int) for v in verdicts):
        mean = 100 * sum(map(bool, verdicts)) / len(verdicts)
        if abs(mean - reported) > _ROUNDING:
            raise ConfigError(
                f"{file}: the details give an accuracy of {mean:.4f} %, and the file reports"
                f" {reported:.4f} %"
            )
