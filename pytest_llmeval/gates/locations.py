"""On which line of a thresholds file a gate stands."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.metrics import hybrid_name
from pytest_llmeval.metrics import hybrid_weights

HYBRIDS = "hybrids."
"""What stands before a hybrid's name in the metric of its verdict."""

Keys = tuple[str, ...]


def places(text: str) -> dict[Keys, int]:
    """Every table and key of a TOML text → the line, from 1, on which it is first named.

    A TOML file is a sequence of statements, each of whole lines: headers, and keys with their
    values. So what parses by itself is one, and the parser that reads the file finds its keys.
    """
    found: dict[Keys, int] = {}
    table: Keys = ()
    lines: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        lines.append(line)
        try:
            statement = tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError:
            continue  # the value goes on in the next line
        header = line.lstrip().startswith("[") and len(lines) == 1
        base = () if header else table
        paths = [base + path for path in _paths(statement)]
        for path in paths:
            found.setdefault(path, number - len(lines) + 1)
        if header:
            table = max(paths, key=len)
        lines = []
    return found


def _paths(value: Mapping[str, Any]) -> Iterator[Keys]:
    """The paths of all keys in nested tables."""
    for key, inner in value.items():
        yield (key,)
        if isinstance(inner, Mapping):
            yield from ((key, *path) for path in _paths(inner))


def line_of(verdict: Verdict, found: Mapping[Keys, int]) -> int | None:
    """The line of the gate that a verdict is about; that of its benchmark where it has none.

    ``found``: the file's ``places``. None for a benchmark that the file does not name.
    """
    if (verdict.metric or "").startswith(HYBRIDS):
        found = {_as_gated(keys): line for keys, line in found.items()}
    return next((found[keys] for keys in _candidates(verdict) if keys in found), None)


def _as_gated(keys: Keys) -> Keys:
    """The path with a hybrid by the name that its gate has, however the file spells it."""
    if "hybrids" not in keys[-2:-1]:
        return keys
    try:
        return (*keys[:-1], hybrid_name(hybrid_weights(keys[-1])))
    except ValueError:
        return keys


def _candidates(verdict: Verdict) -> Iterable[Keys]:
    """Where a gate may stand: a model's own table goes before that of all models."""
    inside: Keys = ()
    if f"::scorers.{verdict.scorer}::" in verdict.id:
        inside = ("scorers", str(verdict.scorer))
    metric = verdict.metric or ""
    if metric.startswith(HYBRIDS):
        inside, metric = ("hybrids",), metric.removeprefix(HYBRIDS)
    elif metric in ("max_drop", "max_subject_drop", "regression"):
        inside += ("regression",)
    elif verdict.subject is not None:
        own = f"::subjects.{verdict.subject}::" in verdict.id
        inside += ("subjects", verdict.subject) if own else ("every_subject",)
    heads = [("models", verdict.model or "", "benchmarks"), ("benchmarks",)]
    benchmarks = [(*head, verdict.benchmark) for head in heads]
    yield from ((*benchmark, *inside, metric) for benchmark in benchmarks)
    yield from ((*benchmark, *inside) for benchmark in benchmarks)
    yield from benchmarks
    yield ("models", verdict.model or "")
