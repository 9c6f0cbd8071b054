"""Line numbers of gates in a thresholds file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_weights

HYBRID_PREFIX = "hybrids."
"""Prefix of a hybrid's name in the metric of its verdict."""

Keys = tuple[str, ...]


def key_lines(text: str) -> dict[Keys, int]:
    """Map every table and key of a TOML text to the line, from 1, on which it first occurs.

    A TOML file is a sequence of statements of whole lines: headers, and keys with their values.
    The smallest group of lines that parses is one statement, and ``tomllib`` returns its keys.
    """
    lines_by_keys: dict[Keys, int] = {}
    table: Keys = ()
    lines: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        lines.append(line)
        try:
            statement = tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError:
            continue  # the value continues on the next line
        header = line.lstrip().startswith("[") and len(lines) == 1
        base = () if header else table
        paths = [base + path for path in _paths(statement)]
        for path in paths:
            lines_by_keys.setdefault(path, number - len(lines) + 1)
        if header:
            table = max(paths, key=len)
        lines = []
    return lines_by_keys


def _paths(value: Mapping[str, Any]) -> Iterator[Keys]:
    """Yield the paths of all keys in nested tables."""
    for key, inner in value.items():
        yield (key,)
        if isinstance(inner, Mapping):
            yield from ((key, *path) for path in _paths(inner))


def gate_line(verdict: Verdict, lines: Mapping[Keys, int]) -> int | None:
    """Return the line of a verdict's gate, or else of its benchmark's table.

    ``lines``: ``key_lines`` of the file. None for a benchmark that the file does not name.
    """
    if (verdict.metric or "").startswith(HYBRID_PREFIX):
        lines = {_normalize_hybrid(keys): line for keys, line in lines.items()}
    return next((lines[keys] for keys in _candidates(verdict) if keys in lines), None)


def _normalize_hybrid(keys: Keys) -> Keys:
    """Replace a hybrid's key in the file with the normalized name that its gate has."""
    if "hybrids" not in keys[-2:-1]:
        return keys
    try:
        return (*keys[:-1], hybrid_name(hybrid_weights(keys[-1])))
    except ValueError:
        return keys


def _candidates(verdict: Verdict) -> Iterable[Keys]:
    """Yield the possible paths of a gate; a model's own table precedes that of all models."""
    inside: Keys = ()
    if f"::scorers.{verdict.scorer}::" in verdict.id:
        inside = ("scorers", str(verdict.scorer))
    metric = verdict.metric or ""
    if metric.startswith(HYBRID_PREFIX):
        inside, metric = ("hybrids",), metric.removeprefix(HYBRID_PREFIX)
    elif f"::contamination::{metric}" in verdict.id:
        inside = ("contamination",)
    elif f"::twin::{metric}" in verdict.id:
        inside = ("twin",)
    elif metric in ("max_drop", "max_subject_drop", "regression"):
        inside += ("regression",)
    elif verdict.id.endswith(f"::clean::{metric}"):
        inside += ("clean",)
    elif verdict.id.endswith(f"::contamination::{metric}"):
        inside += ("contamination",)
    elif verdict.subject is not None:
        own = f"::subjects.{verdict.subject}::" in verdict.id
        inside += ("subjects", verdict.subject) if own else ("every_subject",)
    heads = [("models", verdict.model or "", "benchmarks"), ("benchmarks",)]
    benchmarks = [(*head, verdict.benchmark) for head in heads]
    yield from ((*benchmark, *inside, metric) for benchmark in benchmarks)
    yield from ((*benchmark, *inside) for benchmark in benchmarks)
    yield from benchmarks
    yield ("models", verdict.model or "")
