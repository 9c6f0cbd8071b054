"""``--llm-dry-run``: the requests, tokens and cost of a run, without a model."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from pytest_llmeval.core import Item
from pytest_llmeval.core import Request
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.jobs import KINDS
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.models import load_model
from pytest_llmeval.plugin.estimates import RequestEstimate
from pytest_llmeval.plugin.estimates import estimates
from pytest_llmeval.plugin.waves import expected_share_lines
from pytest_llmeval.reports.terminal.summary import write_summary
from pytest_llmeval.reports.terminal.tables import open_table
from pytest_llmeval.scorers import get_scorer


def make_dry_run(
    plan: Plan, suite: Sequence[Evaluation], items: Mapping[str, Item], settings: Settings
) -> DryRun:
    """Return the plugin of a dry run; ``items``: by node id.

    Raises ConfigError for a model that cannot be opened, and for a run that cannot stop early.
    """
    specs = () if plan.own_model else settings.models
    models = {n: load_model(spec, **settings.endpoint) for n, spec in enumerate(specs)}
    benchmark_estimates = estimates(plan, suite, items, models, settings.prices)
    lines = lacking_jobs(plan, suite, items, settings)
    if settings.sequential:
        lines += expected_share_lines(plan, settings, benchmark_estimates)
    return DryRun(benchmark_estimates, settings.prices, lines)


def lacking_jobs(
    plan: Plan, suite: Sequence[Evaluation], items: Mapping[str, Item], settings: Settings
) -> list[str]:
    """Return a line for every benchmark whose scorers need something that is not on this machine yet."""
    lines = []
    for number, evaluated in enumerate(suite):
        benchmark_items = {
            planned.item: items[planned.nodeid]
            for planned in plan.items
            if planned.result == number
        }
        jobs = get_scorer(evaluated.protocol.scorer).jobs
        solved = [item for item in benchmark_items.values() if "solution" in item.fields]
        if jobs is not None and solved:
            lacking = KINDS[jobs.kind].lacking(settings, list(map(jobs.reference, solved)))
            lines += [f"{evaluated.benchmark.name}: {lacking}"] if lacking else []
    return lines


class DryRun:
    """Plugin of a session that runs no tests and prints the estimates."""

    def __init__(
        self, estimates: Sequence[RequestEstimate], prices: Prices, lacking: Sequence[str] = ()
    ) -> None:
        self._estimates = estimates
        self._prices = prices
        self._lacking = lacking

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        return True  # stops the hook: no test is run

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write_summary(terminalreporter, dry_run_parts(self._estimates, self._prices, self._lacking))


def dry_run_parts(
    estimates: Sequence[RequestEstimate], prices: Prices, lacking: Iterable[str] = ()
) -> Iterable[Any]:
    """Return the first prompt of every benchmark, then the estimates, as rich renderables.

    ``lacking``: lines of ``lacking_jobs``.
    """
    printed: set[tuple[str, str]] = set()
    for estimate in estimates:
        if (estimate.benchmark, estimate.scorer) in printed:
            continue
        printed.add((estimate.benchmark, estimate.scorer))
        yield Text(
            f"first prompt of {estimate.benchmark}[{estimate.scorer}], {estimate.first.id}:",
            style="bold",
        )
        yield Text(f"{_prompt_text(estimate.first)}\n")
    for model in dict.fromkeys(estimate.model for estimate in estimates):
        yield Text(f"model {model}", style="bold")
        yield _table([estimate for estimate in estimates if estimate.model == model], prices)
    costs = [estimate.cost for estimate in estimates if estimate.cost is not None]
    if costs:
        yield Text(f"total: at most about {prices.format_amount(sum(costs))}, without retries")
    for line in lacking:
        yield Text(line, style="yellow")
    yield Text("dry run: no request was sent, nothing was measured", style="yellow")


def _table(estimates: Iterable[RequestEstimate], prices: Prices) -> Table:
    table = open_table()
    table.add_column("benchmark[scorer]", overflow="fold")
    for name in ("items", "requests", "prompt tokens", "answer tokens", "cost"):
        table.add_column(name, justify="right")
    for estimate in estimates:
        table.add_row(
            Text(f"{estimate.benchmark}[{estimate.scorer}]"),
            f"{estimate.items:,}",
            f"{estimate.requests:,}",
            f"~{estimate.prompt_tokens:,}",
            f"<={estimate.answer_tokens:,}",
            "-" if estimate.cost is None else f"<={prices.format_amount(estimate.cost)}",
        )
    return table


def _prompt_text(request: Request) -> str:
    prompt = request.prompts[0] if request.given else request.prompt
    if not request.chat:
        return prompt.text
    turns = [f"[{turn['role']}]\n{turn['content']}" for turn in prompt.messages()]
    if prompt.prefix:
        turns.append(f"[assistant]\n{prompt.prefix}")
    return "\n".join(turns)
