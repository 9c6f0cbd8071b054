"""``--llm-dry-run``: what a run would ask, and what it would cost, without a model."""

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
from pytest_llmeval.evaluation.suite import Evaluated
from pytest_llmeval.models import Model
from pytest_llmeval.reports.terminal.summary import write_summary
from pytest_llmeval.reports.terminal.tables import open_table
from pytest_llmeval.scorers import get_scorer

TOKENS_PER_CHARACTER = 0.3
"""English prompts take 0.2 to 0.3 tokens a character; other scripts take more."""


@dataclass(frozen=True)
class Estimate:
    """What one model would be asked about one benchmark.

    ``requests`` has those of other orders of options, and without content, too. ``prompt_tokens``
    is taken from the number of characters; ``answer_tokens`` is what the protocol allows for, and
    more than most models use. ``cost`` follows from both, None without a price. ``first`` is the
    first request.
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
    suite: Sequence[Evaluated],
    items: Mapping[str, Item],
    models: Mapping[int, Model],
    prices: Prices,
) -> list[Estimate]:
    """One for every model and benchmark that has items. ``items`` are by node id.

    ``models`` are those of the plan by index; one that is not known is taken to answer whatever the
    protocol asks for. Raises ConfigError for a template that fails on an item.
    """
    groups: dict[tuple[int, int], list[Item]] = {}
    for planned in plan.items:
        groups.setdefault((planned.model, planned.result), []).append(items[planned.nodeid])
    return [
        _estimate(plan, suite[result], asked, plan.models[model], models.get(model), prices)
        for (model, result), asked in groups.items()
    ]


def lacking_jobs(
    plan: Plan, suite: Sequence[Evaluated], items: Mapping[str, Item], settings: Settings
) -> list[str]:
    """A line for every benchmark whose scorers need what is not on this machine yet."""
    lines = []
    for number, one in enumerate(suite):
        asked = {
            planned.item: items[planned.nodeid]
            for planned in plan.items
            if planned.result == number
        }
        jobs = get_scorer(one.protocol.scorer).jobs
        solved = [item for item in asked.values() if "solution" in item.fields]
        if jobs is not None and solved:
            lacking = KINDS[jobs.kind].lacking(settings, list(map(jobs.reference, solved)))
            lines += [f"{one.benchmark.name}: {lacking}"] if lacking else []
    return lines


def _estimate(
    plan: Plan,
    one: Evaluated,
    items: Sequence[Item],
    spec: str,
    model: Model | None,
    prices: Prices,
) -> Estimate:
    protocol = one.protocol
    if model is not None and protocol.ask not in model.asks:
        protocol = protocol.with_generation()
    carrying = carrier_ids(items) if protocol.ask == "choices" else frozenset()
    asked: list[tuple[int, Request]] = []
    for item in items:
        pool = one.dataset.pool.get(item.subject, ())
        arms = list(arms_of_item(item, one.arms, item.id in carrying))
        # The same text in another order of options, as long but for shots that cannot be shown so.
        times = protocol.answers_per_item + sum(arm.instead is None for arm, _ in arms)
        asked.append((times, _request(one, protocol, item, pool, plan.seed)))
        asked += [
            (1, _request(one, protocol, shown, pool, plan.seed))
            for arm, shown in arms
            if arm.instead is not None
        ]
    requests = sum(times for times, _ in asked)
    characters = sum(
        times * len(request.prompt.text) * (1 if model is None else model.billed_prompts(request))
        for times, request in asked
    )
    prompt_tokens = math.ceil(characters * TOKENS_PER_CHARACTER)
    answer_tokens = requests * protocol.decoding.max_tokens if protocol.ask == "text" else 0
    price = prices.of(spec)
    return Estimate(
        spec,
        one.benchmark.name,
        protocol.scorer,
        len(items),
        requests,
        prompt_tokens,
        answer_tokens,
        None if price is None else price.of(prompt_tokens, answer_tokens),
        asked[0][1],
    )


class DryRun:
    """Hooks of a session that is not run: shows what was estimated."""

    def __init__(
        self, found: Sequence[Estimate], prices: Prices, lacking: Sequence[str] = ()
    ) -> None:
        self._found = found
        self._prices = prices
        self._lacking = lacking

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        return True  # as if all had been run

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write_summary(terminalreporter, dry_run_parts(self._found, self._prices, self._lacking))


def _request(
    one: Evaluated, protocol: Protocol, item: Item, pool: Iterable[Item], seed: int
) -> Request:
    """What is asked about an item; what would be its error in a run is a mistake told here."""
    try:
        return protocol.request(item, pool, seed)
    except Exception as error:
        raise ConfigError(
            f"{one.test}: template {protocol.template.name!r} fails on item {item.id!r}:"
            f" {type(error).__name__}: {error}"
        ) from error


def dry_run_parts(
    found: Sequence[Estimate], prices: Prices, lacking: Iterable[str] = ()
) -> Iterable[Any]:
    """The first prompt of every benchmark as it is sent, then the estimates: rich renderables.

    ``lacking``: lines of ``lacking_jobs``.
    """
    shown: set[tuple[str, str]] = set()
    for one in found:
        if (one.benchmark, one.scorer) in shown:
            continue
        shown.add((one.benchmark, one.scorer))
        yield Text(f"first prompt of {one.benchmark}[{one.scorer}], {one.first.id}:", style="bold")
        yield Text(f"{_as_sent(one.first)}\n")
    for model in dict.fromkeys(one.model for one in found):
        yield Text(f"model {model}", style="bold")
        yield _table([one for one in found if one.model == model], prices)
    known = [one.cost for one in found if one.cost is not None]
    if known:
        yield Text(f"in all at most about {prices.format_amount(sum(known))}, without retries")
    for line in lacking:
        yield Text(line, style="yellow")
    yield Text("dry run: no model was asked, nothing was measured", style="yellow")


def _table(found: Iterable[Estimate], prices: Prices) -> Table:
    table = open_table()
    table.add_column("benchmark[scorer]", overflow="fold")
    for name in ("items", "requests", "prompt tokens", "answer tokens", "cost"):
        table.add_column(name, justify="right")
    for one in found:
        table.add_row(
            Text(f"{one.benchmark}[{one.scorer}]"),
            f"{one.items:,}",
            f"{one.requests:,}",
            f"~{one.prompt_tokens:,}",
            f"<={one.answer_tokens:,}",
            "-" if one.cost is None else f"<={prices.format_amount(one.cost)}",
        )
    return table


def _as_sent(request: Request) -> str:
    prompt = request.prompts[0] if request.given else request.prompt
    if not request.chat:
        return prompt.text
    turns = [f"[{turn['role']}]\n{turn['content']}" for turn in prompt.messages()]
    if prompt.prefix:
        turns.append(f"[assistant]\n{prompt.prefix}")
    return "\n".join(turns)
