"""Which benchmark a marked test evaluates, under which protocol, with which items."""

from __future__ import annotations

import dis
import hashlib
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cached_property
from typing import Any
from typing import NamedTuple

from pytest_llmeval.bias import content_free
from pytest_llmeval.bias.arms import Arm
from pytest_llmeval.bias.arms import arms
from pytest_llmeval.bias.arms import usual_options
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Item
from pytest_llmeval.core import Protocol
from pytest_llmeval.core import check_dataset
from pytest_llmeval.core import subject_sizes
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.evaluation.jobs import KINDS
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.sources.exclusion import exclude_items


def choose_protocol(benchmark: Benchmark, marked: str | None, settings: Settings) -> Protocol:
    """The protocol a marked test runs under.

    A protocol named in the marker stays; the command line chooses for tests that leave it
    open. ``+chat``, ``+chat-text``, ``+generate`` and ``+embed:MODEL`` after the name (or alone,
    for the default protocol) modify it. ``--llm-shots``, ``--llm-samples``, ``--llm-temperature``
    and ``--llm-max-tokens`` override its numbers of either.

    Raises ConfigError for an unknown name, offering the nearest.
    """
    if marked is not None and not isinstance(marked, str):
        raise ConfigError(
            f"benchmark {benchmark.name!r}: protocol= of the marker is of type"
            f" {type(marked).__name__}, not the name of a protocol"
        )
    asked = marked or settings.protocol or ""
    name, *modifiers = asked.split("+")
    by_name = {protocol.name: protocol for protocol in benchmark.protocols}
    if name and name not in by_name:
        raise ConfigError(
            f"benchmark {benchmark.name!r} has no protocol {name!r}{suggestion(name, by_name)}"
        )
    protocol = by_name[name] if name else benchmark.protocols[0]
    for modifier in modifiers:
        if modifier in ("chat", "chat-text"):
            protocol = protocol.with_chat(shots_as_text=modifier == "chat-text")
        elif modifier == "generate":
            protocol = protocol.with_generation()
        elif modifier.startswith("embed:"):
            protocol = _with_embedding(protocol, modifier.removeprefix("embed:"))
        else:
            raise ConfigError(
                f"protocol {asked!r}: unknown modifier '+{modifier}'"
                f"{suggestion(modifier, ('chat', 'chat-text', 'generate', 'embed:MODEL'))}"
            )
    if settings.shots is not None and settings.shots != protocol.shots:
        protocol = replace(protocol, shots=settings.shots)
    if settings.decoding:
        protocol = replace(protocol, decoding=replace(protocol.decoding, **settings.decoding))
    if settings.samples > 1:
        protocol = replace(protocol, samples=settings.samples)
    return protocol


def _with_embedding(protocol: Protocol, model: str) -> Protocol:
    """The protocol with another embedding model to match answers by."""
    if protocol.scorer.partition("+")[0] != "matched":
        raise ConfigError(
            f"protocol {protocol.name!r} matches no answers by their meaning, so it takes no"
            f" '+embed:{model}'"
        )
    return replace(protocol, name=f"{protocol.name}+embed:{model}", scorer=f"matched+{model}")


_NO_ROW: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Evaluated:
    """A benchmark under one protocol, as one test function evaluates it.

    ``items`` are those that the run may select from, fewer than the data set's under
    ``--llm-limit`` or ``--llm-shard``; the benchmark's own sizes stay in ``dataset``. ``drawn``:
    subject → items drawn of it under ``--llm-limit``, over all shards. ``lacking``: why this
    machine cannot score it, in one line. ``arms``: the other orders of options in which every item
    is asked, too, and content-free prompts (``contentfree``). ``debias``: ways to take position
    bias out of its log-probabilities, each a result of its own. ``warnings``: what is odd about the
    test. ``excluded``: which items ``dataset`` lacks by the benchmark's ``exclude``, in words.
    """

    test: str
    benchmark: Benchmark
    protocol: Protocol
    dataset: Dataset
    data_hash: str
    items: tuple[Item, ...]
    drawn: Mapping[str, int] | None = None
    lacking: str | None = None
    arms: tuple[Arm, ...] = ()
    debias: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    excluded: str = ""

    def arm(self, name: str) -> tuple[int, Arm]:
        """The arm of that name, with its place among the arms."""
        return self._arms_by_name[name]

    @cached_property
    def _arms_by_name(self) -> Mapping[str, tuple[int, Arm]]:
        return {arm.name: (place, arm) for place, arm in enumerate(self.arms)}

    @property
    def orders(self) -> tuple[Arm, ...]:
        """The arms that show the options in another order, not those without content."""
        return tuple(arm for arm in self.arms if arm.instead is None)


