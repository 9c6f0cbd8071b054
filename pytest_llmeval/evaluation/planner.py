"""Creation of the plan of a run, from the suite and its selected tests."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace

from pytest_llmeval.bias.arms import KEEP
from pytest_llmeval.bias.arms import option_order
from pytest_llmeval.bias.arms import same_options
from pytest_llmeval.bias.content_free import INPUTS
from pytest_llmeval.bias.debiasing import AVERAGING
from pytest_llmeval.bias.debiasing import is_balanced
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.core.plan import PlannedResult
from pytest_llmeval.core.plan import ProtocolVariant
from pytest_llmeval.evaluation.fingerprint import fingerprint
from pytest_llmeval.evaluation.fingerprint import protocol_content
from pytest_llmeval.evaluation.suite import Evaluation

CHUNK_SIZE = 128
"""Maximum number of items of a chunk; limits the loss if a worker crashes, and balances the load."""


@dataclass(frozen=True)
class SelectedTest:
    """A collected test that was not deselected."""

    nodeid: str
    #: Index of the model.
    model: int
    evaluation: Evaluation
    item: Item = field(repr=False)


def make_plan(
    models: Sequence[str],
    suite: Iterable[Evaluation],
    selected: Sequence[SelectedTest],
    own_model: bool,
    seed: int = 0,
    shard: tuple[int, int] | None = None,
    wave: int | None = None,
) -> Plan:
    """Divide the selected items into chunks of one model, protocol and subject.

    The items of a subject share their shots, so a chunk shares a prompt prefix; a subject with
    more than CHUNK_SIZE items is divided into chunks of equal size. With ``wave``, the items of each
    model and protocol are in random order, of which every ``wave`` items form a wave: a chunk then
    has items of one wave.
    """
    evaluations = list(suite)
    index = {id(evaluation): number for number, evaluation in enumerate(evaluations)}
    plan = Plan(
        models=tuple(models),
        results=_planned_results(
            evaluations, seed, {index[id(test.evaluation)] for test in selected}, shard is not None
        ),
        items=tuple(
            PlannedItem(
                test.nodeid,
                test.model,
                index[id(test.evaluation)],
                test.item.id,
                test.item.subject,
                chunk=0,
            )
            for test in selected
        ),
        seed=seed,
        shard=shard,
        own_model=own_model,
    )
    wave_of = {} if wave is None else _waves(plan, wave)
    groups: dict[tuple[int, int, int, str], list[SelectedTest]] = {}
    for test in selected:
        key = (wave_of.get(test.nodeid, 0), test.model, index[id(test.evaluation)])
        groups.setdefault((*key, test.item.subject), []).append(test)
    chunk_of: dict[str, int] = {}
    costs: list[int] = []
    chunk_waves: list[int] = []
    # The sort is stable: without waves chunks have the order of their first tests.
    for (number, *_), members in sorted(groups.items(), key=lambda group: group[0][0]):
        size = math.ceil(len(members) / math.ceil(len(members) / CHUNK_SIZE))
        for start in range(0, len(members), size):
            block = members[start : start + size]
            chunk_of.update((test.nodeid, len(costs)) for test in block)
            costs.append(sum(_cost(test.item) for test in block))
            chunk_waves.append(number)
    items = [item._replace(chunk=chunk_of[item.nodeid]) for item in plan.items]
    if wave is not None:
        items.sort(key=lambda item: item.chunk)
    return replace(
        plan,
        items=tuple(items),
        costs=tuple(costs),
        chunk_waves=() if wave is None else tuple(chunk_waves),
    )


def _waves(plan: Plan, size: int) -> dict[str, int]:
    """Return node id → wave, from 0, of all items of a plan."""
    return {
        item.nodeid: place // size
        for model, result in {(item.model, item.result) for item in plan.items}
        for place, item in enumerate(plan.random_order(model, result))
    }


def variants(protocol: Protocol) -> tuple[ProtocolVariant, ...]:
    """Return the protocol and, if it compares choices, its variant for models that return only text."""
    fixed = protocol.ask == "text" or protocol.choices_only
    alternatives = [] if fixed else [protocol.with_generation()]
    return tuple(
        ProtocolVariant(fingerprint(variant), protocol_content(variant))
        for variant in (protocol, *alternatives)
    )


def _cost(item: Item) -> int:
    return 50 + len(item.question) + sum(len(option) for option in item.options)


def _planned_results(
    evaluations: Sequence[Evaluation], seed: int, selected: Collection[int], shard: bool
) -> tuple[PlannedResult, ...]:
    """Return one result per test, in their order, then one per additional scorer and debiasing.

    The order tests of a benchmark are run with the first of its tests that is ``selected``; in a
    ``shard``, which may have none of its items, they are planned in any case.
    """
    first, others = [], []
    numbers = sorted(range(len(evaluations)), key=lambda number: number not in selected)
    running: dict[str, int] = {}
    for number in numbers:
        running.setdefault(evaluations[number].benchmark.name, number)
    for number, evaluation in enumerate(evaluations):
        result = _planned_result(evaluation)
        if running[result.benchmark] == number and (shard or number in selected):
            tests = {test.name: test.document for test in evaluation.order_tests}
            first.append(replace(result, contamination=tests))
        else:
            first.append(result)
        others += [
            replace(
                result,
                variants=(ProtocolVariant(fingerprint(other), protocol_content(other)),),
                responses_of=number,
            )
            for other in evaluation.protocol.for_other_scorers()
        ]
        others += [
            replace(
                result,
                variants=(_debiased_variant(result.variants[0], how, evaluation, seed),),
                responses_of=number,
                debias=how,
                warnings=_debias_warnings(evaluation, how),
            )
            for how in evaluation.debias
        ]
    return (*first, *others)


def _debiased_variant(
    variant: ProtocolVariant, how: str, evaluation: Evaluation, seed: int
) -> ProtocolVariant:
    """Return the variant of a debiased result, with a fingerprint of everything it depends on.

    That is the orders that are averaged, the content-free inputs, and, if the outcome of an item
    depends on other items (the prior of PriDe, the mean of batch calibration), how these were sampled.
    """
    drawn = None if evaluation.drawn is None else sum(evaluation.drawn.values())
    alone = how in ("cyclic", "contextual")
    settings = {
        "method": how,
        "version": 2,
        "orders": [arm.name for arm in evaluation.orders] if how in AVERAGING else [],
        "inputs": INPUTS if how == "contextual" else [],
        "items": None if alone else drawn,
        "seed": seed if how == "pride" or (drawn is not None and not alone) else None,
    }
    content = {**variant.protocol, "scorer": f"{variant.scorer}+{how}", "scorer_debias": settings}
    text = f"{variant.fingerprint} {json.dumps(settings)}"
    return ProtocolVariant(hashlib.sha256(text.encode()).hexdigest()[:16], content)


def _debias_warnings(evaluation: Evaluation, how: str) -> tuple[str, ...]:
    """Warn about items whose options are not shown equally often at every position."""
    if how not in AVERAGING:
        return ()
    by_size: dict[int, list[Item]] = {}
    for item in evaluation.items:
        by_size.setdefault(len(item.options), []).append(item)
    unbalanced = sum(
        len(alike)
        for alike in by_size.values()
        if not is_balanced(
            [
                order
                for move in (KEEP, *(arm.item for arm in evaluation.orders))
                if (order := option_order(alike[0], move)) is not None
            ]
        )
    )
    if not unbalanced:
        return ()
    return (
        f"{evaluation.benchmark.name}[letter+{how}]: {unbalanced:,} of {len(evaluation.items):,} items are not"
        " debiased: they have a different number of options than most",
    )


def _planned_result(evaluation: Evaluation) -> PlannedResult:
    shots: dict[str, list[str]] = {}
    for item in evaluation.dataset.items:
        if item.subject not in shots:
            pool = evaluation.dataset.pool.get(item.subject, ())
            shots[item.subject] = [shot.id for shot in evaluation.protocol.select_shots(item, pool)]
    return PlannedResult(
        benchmark=evaluation.benchmark.name,
        version=evaluation.benchmark.version,
        data_hash=evaluation.data_hash,
        chance=evaluation.dataset.chance(),
        subjects=evaluation.dataset.subject_sizes(),
        drawn=evaluation.drawn,
        variants=variants(evaluation.protocol),
        shots={subject: ids for subject, ids in shots.items() if ids},
        requested=len(evaluation.items),
        warnings=(*evaluation.dataset.warnings, *evaluation.warnings),
        excluded=evaluation.excluded,
        arms=[arm.name for arm in evaluation.arms],
        same={
            item.id: equal
            for item in (evaluation.dataset.items if evaluation.orders else ())
            if (equal := same_options(item))
        },
    )
