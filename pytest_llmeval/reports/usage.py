"""What endpoints were used for, in words: requests, tokens and money, by model and benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping

from pytest_llmeval.prices import Prices

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


def cost(model: str, counts: Counts, prices: Prices) -> float | None:
    """What the tokens cost; None for a model without a price."""
    price = prices.models.get(model.partition("?")[0])
    if price is None:
        return None
    return price.of(
        int(counts["prompt_tokens"]), int(counts["completion_tokens"]), int(counts["cached_tokens"])
    )


def usage_lines(rows: Rows, prices: Prices) -> list[str]:
    """A line for every model and, where it answered several, for each of its benchmarks."""
    lines = []
    for model in dict.fromkeys(model for model, _ in rows):
        own = {benchmark: counts for (name, benchmark), counts in rows.items() if name == model}
        ((_, total),) = add([(model, "", counts) for counts in own.values()]).items()
        lines.append(f"{model}: {_line(model, total, prices)}")
        if len(own) > 1:
            lines += [f"  {name}: {_line(model, counts, prices)}" for name, counts in own.items()]
    return lines


def _line(model: str, counts: Counts, prices: Prices) -> str:
    used = {name: f"{value:,.0f}" for name, value in counts.items()}
    money = cost(model, counts, prices)
    return (
        f"{used['requests']} requests ({used['retries']} retries),"
        f" {used['from_cache']} answers from the cache; tokens: {used['prompt_tokens']} prompt"
        f" ({used['cached_tokens']} cached), {used['completion_tokens']} completion"
        f" ({used['reasoning_tokens']} reasoning)"
        + ("" if money is None else f"; {prices.money(money)}")
    )
