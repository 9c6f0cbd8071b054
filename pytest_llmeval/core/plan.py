"""The plan of a run: every selected item, its result, and the chunk it is answered with.

The plan is made where tests are collected (under xdist: in every worker, all alike) and read
where they are judged (in the controller), so it is plain data that travels as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from functools import cached_property
from typing import Any
from typing import NamedTuple

CONTENT_FREE = "free"
"""The family of the arms that send prompts without content."""


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
    ``excluded``: which items of the data the benchmark leaves out (``exclude=``), in words.
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
    excluded: str = ""
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
        arms = [arm for arm in self.results[result].arms if not is_content_free(arm)]
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


def arm_fingerprint(way: str, arm: str) -> str:
    """The fingerprint of a way with the options in another order: no answer stands for both."""
    return hashlib.sha256(f"{way} {arm}".encode()).hexdigest()[:16]


def family_of(name: str) -> str:
    """The family of the arm of that name; the original is its own."""
    return name.partition("@")[0]


def is_content_free(arm: str) -> bool:
    """Whether the arm of that name sends prompts without content."""
    return family_of(arm) == CONTENT_FREE
