"""The plan of a run: every selected item, its result, and the chunk it is answered with.

The plan is made where tests are collected (under xdist: in every worker, all alike) and read
where they are judged (in the controller), so it is plain data that travels as JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from functools import cached_property
from typing import Any
from typing import NamedTuple

from pytest_llmeval.contentfree import INPUTS
from pytest_llmeval.contentfree import is_free
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.debias import AVERAGING
from pytest_llmeval.debias import balanced
from pytest_llmeval.fingerprint import fingerprint
from pytest_llmeval.fingerprint import protocol_content
from pytest_llmeval.permutations import KEEP
from pytest_llmeval.permutations import order
from pytest_llmeval.permutations import same_options
from pytest_llmeval.suite import Evaluated

CHUNK_SIZE = 128
"""Most items answered together: bounds what a dying worker costs and evens out the load."""


@dataclass(frozen=True)
class Way:
    """One way to put the items of a benchmark: a protocol in full, with its fingerprint."""

    fingerprint: str
    protocol: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.protocol["name"])

    @property
    def ask(self) -> str:
        return str(self.protocol["ask"])

    @property
    def scorer(self) -> str:
        return str(self.protocol["scorer"])

    @property
    def samples(self) -> int:
        return int(self.protocol["samples"])


@dataclass(frozen=True)
class PlannedResult:
    """One (benchmark, scorer) of the run, with all that makes its numbers comparable.

    ``subjects`` gives the number of items the benchmark has per subject, selected or not, and
    ``drawn`` how many of them ``--llm-limit`` leaves. ``ways`` are the protocol and, for a
    model that gives only text, the same with a generated answer, where that is another.
    ``shots`` names the shots of every subject's first item, for readers. ``asked``: items that the
    run asks for before any is deselected (a limit and a shard leave fewer). ``warnings``: what is
    odd about the data. ``responses_of``: the
    planned result whose responses this one scores under another scorer (``Protocol.also``); it
    has no items of its own. ``arms``: names of the other orders of options that are asked for, and
    of content-free prompts.
    ``debias``: how position bias is taken out of those answers, of a result that is computed so.
    ``same``: of an audit, which options of an item are equal (``same_options``), where some are.
    """

    benchmark: str
    version: str
    data_hash: str
    chance: float | None
    subjects: Mapping[str, int]
    drawn: Mapping[str, int] | None
    ways: tuple[Way, ...]
    shots: Mapping[str, Sequence[str]]
    asked: int = 0
    warnings: Sequence[str] = ()
    responses_of: int | None = None
    arms: Sequence[str] = ()
    debias: str | None = None
    same: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def scorer(self) -> str:
        return self.ways[0].scorer

    @property
    def protocols(self) -> frozenset[str]:
        """The fingerprints of all ways in which its answers may be asked for."""
        return frozenset(way.fingerprint for way in self.ways)

    def way_of(self, fingerprints: Iterable[str]) -> Way:
        """The way that answers were asked for, from the fingerprints of their records.

        A model that gives only text is asked the last way; what was lost before it was known is
        booked under the first.
        """
        seen = set(fingerprints)
        return next((way for way in reversed(self.ways) if way.fingerprint in seen), self.ways[0])

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlannedResult:
        """What ``dataclasses.asdict`` made plain: as in a plan, and in ``run.json``.

        Raises TypeError or KeyError for anything else.
        """
        return cls(**{**value, "ways": tuple(Way(**way) for way in value["ways"])})


class PlannedItem(NamedTuple):
    """A selected item: ``model`` and ``result`` are indices into the plan's lists."""

    nodeid: str
    model: int
    result: int
    item: str
    subject: str
    chunk: int


