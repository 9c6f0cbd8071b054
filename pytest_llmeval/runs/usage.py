"""What a run has used: time and tokens by its records, endpoints and money by ``usage.jsonl``.

That file grows while a run answers, so that what a killed session has used is not forgotten.
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
from pytest_llmeval.storage.usage_log import prices_of
from pytest_llmeval.storage.usage_log import rows_of

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
