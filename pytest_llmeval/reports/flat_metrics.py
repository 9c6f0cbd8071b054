"""The numbers of a judged run as flat names and values, for experiment trackers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import result_name

KEY_LENGTH = 250
"""The longest key that MLflow stores, in characters."""

_COUNTS = ("items", "answered", "correct", "unparsed", "errors", "missing")


def flat_metrics(judged: JudgedRun) -> dict[str, float]:
    """Return the numbers: ``mmlu.letter/accuracy``, ``…/accuracy_low95``, ``…/subjects/law``.

    With several models the name of the model comes first. A number that is not defined, such as the
    accuracy of an incomplete result, is left out.
    """
    metrics: dict[str, float] = {}
    for result in judged.results:
        prefix = result_key_text(judged, result)
        for name, value in _numbers(result):
            if value is not None:
                metrics[tracker_key(f"{prefix}/{name}")] = float(value)
    return metrics


def flat_parameters(judged: JudgedRun) -> dict[str, str]:
    """Return what makes the numbers comparable: protocol and data of every result."""
    return {
        tracker_key(f"{result_key_text(judged, result)}/{name}"): str(result[name])
        for result in judged.results
        for name in ("protocol", "protocol_fingerprint", "data_hash")
    }


def flat_tags(judged: JudgedRun) -> dict[str, str]:
    """Return the verdict, the run, its models, and the origin of an imported run."""
    imported = judged.manifest.get("imported")
    return {
        "llmeval.verdict": judged.verdict,
        "llmeval.run": judged.path.name,
        "llmeval.models": ", ".join(judged.models),
        **({"llmeval.imported": imported["harness"]} if imported else {}),
    }


def result_key_text(judged: JudgedRun, result: Mapping[str, Any]) -> str:
    """Return ``mmlu.letter`` for a result, after the model if the run has several."""
    name = re.sub(r"\[(.*)\]$", r".\1", result_name(result))
    return f"{result['model']}/{name}" if len(judged.models) > 1 else name


def tracker_key(text: str) -> str:
    """Return a key of the characters that trackers accept, at most ``KEY_LENGTH`` of them."""
    return re.sub(r"[^A-Za-z0-9_./ -]", "_", text)[:KEY_LENGTH]


def _numbers(result: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    low, high = result["wilson95"] or (None, None)
    yield "accuracy", result["accuracy"]
    if result["accuracy"] is not None:
        yield "accuracy_low95", low
        yield "accuracy_high95", high
    yield "macro_accuracy", result["macro_accuracy"]
    yield "normalized_gain", result["normalized_gain"]
    for name in _COUNTS:
        yield name, result[name]
    for subject, counts in result["subjects"].items():
        yield f"subjects/{subject}", counts["accuracy"]