@dataclass(frozen=True)
class Plan:
    """What a run evaluates. ``problem`` set: collection met a user's mistake, told in one line.

    ``costs`` gives every chunk's expected cost, in characters to be read by the model.
    """

    models: tuple[str, ...] = ()
    results: tuple[PlannedResult, ...] = ()
    items: tuple[PlannedItem, ...] = ()
    costs: tuple[int, ...] = ()
    seed: int = 0
    shard: tuple[int, int] | None = None
    problem: str | None = None
    own_model: bool = False

    @cached_property
    def by_nodeid(self) -> dict[str, PlannedItem]:
        return {item.nodeid: item for item in self.items}

    def other_scorers(self, result: int) -> list[PlannedResult]:
        """The results that score the responses of a planned result under other scorers."""
        return [one for one in self.results if one.responses_of == result and one.debias is None]

    def fingerprints(self, result: int) -> list[str]:
        """Of all records about a planned result's items, in every order and under every scorer.

        Those of content-free prompts, which are not about the item that carries them, are none.
        """
        others = [other.ways[0] for other in self.other_scorers(result)]
        own = [way.fingerprint for way in (*self.results[result].ways, *others)]
        arms = [arm for arm in self.results[result].arms if not is_free(arm)]
        return own + [arm_fingerprint(way, arm) for way in own for arm in arms]

    @cached_property
    def chunks(self) -> dict[int, list[PlannedItem]]:
        chunks: dict[int, list[PlannedItem]] = {}
        for item in self.items:
            chunks.setdefault(item.chunk, []).append(item)
        return chunks

    @cached_property
    def identity(self) -> str:
        """Hash of all that a run must share with another to be continued by it."""
        content = [
            self.models,
            self.seed,
            self.shard,
            [
                (r.benchmark, [way.fingerprint for way in r.ways], r.data_hash, r.drawn)
                for r in self.results
            ],
            sorted((item.model, item.result, item.item) for item in self.items),
            [list(r.arms) for r in self.results if r.arms],
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def to_json(self) -> str:
        return json.dumps(
            {
                "models": self.models,
                "results": [asdict(result) for result in self.results],
                "items": self.items,
                "costs": self.costs,
                "seed": self.seed,
                "shard": self.shard,
                "problem": self.problem,
                "own_model": self.own_model,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Plan:
        value = json.loads(text)
        return cls(
            models=tuple(value["models"]),
            results=tuple(map(PlannedResult.from_json, value["results"])),
            items=tuple(PlannedItem(*item) for item in value["items"]),
            costs=tuple(value["costs"]),
            seed=value["seed"],
            shard=value["shard"] and tuple(value["shard"]),
            problem=value["problem"],
            own_model=value["own_model"],
        )


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


def arm_fingerprint(way: str, arm: str) -> str:
    """The fingerprint of a way with the options in another order: no answer stands for both."""
    return hashlib.sha256(f"{way} {arm}".encode()).hexdigest()[:16]


def ways(protocol: Protocol) -> tuple[Way, ...]:
    """The protocol, and what is asked instead of a model that gives only text."""
    both = [protocol] if protocol.ask == "text" else [protocol, protocol.with_generation()]
    return tuple(Way(fingerprint(one), protocol_content(one)) for one in both)


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
                ways=(Way(fingerprint(other), protocol_content(other)),),
                responses_of=number,
            )
            for other in one.protocol.under_other_scorers()
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


def _debiased(way: Way, how: str, one: Evaluated, seed: int) -> Way:
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
    return Way(hashlib.sha256(text.encode()).hexdigest()[:16], content)


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
        if not balanced(
            [
                shown
                for move in (KEEP, *(arm.item for arm in one.orders))
                if (shown := order(alike[0], move)) is not None
            ]
        )
    )
    if not left:
        return ()
    return (
        f"{one.benchmark.name}[letter+{how}]: {left:,} of {len(one.items):,} items stay as they are:"
        " they have another number of options than most",
    )


def _planned_result(one: Evaluated) -> PlannedResult:
    shots: dict[str, list[str]] = {}
    for item in one.dataset.items:
        if item.subject not in shots:
            pool = one.dataset.pool.get(item.subject, ())
            shots[item.subject] = [shot.id for shot in one.protocol.draw_shots(item, pool)]
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
        warnings=one.dataset.warnings,
        arms=[arm.name for arm in one.arms],
        same={
            item.id: equal
            for item in (one.dataset.items if one.orders else ())
            if (equal := same_options(item))
        },
    )
