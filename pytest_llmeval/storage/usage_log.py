"""Usage of a run: ``usage.jsonl``, appended to during the run, and its sums in ``run.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_llmeval.core import RunError
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.core.prices import price_key
from pytest_llmeval.core.usage import Price
from pytest_llmeval.storage.line_writer import LineWriter
from pytest_llmeval.storage.line_writer import whole_lines

Counts = Mapping[str, float]


Rows = Mapping[tuple[str, str], Counts]
"""(model, benchmark) → counts by the field names of ``Usage``."""


def sum_usage(
    *tables: Iterable[tuple[str, str, Counts]],
) -> dict[tuple[str, str], dict[str, float]]:
    """Sum the rows of each model and benchmark."""
    total: dict[tuple[str, str], dict[str, float]] = {}
    for table in tables:
        for model, benchmark, counts in table:
            row = total.setdefault((model, benchmark), {})
            for name, value in counts.items():
                row[name] = row.get(name, 0) + value
    return total


def usage_rows(manifest: Mapping[str, Any]) -> Rows:
    """Return the usage of a run, over all its sessions."""
    return sum_usage(manifest.get("usage", ()))


def stored_prices(manifest: Mapping[str, Any]) -> Prices:
    """Return the prices that are stored with a run."""
    stored = manifest.get("prices", {})
    models = {spec: Price(**price) for spec, price in stored.get("models", {}).items()}
    return Prices(stored.get("currency", ""), models)


def with_usage(manifest: Mapping[str, Any], rows: Rows, prices: Prices) -> dict[str, Any]:
    """Return ``run.json`` with the usage of all sessions, and the prices of its models."""
    return with_prices({**manifest, **_usage(rows)}, (model for model, _ in rows), prices)


def with_prices(
    manifest: Mapping[str, Any], models: Iterable[str], prices: Prices
) -> dict[str, Any]:
    """Return ``run.json`` with the prices of these models, unchanged if none of them has one."""
    priced = {
        price_key(model): asdict(price)
        for model in models
        if (price := prices.of(model)) is not None
    }
    if not priced:
        return {**manifest}
    return {**manifest, "prices": {"currency": prices.currency, "models": priced}}


def merged_usage(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the usage of several runs as fields of ``run.json``, with prices if all had the same."""
    value = _usage(sum_usage(*(manifest.get("usage", ()) for manifest in manifests)))
    prices = [manifest["prices"] for manifest in manifests if "prices" in manifest]
    if prices and all(price == prices[0] for price in prices):
        value["prices"] = prices[0]
    return value


def _usage(rows: Rows) -> dict[str, Any]:
    return {"usage": [[*key, counts] for key, counts in rows.items()]} if rows else {}


class UsageLog:
    """Writer that appends the usage of this process since its last call to ``usage.jsonl``.

    A line is ``[model, benchmark, counts]``; the usage of a run is the sum of all lines of all
    processes and sessions.
    """

    def __init__(self, path: Path) -> None:
        self._writer = LineWriter(path)
        self._written: dict[tuple[str, str], Counts] = {}

    def note(self, rows: Iterable[tuple[str, str, Counts]]) -> None:
        """Write the increase since the last call; ``rows`` are the counts since the process started.

        Raises RunError if it cannot be written.
        """
        lines = []
        for model, benchmark, counts in rows:
            before = self._written.get((model, benchmark), {})
            if counts != before:
                # The first line has every count, including zeros.
                more = {
                    name: count - before.get(name, 0)
                    for name, count in counts.items()
                    if count != before.get(name)
                }
                lines.append(json.dumps([model, benchmark, more], ensure_ascii=False) + "\n")
                self._written[model, benchmark] = dict(counts)
        if lines:
            self._writer.write("".join(lines).encode("utf-8", "replace"))

    def close(self) -> None:
        self._writer.close()


def read_usage(path: Path) -> Rows:
    """Return the sums of a ``usage.jsonl``. Raises RunError, naming the line, for a damaged line."""
    rows = []
    for number, line in whole_lines(path):
        try:
            model, benchmark, counts = json.loads(line)
            if not all(type(count) in (int, float) for count in counts.values()):
                raise TypeError("a count is not a number")
            rows.append((str(model), str(benchmark), counts))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise RunError(f"{path}, line {number}: damaged usage ({error})") from None
    return sum_usage(rows)
