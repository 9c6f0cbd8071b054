"""Requests, tokens and cost of a run, estimated without a model."""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmeval.bias.content_free import arms_of_item
from pytest_llmeval.bias.content_free import carrier_ids
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import Request
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.prices import Prices
from pytest_llmeval.evaluation.suite import Evaluation
from pytest_llmeval.models import Model

TOKENS_PER_CHARACTER = 0.3
"""English prompts take 0.2 to 0.3 tokens a character; other scripts take more."""


@dataclass(frozen=True)
class Estimate:
    """Requests that one model would get for one benchmark.

    ``requests`` includes those with reordered options, those without content and those of order
    tests, one per group. ``prompt_tokens``
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
        _estimate(
            plan,
            suite[result],
            group,
            plan.models[model],
            models.get(model),
            prices,
            tested=bool(plan.results[result].contamination),
        )
        for (model, result), group in groups.items()
    ]


def _estimate(
    plan: Plan,
    evaluated: Evaluation,
    items: Sequence[Item],
    spec: str,
    model: Model | None,
    prices: Prices,
    tested: bool,
) -> Estimate:
    """Return the estimate of one model and benchmark; ``tested``: with its order tests."""
    protocol = evaluated.protocol
    if model is not None and protocol.ask not in model.asks:
        protocol = protocol.with_generation()
    carriers = carrier_ids(items) if protocol.ask == "choices" else frozenset()
    counted_requests: list[tuple[int, Request]] = []
    orders: list[Request] = []
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
        orders += [
            test.request(item.id, plan.seed, evaluated.benchmark.name)
            for test in (evaluated.order_tests if tested else ())
            if item.id in test.groups
        ]
    requests = sum(times for times, _ in counted_requests) + len(orders)
    characters = sum(
        times * len(request.prompt.text) * (1 if model is None else model.billed_prompts(request))
        for times, request in counted_requests
    )
    characters += sum(
        len(request.prompt.text) * len(request.choices) + sum(map(len, request.choices))
        for request in orders
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