class Loaded(NamedTuple):
    """The data of a benchmark: all of it, and what its ``exclude`` leaves, with that one's hash."""

    whole: Dataset
    dataset: Dataset
    data_hash: str
    excluded: str


class Suite:
    """All marked tests of a session. Data sets are loaded once per process and benchmark."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._by_test: dict[str, Evaluated] = {}
        self._datasets: dict[Callable[[Any], Dataset], Dataset] = {}
        self._loaded: dict[tuple[Callable[[Any], Dataset], str], Loaded] = {}
        self._item_ids: set[str] = set()

    def __iter__(self) -> Iterator[Evaluated]:
        return iter(self._by_test.values())

    def item_ids(self) -> Collection[str]:
        """Ids of all items that the data sets have, excluded and unselected ones too."""
        return self._item_ids

    def get(self, test: str) -> Evaluated | None:
        """What a marked test function evaluates."""
        return self._by_test.get(test)

    def add(
        self, test: str, benchmark: object, protocol: str | None, body: Callable[..., object]
    ) -> Evaluated:
        """Register the marked test function ``test`` (a node id without parameters).

        ``body`` is the function, which is looked at and not called.
        Raises ConfigError when the marker does not name a benchmark, when the protocol or
        scorer is unknown, when the data cannot be loaded, or when another test already
        gives the result of the same (benchmark, scorer).
        """
        if not isinstance(benchmark, Benchmark):
            raise ConfigError(
                f"{test}: @pytest.mark.llmeval takes a Benchmark, not {type(benchmark).__name__}"
                + (" (call it: mmlu())" if callable(benchmark) else "")
            )
        chosen = choose_protocol(benchmark, protocol, self.settings)
        scorers = (chosen.scorer, *chosen.also)
        lacking = None
        kinds = {jobs.kind: None for scorer in scorers if (jobs := get_scorer(scorer).jobs)}
        if kinds:
            try:
                runners = [KINDS[kind].identity(self.settings) for kind in kinds]
                chosen = replace(chosen, sandbox="; ".join(runners))
            except ConfigError as error:
                lacking = f"{test} runs code that models wrote, and {error}"
        if len(set(scorers)) < len(scorers):
            raise ConfigError(f"{test}: protocol {chosen.name!r} names a scorer twice")
        for other in self._by_test.values():
            both = {other.protocol.scorer, *other.protocol.also} & set(scorers)
            if other.benchmark.name == benchmark.name and both:
                raise ConfigError(
                    f"{test} and {other.test} both give the result"
                    f" ({benchmark.name}, {min(both)}): a result has one name and one test"
                )
        loaded = self._load(benchmark)
        dataset, data_hash = loaded.dataset, loaded.data_hash
        for other in self._by_test.values():
            if other.benchmark.name == benchmark.name and other.data_hash != data_hash:
                raise ConfigError(
                    f"{test} and {other.test} call different data {benchmark.name!r}: a benchmark"
                    " has one name"
                )
        items, drawn = dataset.items, None
        if self.settings.limit is not None:
            items = tuple(draw_items(items, self.settings.limit, self.settings.seed))
            drawn = subject_sizes(items)
        if self.settings.shard is not None:
            items = take_shard(items, *self.settings.shard)
        # To all items: a draw by the item's place must not move with what is left out.
        bound = chosen.bound_to(loaded.whole)
        evaluated = Evaluated(
            test,
            benchmark,
            bound,
            dataset,
            data_hash,
            items,
            drawn,
            lacking,
            self._arms(test, bound, dataset),
            self.settings.debias if bound.scorer == "letter" else (),
            (f"{test} has no assert: whatever is answered counts as correct",)
            if cannot_fail(body)
            else (),
            loaded.excluded,
        )
        self._by_test[test] = evaluated
        return evaluated

    def _arms(self, test: str, protocol: Protocol, dataset: Dataset) -> tuple[Arm, ...]:
        """What is asked beside the items as they are: other orders of options, and no content."""
        if dataset.chance() is None:
            return ()
        free: tuple[Arm, ...] = ()
        if "contextual" in self.settings.debias and protocol.scorer == "letter":
            content_free.check_shared_prompt(test, protocol, dataset)
            free = content_free.ARMS
        return (*self._orders(test, protocol, dataset), *free)

    def _orders(self, test: str, protocol: Protocol, dataset: Dataset) -> tuple[Arm, ...]:
        """The arms of the permutation audit but the original."""
        kind = self.settings.permutations
        if kind is None:
            return ()
        if protocol.samples > 1:
            raise ConfigError(f"{test}: --llm-permutations asks for one sample an item")
        shots = protocol.shots > 0 and not protocol.examples and any(dataset.pool.values())
        return arms(kind, usual_options(dataset.items), self.settings.seed, shots=shots)[1:]

    def _load(self, benchmark: Benchmark) -> Loaded:
        # Keyed by the source, so that two `starter()` calls share one data set. `repr` tells 1 from
        # True, which are equal keys.
        key = (benchmark.source, repr(benchmark.exclusion))
        if key not in self._loaded:
            whole = self._whole(benchmark)
            rest, excluded = exclude_items(benchmark.name, whole, benchmark.exclusion)
            rest = replace(rest, items=tuple(_without_row(item) for item in rest.items))
            self._loaded[key] = Loaded(whole, rest, rest.content_hash(), excluded)
        return self._loaded[key]

    def release(self) -> None:
        """Let go of what only further tests would need: data sets whole, with the rows of items."""
        self._datasets.clear()
        self._loaded.clear()

    def _whole(self, benchmark: Benchmark) -> Dataset:
        if benchmark.source not in self._datasets:
            dataset = benchmark.source(self.settings.data)
            if not isinstance(dataset, Dataset):
                raise ConfigError(
                    f"benchmark {benchmark.name!r}: its source returned"
                    f" {type(dataset).__name__}, not a Dataset"
                )
            check_dataset(benchmark.name, dataset)
            self._datasets[benchmark.source] = dataset
            self._item_ids.update(item.id for item in dataset.items)
        return self._datasets[benchmark.source]


def _without_row(item: Item) -> Item:
    """The item without what only an exclusion goes by: a third of what it takes in memory."""
    return replace(item, row=_NO_ROW) if item.row else item


def cannot_fail(body: Callable[..., object]) -> bool:
    """Whether a test's body neither raises nor calls anything, so that it accepts any answer.

    Such as ``answer.correct`` without its ``assert``, or behind a ``return``.
    """
    code = getattr(body, "__code__", None)
    return code is not None and not any(
        one.opname.startswith(("RAISE", "CALL", "BEFORE_WITH", "LOAD_SPECIAL"))
        for one in dis.get_instructions(code)
    )


def take_shard(items: Sequence[Item], part: int, parts: int) -> tuple[Item, ...]:
    """Part ``part`` of ``parts`` (from 1): a run of neighbours, which share their subject's shots.

    The parts differ in size by one item at most, and together are all items, each once.
    """
    return tuple(items[len(items) * (part - 1) // parts : len(items) * part // parts])


def draw_items(items: Iterable[Item], limit: int, seed: int) -> Iterator[Item]:
    """``limit`` items of every subject, in the data set's order.

    An item's rank is a hash of seed and id, so whether it is drawn depends on neither order
    nor process, and a larger limit keeps what a smaller one drew.
    """
    by_subject: dict[str, list[Item]] = {}
    ordered = list(items)
    for item in ordered:
        by_subject.setdefault(item.subject, []).append(item)
    drawn: set[str] = set()
    for members in by_subject.values():
        members.sort(key=lambda item: hashlib.sha256(f"{seed}/{item.id}".encode()).digest())
        drawn.update(item.id for item in members[:limit])
    return (item for item in ordered if item.id in drawn)
