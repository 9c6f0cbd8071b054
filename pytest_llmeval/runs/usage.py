"""Resource use of a run: time and tokens from its records, cost from ``usage.jsonl``.

That file is appended to during the run, so that it includes the usage of killed sessions.
``run.json`` has its sums, and the prices.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import Record
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.storage.usage_log import Counts
from pytest_llmeval.storage.usage_log import stored_prices
from pytest_llmeval.storage.usage_log import usage_rows

Key = tuple[str, str, str]
"""(model, benchmark, scorer)."""


@dataclass(frozen=True)
class ResourceUse:
    """Time and tokens of the answers of a result, including those in other option orders.

    A value is None if it is not known for any answer.
    """

    #: Sum of the model's time per answer; not wall-clock time if it answers concurrently.
    seconds: float | None = None
    #: Number of answers with a known time.
    timed: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Cost:
    """Cost of the answers of results; usage is counted by benchmark, not by protocol."""

    #: In the currency of the prices.
    amount: float
    #: Scorers whose results share the cost.
    scorers: tuple[str, ...]


def resource_use(records: Iterable[Record]) -> dict[Key, ResourceUse]:
    """Sum the time and tokens of every result; further scorers of the same answers have none.

    Content-free prompts are attributed to the calibrated result, order tests to none.
    """
    by_result: dict[Key, list[Record]] = {}
    for record in records:
        if not record.left_out and not record.response_of:
            scorer = f"{record.scorer}+contextual" if record.content_free else record.scorer
            scorer = record.arm if record.order_test else scorer
            by_result.setdefault((record.model, record.benchmark, scorer), []).append(record)
    return {key: _sum_use(own) for key, own in by_result.items()}


def _sum_use(records: Sequence[Record]) -> ResourceUse:
    seconds = [record.seconds for record in records if record.seconds is not None]
    prompt = [record.prompt_tokens for record in records if record.prompt_tokens is not None]
    completion = [r.completion_tokens for r in records if r.completion_tokens is not None]
    return ResourceUse(
        sum(seconds) if seconds else None,
        len(seconds),
        sum(prompt) if prompt else None,
        sum(completion) if completion else None,
    )


def cost(model: str, counts: Counts, prices: Prices) -> float | None:
    """Return the cost of the tokens; None for a model without a price."""
    price = prices.of(model)
    if price is None:
        return None
    return price.of(
        int(counts["prompt_tokens"]), int(counts["completion_tokens"]), int(counts["cached_tokens"])
    )


def total_cost(manifest: Mapping[str, Any], prices: Prices | None = None) -> float | None:
    """Return the cost of a run, at ``prices`` or its stored ones; None if no price is known."""
    rows, prices = usage_rows(manifest), prices or stored_prices(manifest)
    amounts = [
        amount
        for (model, _), counts in rows.items()
        if (amount := cost(model, counts, prices)) is not None
    ]
    return sum(amounts) if amounts else None


def costs(manifest: Mapping[str, Any], results: Iterable[Key]) -> dict[Key, Cost]:
    """Return the cost of each result with a price; further scorers of the same answers have none."""
    rows, prices = usage_rows(manifest), stored_prices(manifest)
    with_requests = {
        (planned.benchmark, variant.scorer)
        for planned in map(PlannedResult.from_json, manifest["results"])
        if planned.responses_of is None
        for variant in planned.ways
    }
    scorers: dict[tuple[str, str], list[str]] = {}
    for model, benchmark, scorer in results:
        if (benchmark, scorer) in with_requests:
            scorers.setdefault((model, benchmark), []).append(scorer)
    shares = {}
    for (model, benchmark), sharing in scorers.items():
        counts = rows.get((model, benchmark))
        amount = None if counts is None else cost(model, counts, prices)
        if amount is not None:
            for scorer in sharing:
                shares[model, benchmark, scorer] = Cost(amount, tuple(sharing))
    return shares
