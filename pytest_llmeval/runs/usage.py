"""What a run has used: time and tokens by its records, endpoints and money by ``usage.jsonl``.

That file grows while a run answers, so that what a killed session has used is not forgotten.
``run.json`` has its sums, and the prices.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_llmeval.core import Record
from pytest_llmeval.core import RunError
from pytest_llmeval.core.usage import Price
from pytest_llmeval.planning.plan import PlannedResult
from pytest_llmeval.prices import Prices
from pytest_llmeval.prices import priced_as
from pytest_llmeval.runs.appending import LineWriter
from pytest_llmeval.runs.appending import whole_lines

Counts = Mapping[str, float]

Rows = Mapping[tuple[str, str], Counts]
"""(model, benchmark) → counts, as ``Usage`` names them."""

Key = tuple[str, str, str]
"""(model, benchmark, scorer)."""


@dataclass(frozen=True)
class Spent:
    """What the answers of a result took, as far as it is known; None where none of it is.

    ``seconds``: of the model's time, which is not that of a clock where it answers several at a
    time. ``timed``: how many answers they are of. Answers in other orders of the options count too.
    """

    seconds: float | None = None
    timed: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Cost:
    """What the answers of some results cost; usage is counted by benchmark, not by protocol.

    ``amount``: in the money of the prices. ``scorers``: those whose results share it.
    """

    amount: float
    scorers: tuple[str, ...]


def spent(records: Iterable[Record]) -> dict[Key, Spent]:
    """What every result took; what another scorer read of its answers took nothing.

    Content-free prompts are what the calibrated result took.
    """
    found: dict[Key, list[Record]] = {}
    for record in records:
        if not record.left_out and not record.response_of:
            scorer = f"{record.scorer}+contextual" if record.content_free else record.scorer
            found.setdefault((record.model, record.benchmark, scorer), []).append(record)
    return {key: _spent(own) for key, own in found.items()}


def _spent(records: Sequence[Record]) -> Spent:
    seconds = [record.seconds for record in records if record.seconds is not None]
    read = [record.prompt_tokens for record in records if record.prompt_tokens is not None]
    written = [r.completion_tokens for r in records if r.completion_tokens is not None]
    return Spent(
        sum(seconds) if seconds else None,
        len(seconds),
        sum(read) if read else None,
        sum(written) if written else None,
    )


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
        priced_as(model): asdict(price)
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


def cost(model: str, counts: Counts, prices: Prices) -> float | None:
    """What the tokens cost; None for a model without a price."""
    price = prices.of(model)
    if price is None:
        return None
    return price.of(
        int(counts["prompt_tokens"]), int(counts["completion_tokens"]), int(counts["cached_tokens"])
    )


def total_cost(manifest: Mapping[str, Any], prices: Prices | None = None) -> float | None:
    """What the whole run cost, at its own prices or at others; None where no price is known."""
    rows, prices = rows_of(manifest), prices or prices_of(manifest)
    known = [cost(model, counts, prices) for (model, _), counts in rows.items()]
    return sum(one for one in known if one is not None) if set(known) - {None} else None


def costs(manifest: Mapping[str, Any], results: Iterable[Key]) -> dict[Key, Cost]:
    """What each result cost, as far as prices are known; one of others' responses costs nothing."""
    rows, prices = rows_of(manifest), prices_of(manifest)
    asked = {
        (planned.benchmark, way.scorer)
        for planned in map(PlannedResult.from_json, manifest["results"])
        if planned.responses_of is None
        for way in planned.ways
    }
    scorers: dict[tuple[str, str], list[str]] = {}
    for model, benchmark, scorer in results:
        if (benchmark, scorer) in asked:
            scorers.setdefault((model, benchmark), []).append(scorer)
    found = {}
    for (model, benchmark), sharing in scorers.items():
        counts = rows.get((model, benchmark))
        amount = None if counts is None else cost(model, counts, prices)
        if amount is not None:
            for scorer in sharing:
                found[model, benchmark, scorer] = Cost(amount, tuple(sharing))
    return found


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
