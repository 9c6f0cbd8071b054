"""Making the plan of a run, from the suite and the tests that were selected of it."""

from __future__ import annotations

import hashlib
import json
import math
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
from pytest_llmeval.evaluation.suite import Evaluated

CHUNK_SIZE = 128
"""Most items answered together: bounds what a dying worker costs and evens out the load."""


@dataclass(frozen=True)
class Selected:
    """A collected test that survived selection."""

    nodeid: str
    model: int
    evaluated: Evaluated
    item: Item = field(repr=False)


def make_plan(
    models: Sequence[str],
    suite: Iterable[Evaluated],
    selected: Sequence[Selected],
    own_model: bool,
    seed: int = 0,
    shard: tuple[int, int] | None = None,
) -> Plan:
    """Cut the selected items into chunks of one model, protocol and subject.

    A subject's items share their shots, so a chunk shares a prompt prefix; a subject with
    more than CHUNK_SIZE items is cut into chunks of equal size.
    """
    evaluated = list(suite)
    index = {id(one): number for number, one in enumerate(evaluated)}
    groups: dict[tuple[int, int, str], list[Selected]] = {}
    for one in selected:
        key = (one.model, index[id(one.evaluated)], one.item.subject)
        groups.setdefault(key, []).append(one)
    chunk_of: dict[str, int] = {}
    costs: list[int] = []
    for members in groups.values():
        size = math.ceil(len(members) / math.ceil(len(members) / CHUNK_SIZE))
        for start in range(0, len(members), size):
            block = members[start : start + size]
            chunk_of.update((one.nodeid, len(costs)) for one in block)
            costs.append(sum(_cost(one.item) for one in block))
    return Plan(
        models=tuple(models),
        results=_planned_results(evaluated, seed),
        items=tuple(
            PlannedItem(
                one.nodeid,
                one.model,
                index[id(one.evaluated)],
                one.item.id,
                one.item.subject,
                chunk_of[one.nodeid],
            )
            for one in selected
        ),
        costs=tuple(costs),
        seed=seed,
        shard=shard,
        own_model=own_model,
    )


def ways(protocol: Protocol) -> tuple[ProtocolVariant, ...]:
    """The protocol, and what is asked instead of a model that gives only text."""
    both = [protocol] if protocol.ask == "text" else [protocol, protocol.with_generation()]
    return tuple(ProtocolVariant(fingerprint(one), protocol_content(one)) for one in both)


def _cost(item: Item) -> int:
    return 50 + len(item.question) + sum(len(option) for option in item.options)


def _planned_results(evaluated: Iterable[Evaluated], seed: int) -> tuple[PlannedResult, ...]:
    """One for every test, in their order, then one for every other scorer."""
    first, others = [], []
    for number, one in enumerate(evaluated):
        result = _planned_result(one)
        first.append(result)
        others += [
            replace(
                result,
                ways=(ProtocolVariant(fingerprint(other), protocol_content(other)),),
                responses_of=number,
            )
            for other in one.protocol.for_other_scorers()
        ]
        others += [
            replace(
                result,
                ways=(_debiased(result.ways[0], how, one, seed),),
                responses_of=number,
                debias=how,
                warnings=_not_debiased(one, how),
            )
            for how in one.debias
        ]
    return (*first, *others)


def _debiased(way: ProtocolVariant, how: str, one: Evaluated, seed: int) -> ProtocolVariant:
    """The way of a debiased result: named, and with a fingerprint of all that it is made of.

    The orders that are averaged, the content-free inputs, and, where an item's outcome rests on
    other items too (the prior of PriDe, the mean of batch calibration), what those were drawn by.
    """
    drawn = None if one.drawn is None else sum(one.drawn.values())
    alone = how in ("cyclic", "contextual")
    made = {
        "method": how,
        "version": 2,
        "orders": [arm.name for arm in one.orders] if how in AVERAGING else [],
        "inputs": INPUTS if how == "contextual" else [],
        "items": None if alone else drawn,
        "seed": seed if how == "pride" or (drawn is not None and not alone) else None,
    }
    content = {**way.protocol, "scorer": f"{way.scorer}+{how}", "scorer_debias": made}
    text = f"{way.fingerprint} {json.dumps(made)}"
    return ProtocolVariant(hashlib.sha256(text.encode()).hexdigest()[:16], content)


def _not_debiased(one: Evaluated, how: str) -> tuple[str, ...]:
    """A word on items that are not shown with every option at every position as often."""
    if how not in AVERAGING:
        return ()
    of_size: dict[int, list[Item]] = {}
    for item in one.items:
        of_size.setdefault(len(item.options), []).append(item)
    left = sum(
        len(alike)
        for alike in of_size.values()
        if not is_balanced(
            [
                shown
                for move in (KEEP, *(arm.item for arm in one.orders))
                if (shown := option_order(alike[0], move)) is not None
            ]
        )
    )
    if not left:
        return ()
    return (
        f"{one.benchmark.name}[letter+{how}]: {left:,} of {len(one.items):,} items stay as they"
        " are: they have another number of options than most",
    )


def _planned_result(one: Evaluated) -> PlannedResult:
    shots: dict[str, list[str]] = {}
    for item in one.dataset.items:
        if item.subject not in shots:
            pool = one.dataset.pool.get(item.subject, ())
            shots[item.subject] = [shot.id for shot in one.protocol.select_shots(item, pool)]
    return PlannedResult(
        benchmark=one.benchmark.name,
        version=one.benchmark.version,
        data_hash=one.data_hash,
        chance=one.dataset.chance(),
        subjects=one.dataset.subject_sizes(),
        drawn=one.drawn,
        ways=ways(one.protocol),
        shots={subject: ids for subject, ids in shots.items() if ids},
        asked=len(one.items),
        warnings=(*one.dataset.warnings, *one.warnings),
        excluded=one.excluded,
        arms=[arm.name for arm in one.arms],
        same={
            item.id: equal
            for item in (one.dataset.items if one.orders else ())
            if (equal := same_options(item))
        },
    )
