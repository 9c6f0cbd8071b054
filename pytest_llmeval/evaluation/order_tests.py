"""Order tests of a benchmark: their groups, their fingerprint, and benchmarks that cannot have one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.bias.order_texts import FORMATS
from pytest_llmeval.bias.order_texts import ORDERS
from pytest_llmeval.bias.order_texts import group_request
from pytest_llmeval.bias.order_texts import shards
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Request
from pytest_llmeval.core import canonical_json
from pytest_llmeval.core.plan import ITEM_ORDER
from pytest_llmeval.core.plan import OPTION_ORDER
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import order_arm
from pytest_llmeval.core.seeded_random import SeededRandom
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.metrics.contamination.orders import LEAST_ITEMS
from pytest_llmeval.metrics.contamination.orders import LEAST_SHARDS
from pytest_llmeval.metrics.contamination.published import OrderCheck
from pytest_llmeval.metrics.contamination.published import natural_order
from pytest_llmeval.metrics.contamination.published import option_checks

MOST_SHARDS = 256
"""Largest number of shards that are requested; a seeded selection of a longer file."""


@dataclass(frozen=True)
class OrderTestPlan:
    """An order test of a benchmark; without groups, ``document`` has the reason (``refused``)."""

    name: str
    #: By the id of its first item, which carries the request: the items of a group.
    groups: Mapping[str, Sequence[Item]]
    #: Entry of ``PlannedResult.contamination``.
    document: Mapping[str, Any]

    @property
    def arm(self) -> str:
        """Name of the arm of its records."""
        return order_arm(self.name)

    def request(self, item: str, seed: int, benchmark: str) -> Request:
        """Return the request that an item carries. Raises KeyError if it carries none."""
        return group_request(self.name, self.groups[item], seed, benchmark)


def plan_order_tests(
    benchmark: Benchmark,
    dataset: Dataset,
    data_hash: str,
    items: Sequence[Item],
    settings: Settings,
) -> tuple[OrderTestPlan, ...]:
    """Return the requested order tests of a benchmark.

    ``items``: those of the run, before it is divided into shards of ``--llm-shard``.
    """
    plans = []
    for name in settings.contamination:
        if name == OPTION_ORDER:
            plan = _option_order(benchmark, dataset, data_hash, items, settings.seed)
        else:
            plan = _item_order(benchmark, dataset, data_hash, settings)
        plans.append(plan)
    return tuple(plans)


def _option_order(
    benchmark: Benchmark, dataset: Dataset, data_hash: str, items: Sequence[Item], seed: int
) -> OrderTestPlan:
    groups = {item.id: (item,) for item in items if len(set(item.options)) > 1}
    if not any(item.options for item in dataset.items):
        return _refused(OPTION_ORDER, "the items have no options")
    if len(groups) < LEAST_ITEMS:
        problem = f"{len(groups)} items with different options; at least {LEAST_ITEMS} are needed"
        return _refused(OPTION_ORDER, problem)
    checks = [] if _drawn(benchmark, dataset) else _failing(option_checks(_options(dataset)))
    natural = [item.id for (item,) in groups.values() if natural_order(item.options)]
    document = {
        **_fields(OPTION_ORDER, data_hash, seed),
        "groups": len(groups),
        "not_random": "; ".join(check.text for check in checks),
        "natural": " ".join(natural),
    }
    return OrderTestPlan(OPTION_ORDER, groups, document)


def _drawn(benchmark: Benchmark, dataset: Dataset) -> bool:
    return benchmark.drawn_orders or dataset.drawn_orders


def _options(dataset: Dataset) -> list[tuple[str, ...]]:
    return [item.options for item in dataset.items]


def _item_order(
    benchmark: Benchmark, dataset: Dataset, data_hash: str, settings: Settings
) -> OrderTestPlan:
    if settings.limit is not None:
        problem = "its items are compared in the order of the file: leave out --llm-limit"
        return _refused(ITEM_ORDER, problem)
    files = _files(benchmark, dataset)
    sorted_files = {}
    if not _drawn(benchmark, dataset):
        # It imports numpy, which most sessions do not need for their plan.
        from pytest_llmeval.metrics.contamination.neighbours import item_checks

        for name, members in files.items():
            if failing := _failing(item_checks(list(map(_text, members)))):
                sorted_files[name] = failing[0]
    usable = [members for name, members in files.items() if name not in sorted_files]
    groups = list(shards(usable))
    if len(groups) < LEAST_SHARDS:
        if sorted_files:
            worst = max(sorted_files.values(), key=lambda check: check.z)
            problem = f"its items are sorted or grouped in the file ({worst.text})"
            return _refused(ITEM_ORDER, problem)
        problem = f"its items give {len(groups)} shards; at least {LEAST_SHARDS} are needed"
        return _refused(ITEM_ORDER, problem)
    if len(groups) > MOST_SHARDS:
        generator = SeededRandom("contamination shards", settings.seed, data_hash)
        groups = generator.sample(groups, MOST_SHARDS)
    # The hash of the data does not depend on the order of the items.
    ids = [[item.id for item in group] for group in groups]
    shards_hash = hashlib.sha256(canonical_json(ids)).hexdigest()[:16]
    document = {
        **_fields(ITEM_ORDER, data_hash, settings.seed, shards=shards_hash),
        "groups": len(groups),
        "not_random": "",
        "natural": "",
        "sorted_files": len(sorted_files),
    }
    return OrderTestPlan(ITEM_ORDER, {group[0].id: group for group in groups}, document)


def _files(benchmark: Benchmark, dataset: Dataset) -> dict[str, list[Item]]:
    """Return the items of every published file, in order."""
    if not benchmark.subject_files:
        return {benchmark.name: list(dataset.items)}
    files: dict[str, list[Item]] = {}
    for item in dataset.items:
        files.setdefault(item.subject, []).append(item)
    return files


def _text(item: Item) -> str:
    return " ".join((item.question, *item.options))


def _failing(checks: Iterable[OrderCheck]) -> list[OrderCheck]:
    """Return the checks that fail, the clearest first."""
    failing = [check for check in checks if not check.is_random]
    return sorted(failing, key=lambda check: -abs(check.z))


def _fields(test: str, data_hash: str, seed: int, **more: str) -> dict[str, Any]:
    """Return the fields that must be equal in a reference run, with their fingerprint."""
    fields = {
        "format": FORMATS[test],
        "orders": ORDERS[test],
        "seed": seed,
        "data": data_hash,
        **more,
    }
    fingerprint = hashlib.sha256(canonical_json([test, fields])).hexdigest()[:16]
    return {**fields, "fingerprint": fingerprint}


def _refused(test: str, problem: str) -> OrderTestPlan:
    return OrderTestPlan(test, {}, {"refused": problem})


def check_order_tests(plan: Plan) -> None:
    """Raise ConfigError if order tests are requested and no benchmark of the plan can have one."""
    refusals = [
        f"{_option(name)} of {result.benchmark}: {document['refused']}"
        for result in plan.results
        for name, document in result.contamination.items()
        if "refused" in document
    ]
    tested = any(
        "refused" not in document
        for result in plan.results
        for document in result.contamination.values()
    )
    if refusals and not tested:
        raise ConfigError(f"--llm-contamination: no test is possible: {'; '.join(refusals)}")


def order_test_notes(plan: Plan) -> Iterator[str]:
    """Yield notes on order tests that are not run, or need a reference run."""
    for result in plan.results:
        for name, document in result.contamination.items():
            test = f"{result.benchmark}: {_option(name)}"
            if "refused" in document:
                yield f"{test} is not run: {document['refused']}"
            elif document["not_random"]:
                yield (
                    f"{test}: the published orders are not random ({document['not_random']}), so that"
                    " only a comparison with a reference run is possible (against = RUN in its gate)"
                )
            if document.get("sorted_files"):
                yield f"{test}: {document['sorted_files']} files are left out, which are sorted"


def _option(test: str) -> str:
    return test.replace("_", "-")
