"""What a run has used, in words: time, requests, tokens and money."""

from __future__ import annotations

from pytest_llmeval.core.prices import Prices
from pytest_llmeval.runs.usage import cost
from pytest_llmeval.storage.usage_log import Counts
from pytest_llmeval.storage.usage_log import Rows
from pytest_llmeval.storage.usage_log import add


def usage_lines(rows: Rows, prices: Prices, *, resumed: bool = False) -> list[str]:
    """A line for every model and, where it answered several, for each of its benchmarks.

    ``resumed``: of a run with earlier sessions, which are in the sums.
    """
    lines = []
    for model in dict.fromkeys(model for model, _ in rows):
        own = {benchmark: counts for (name, benchmark), counts in rows.items() if name == model}
        ((_, total),) = add([(model, "", counts) for counts in own.values()]).items()
        sessions = " (all sessions)" if resumed else ""
        lines.append(f"{model}{sessions}: {_line(model, total, prices)}")
        if len(own) > 1:
            lines += [f"  {name}: {_line(model, counts, prices)}" for name, counts in own.items()]
    return lines


def duration(seconds: float) -> str:
    """``2.5 s``, ``3 min 20 s`` or ``1 h 0 min 5 s``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3600)
    return (f"{hours} h " if hours else "") + f"{rest // 60} min {rest % 60} s"


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
