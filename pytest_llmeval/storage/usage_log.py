"""Usage of a run: ``usage.jsonl``, which grows while the run answers, and its sums in ``run.json``."""

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
"""(model, benchmark) → counts, as ``Usage`` names them."""


def add(*tables: Iterable[tuple[str, str, Counts]]) -> dict[tuple[str, str], dict[str, float]]:
    """The sums of all rows about the same model and benchmark."""
    total: dict[tuple[str, str], dict[str, float]] = {}
    for table in tables:
        for model, benchmark, counts in table:
            row = total.setdefault((model, benchmark), {})
            for name, value in counts.items():
                row[name] = row.get(name, 0) + value
    return total


def rows_of(manifest: Mapping[str, Any]) -> Rows:
    """What a run used, over all its sessions."""
    return add(manifest.get("usage", ()))


def prices_of(manifest: Mapping[str, Any]) -> Prices:
    """The prices of the run's models, as far as the run was told them."""
    kept = manifest.get("prices", {})
    models = {spec: Price(**price) for spec, price in kept.get("models", {}).items()}
    return Prices(kept.get("currency", ""), models)


def with_usage(manifest: Mapping[str, Any], rows: Rows, prices: Prices) -> dict[str, Any]:
    """``run.json`` of a run that has used so much, in all its sessions."""
    return with_prices({**manifest, **_usage(rows)}, (model for model, _ in rows), prices)


def with_prices(
    manifest: Mapping[str, Any], models: Iterable[str], prices: Prices
) -> dict[str, Any]:
    """``run.json`` with the prices of these models; earlier ones are kept where none has one."""
    priced = {
        price_key(model): asdict(price)
        for model in models
        if (price := prices.of(model)) is not None
    }
    if not priced:
        return {**manifest}
    return {**manifest, "prices": {"currency": prices.currency, "models": priced}}


def merged_usage(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What ``run.json`` says of several runs as one; no prices unless they had the same."""
    value = _usage(add(*(manifest.get("usage", ()) for manifest in manifests)))
    prices = [manifest["prices"] for manifest in manifests if "prices" in manifest]
    if prices and all(one == prices[0] for one in prices):
        value["prices"] = prices[0]
    return value


def _usage(rows: Rows) -> dict[str, Any]:
    return {"usage": [[*about, counts] for about, counts in rows.items()]} if rows else {}


class UsageLog:
    """Appends to ``usage.jsonl`` what this process has used since it last did.

    A line is ``[model, benchmark, counts]``; all lines of all processes and sessions are summed.
    """

    def __init__(self, path: Path) -> None:
        self._writer = LineWriter(path)
        self._noted: dict[tuple[str, str], Counts] = {}

    def note(self, rows: Iterable[tuple[str, str, Counts]]) -> None:
        """Write what ``rows``, the counts since the process began, are more than last time.

        Raises RunError where that cannot be done.
        """
        lines = []
        for model, benchmark, counts in rows:
            before = self._noted.get((model, benchmark), {})
            if counts != before:
                # The first line has every count, also those that are 0.
                more = {
                    name: count - before.get(name, 0)
                    for name, count in counts.items()
                    if count != before.get(name)
                }
                lines.append(json.dumps([model, benchmark, more], ensure_ascii=False) + "\n")
                self._noted[model, benchmark] = dict(counts)
        if lines:
            self._writer.write("".join(lines).encode("utf-8", "replace"))

    def close(self) -> None:
        self._writer.close()


def read_usage(path: Path) -> Rows:
    """The sums of a ``usage.jsonl``. Raises RunError, naming the line, for anything else."""
    rows = []
    for number, line in whole_lines(path):
        try:
            model, benchmark, counts = json.loads(line)
            if not all(type(count) in (int, float) for count in counts.values()):
                raise TypeError("a count is not a number")
            rows.append((str(model), str(benchmark), counts))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise RunError(f"{path}, line {number}: damaged usage ({error})") from None
    return add(rows)
