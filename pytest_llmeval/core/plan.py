"""The plan of a run: every selected item, its result, and the chunk it is answered with.

The plan is made in the process that collects the tests (under xdist: in every worker, with equal
results) and read in the process that reports (the controller), so it is plain data that is
exchanged as JSON.
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

from pytest_llmeval.core.seeded_random import order_key

CONTENT_FREE = "free"
"""The family of the arms with content-free prompts."""

OPTION_ORDER = "option_order"
ITEM_ORDER = "item_order"
ORDER_TESTS = (OPTION_ORDER, ITEM_ORDER)
"""Names of the order tests of ``--llm-contamination``."""

_ORDER_FAMILY = "orders"


@dataclass(frozen=True)
class ProtocolVariant:
    """A fully resolved protocol, as JSON values, and its fingerprint."""

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
    """A pair (benchmark, scorer) of the run, with everything that makes its numbers comparable."""

    benchmark: str
    version: str
    data_hash: str
    #: Accuracy of random answers, in [0, 1]; None without options.
    chance: float | None
    #: Subject → number of items in the benchmark, selected or not.
    subjects: Mapping[str, int]
    #: Subject → number of items that ``--llm-limit`` samples; None without a limit.
    drawn: Mapping[str, int] | None
    #: The protocol and, if it differs, its variant with a generated answer for models that return
    #: only text.
    ways: tuple[ProtocolVariant, ...]
    #: Subject → ids of the shots of its first item, for readers.
    shots: Mapping[str, Sequence[str]]
    #: Number of items that the run requests before any is deselected (after limit and shard).
    asked: int = 0
    #: Problems of the data.
    warnings: Sequence[str] = ()
    #: Description of the items that the benchmark excludes (``exclude=``).
    excluded: str = ""
    #: Index of the planned result whose responses this one scores (``Protocol.also``); then it has
    #: no items itself.
    responses_of: int | None = None
    #: Names of the arms of a bias audit.
    arms: Sequence[str] = ()
    #: Method of debiasing, for a result that is computed from the answers of the arms.
    debias: str | None = None
    #: Item id → ``bias.arms.same_options``, for audited items with equal options.
    same: Mapping[str, Sequence[int]] = field(default_factory=dict)
    #: Order test → its groups and properties (``evaluation.order_tests``), or why it is not run.
    contamination: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def scorer(self) -> str:
        return self.ways[0].scorer

    @property
    def protocols(self) -> frozenset[str]:
        """Fingerprints of all variants of the protocol."""
        return frozenset(variant.fingerprint for variant in self.ways)

    def variant_of(self, fingerprints: Iterable[str]) -> ProtocolVariant:
        """Return the variant that was used, given the fingerprints of the records.

        A model that returns only text uses the last variant; answers that were lost before this
        could be determined are attributed to the first.
        """
        used = set(fingerprints)
        variants = (variant for variant in reversed(self.ways) if variant.fingerprint in used)
        return next(variants, self.ways[0])

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlannedResult:
        """Return the inverse of ``dataclasses.asdict``, for the JSON of plans and ``run.json``.

        Raises TypeError or KeyError for anything else.
        """
        variants = tuple(ProtocolVariant(**variant) for variant in value["ways"])
        return cls(**{**value, "ways": variants})


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
    """Everything that a run evaluates."""

    models: tuple[str, ...] = ()
    results: tuple[PlannedResult, ...] = ()
    items: tuple[PlannedItem, ...] = ()
    #: Expected cost of every chunk, in characters that the model reads.
    costs: tuple[int, ...] = ()
    seed: int = 0
    #: (i, n), counted from 1.
    shard: tuple[int, int] | None = None
    #: If set, a user's mistake that was found at collection, in one line.
    problem: str | None = None
    #: The model is a fixture of the project.
    own_model: bool = False
    #: Wave of every chunk, from 0; empty if the run has no waves.
    chunk_waves: tuple[int, ...] = ()

    def wave_of(self, item: PlannedItem) -> int:
        """Return the wave of an item; 0 if the run has no waves."""
        return self.chunk_waves[item.chunk] if self.chunk_waves else 0

    def random_order(self, model: int, result: int) -> list[PlannedItem]:
        """Return the items of a model and planned result in the random order of a sequential run."""
        planned = self.results[result]
        protocol = planned.ways[0].fingerprint
        keys = (self.seed, planned.data_hash, protocol, self.models[model])
        items = [item for item in self.items if (item.model, item.result) == (model, result)]
        return sorted(items, key=lambda item: order_key(*keys, item.item))

    @cached_property
    def by_nodeid(self) -> dict[str, PlannedItem]:
        return {item.nodeid: item for item in self.items}

    def other_scorers(self, result: int) -> list[PlannedResult]:
        """Return the results that score the responses of a planned result under other scorers."""
        return [
            other for other in self.results if other.responses_of == result and other.debias is None
        ]

    def fingerprints(self, result: int) -> list[str]:
        """Return the fingerprints of all records of a planned result, in all arms and scorers.

        Those of content-free prompts are excluded, since they are not about their item.
        """
        others = [other.ways[0] for other in self.other_scorers(result)]
        own = [variant.fingerprint for variant in (*self.results[result].ways, *others)]
        arms = [arm for arm in self.results[result].arms if not is_content_free(arm)]
        return own + [arm_fingerprint(protocol, arm) for protocol in own for arm in arms]

    @cached_property
    def chunks(self) -> dict[int, list[PlannedItem]]:
        chunks: dict[int, list[PlannedItem]] = {}
        for item in self.items:
            chunks.setdefault(item.chunk, []).append(item)
        return chunks

    @cached_property
    def identity(self) -> str:
        """Hash of everything that must be equal for a run to be resumed."""
        content = [
            self.models,
            self.seed,
            self.shard,
            [
                (r.benchmark, [variant.fingerprint for variant in r.ways], r.data_hash, r.drawn)
                for r in self.results
            ],
            sorted((item.model, item.result, item.item) for item in self.items),
            [list(r.arms) for r in self.results if r.arms],
        ]
        tests = [
            [name, test.get("fingerprint")]
            for result in self.results
            for name, test in result.contamination.items()
        ]
        content += [tests] if tests else []
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
                "chunk_waves": self.chunk_waves,
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
            chunk_waves=tuple(value["chunk_waves"]),
        )


def arm_fingerprint(protocol: str, arm: str) -> str:
    """Return the fingerprint of a protocol (its fingerprint) in an arm of a bias audit."""
    return hashlib.sha256(f"{protocol} {arm}".encode()).hexdigest()[:16]


def family_of(name: str) -> str:
    """Return the family of an arm by its name; the original is a family of its own."""
    return name.partition("@")[0]


def is_content_free(arm: str) -> bool:
    """Return whether the arm of that name has content-free prompts."""
    return family_of(arm) == CONTENT_FREE


def order_arm(test: str) -> str:
    """Return the name of the arm that holds the likelihoods of an order test."""
    return f"{_ORDER_FAMILY}@{test}"


def is_order_test(arm: str) -> bool:
    """Return whether the arm of that name holds the likelihoods of an order test."""
    return family_of(arm) == _ORDER_FAMILY
