"""``--llm-dry-run``: the requests, tokens and cost of a run, without a model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from pytest_llmeval.bias.content_free import arms_of_item
from pytest_llmeval.bias.content_free import carrier_ids
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Request
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.jobs import KINDS
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.models import Model
from pytest_llmeval.reports.terminal.summary import write_summary
from pytest_llmeval.reports.terminal.tables import open_table
from pytest_llmeval.scorers import get_scorer

TOKENS_PER_CHARACTER = 0.3
"""English prompts take 0.2 to 0.3 tokens a character; other scripts take more."""


@dataclass(frozen=True)
class Estimate:
    """Requests that one model would get for one benchmark.

    ``requests`` includes those with reordered options and those without content. ``prompt_tokens``
    is estimated from the number of characters; ``answer_tokens`` is the protocol's maximum, more
    than most models use. ``cost`` follows from both, None without a price. ``first`` is the first
    request.
    """

    model: str
    benchmark: str
    scorer: str
    items: int
    requests: int
    prompt_tokens: int
    answer_tokens: int
    cost: float | None
    first: Request


def estimates(
    plan: Plan,
    suite: Sequence[Evaluation],
    items: Mapping[str, Item],
    models: Mapping[int, Model],
    prices: Prices,
) -> list[Estimate]:
    """Return an estimate for every model and benchmark with items.

    ``items``: by node id. ``models``: by index in the plan; a missing model is assumed to support
    every kind of request. Raises ConfigError for a template that fails on an item.
    """
    groups: dict[tuple[int, int], list[Item]] = {}
    for planned in plan.items:
        groups.setdefault((planned.model, planned.result), []).append(items[planned.nodeid])
    return [
        _estimate(plan, suite[result], group, plan.models[model], models.get(model), prices)
        for (model, result), group in groups.items()
    ]


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


def _estimate(
    plan: Plan,
    evaluated: Evaluation,
    items: Sequence[Item],
    spec: str,
    model: Model | None,
    prices: Prices,
) -> Estimate:
    protocol = evaluated.protocol
    if model is not None and protocol.ask not in model.asks:
        protocol = protocol.with_generation()
    carriers = carrier_ids(items) if protocol.ask == "choices" else frozenset()
    counted_requests: list[tuple[int, Request]] = []
    for item in items:
        pool = evaluated.dataset.pool.get(item.subject, ())
        arms = list(arms_of_item(item, evaluated.arms, item.id in carriers))
        # Reordered options give a prompt of the same length, unless a shot cannot be reordered.
        times = protocol.answers_per_item + sum(arm.instead is None for arm, _ in arms)
        counted_requests.append((times, _request(evaluated, protocol, item, pool, plan.seed)))
        counted_requests += [
            (1, _request(evaluated, protocol, variant, pool, plan.seed))
            for arm, variant in arms
            if arm.instead is not None
        ]
    requests = sum(times for times, _ in counted_requests)
    characters = sum(
        times * len(request.prompt.text) * (1 if model is None else model.billed_prompts(request))
        for times, request in counted_requests
    )
    prompt_tokens = math.ceil(characters * TOKENS_PER_CHARACTER)
    answer_tokens = requests * protocol.decoding.max_tokens if protocol.ask == "text" else 0
    price = prices.of(spec)
    return Estimate(
        spec,
        evaluated.benchmark.name,
        protocol.scorer,
        len(items),
        requests,
        prompt_tokens,
        answer_tokens,
        None if price is None else price.of(prompt_tokens, answer_tokens),
        counted_requests[0][1],
    )


class DryRun:
    """Plugin of a session that runs no tests and prints the estimates."""

    def __init__(
        self, estimates: Sequence[Estimate], prices: Prices, lacking: Sequence[str] = ()
    ) -> None:
        self._estimates = estimates
        self._prices = prices
        self._lacking = lacking

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        return True  # stops the hook: no test is run

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write_summary(terminalreporter, dry_run_parts(self._estimates, self._prices, self._lacking))


def _request(
    evaluated: Evaluation, protocol: Protocol, item: Item, pool: Iterable[Item], seed: int
) -> Request:
    """Return the request of an item; raise ConfigError for an exception of the template."""
    try:
        return protocol.request(item, pool, seed)
    except Exception as error:
        raise ConfigError(
            f"{evaluated.test}: template {protocol.template.name!r} fails on item {item.id!r}:"
            f" {type(error).__name__}: {error}"
        ) from error


def dry_run_parts(
    estimates: Sequence[Estimate], prices: Prices, lacking: Iterable[str] = ()
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


def _table(estimates: Iterable[Estimate], prices: Prices) -> Table:
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
