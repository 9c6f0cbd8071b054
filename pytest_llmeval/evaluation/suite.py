"""The evaluations of a session: benchmark, protocol and items of every marked test."""

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
from pytest_llmeval.core import LABELS
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
from pytest_llmeval.evaluation.order_tests import OrderTestPlan
from pytest_llmeval.evaluation.order_tests import plan_order_tests
from pytest_llmeval.scorers import get_scorer
from pytest_llmeval.sources.exclusion import exclude_items


def choose_protocol(benchmark: Benchmark, marked: str | None, settings: Settings) -> Protocol:
    """Return the protocol of a marked test.

    A protocol named in the marker takes precedence over the command line's. ``+chat``, ``+chat-text``, ``+generate`` and ``+embed:MODEL`` after the name (or alone,
    for the default protocol) modify it. ``--llm-shots``, ``--llm-samples``, ``--llm-temperature``
    and ``--llm-max-tokens`` override its numbers in both cases, and a chat gets the system prompt of
    ``--llm-system``.

    Raises ConfigError for an unknown name, suggesting the nearest.
    """
    if marked is not None and not isinstance(marked, str):
        raise ConfigError(
            f"benchmark {benchmark.name!r}: protocol= of the marker is of type"
            f" {type(marked).__name__}, not the name of a protocol"
        )
    text = marked or settings.protocol or ""
    name, *modifiers = text.split("+")
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
                f"protocol {text!r}: unknown modifier '+{modifier}'"
                f"{suggestion(modifier, ('chat', 'chat-text', 'generate', 'embed:MODEL'))}"
            )
    if settings.shots is not None and protocol.template.prompt is not None:
        raise ConfigError(
            f"benchmark {benchmark.name!r}: --llm-shots cannot change its prompts, which are complete"
            " texts with their shots: give the number of shots to the function that makes the benchmark"
        )
    if settings.shots is not None and settings.shots != protocol.shots:
        protocol = replace(protocol, shots=settings.shots)
    if settings.decoding:
        protocol = replace(protocol, decoding=replace(protocol.decoding, **settings.decoding))
    if settings.system is not None and protocol.chat:
        protocol = replace(protocol, system=settings.system)
    if settings.samples > 1:
        protocol = replace(protocol, samples=settings.samples)
    return protocol


def _with_embedding(protocol: Protocol, model: str) -> Protocol:
    """Return the protocol with another embedding model to match answers."""
    if protocol.scorer.partition("+")[0] != "matched":
        raise ConfigError(
            f"protocol {protocol.name!r} does not match answers by meaning: remove '+embed:{model}'"
        )
    return replace(protocol, name=f"{protocol.name}+embed:{model}", scorer=f"matched+{model}")


_NO_ROW: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a benchmark under one protocol by one test function."""

    #: Node id of the function, without parameters.
    test: str
    benchmark: Benchmark
    protocol: Protocol
    #: All items of the benchmark, without those that its ``exclude`` removes.
    dataset: Dataset
    data_hash: str
    #: Items that the run may select from: fewer under ``--llm-limit`` or ``--llm-shard``.
    items: tuple[Item, ...]
    #: Subject → number of items sampled under ``--llm-limit``, over all shards.
    drawn: Mapping[str, int] | None = None
    #: Why this machine cannot score it, in one line.
    unavailable_reason: str | None = None
    #: Further requests per item: other option orders and content-free prompts.
    arms: tuple[Arm, ...] = ()
    #: Methods of removing position bias from its log-probabilities, each a separate result.
    debias: tuple[str, ...] = ()
    #: Warnings about the test.
    warnings: tuple[str, ...] = ()
    #: Description of the items that the benchmark's ``exclude`` removes.
    excluded: str = ""
    #: Tests of the published orders, which one of the benchmark's evaluations requests.
    order_tests: tuple[OrderTestPlan, ...] = ()

    def arm(self, name: str) -> tuple[int, Arm]:
        """Return the index of an arm and the arm, by its name."""
        return self._arms_by_name[name]

    @cached_property
    def _arms_by_name(self) -> Mapping[str, tuple[int, Arm]]:
        return {arm.name: (place, arm) for place, arm in enumerate(self.arms)}

    @property
    def orders(self) -> tuple[Arm, ...]:
        """Arms that change the option order, without the content-free ones."""
        return tuple(arm for arm in self.arms if arm.instead is None)


class BenchmarkData(NamedTuple):
    """The data of a benchmark: ``whole``, and ``dataset`` without excluded items, with its hash."""

    whole: Dataset
    dataset: Dataset
    data_hash: str
    excluded: str


class Suite:
    """The evaluations of a session. Data sets are loaded once per process and benchmark."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._by_test: dict[str, Evaluation] = {}
        self._datasets: dict[Callable[[Any], Dataset], Dataset] = {}
        self._loaded: dict[tuple[Callable[[Any], Dataset], str], BenchmarkData] = {}
        self._item_ids: set[str] = set()
        #: By name of the benchmark, whose data are the same in all of its tests.
        self._order_tests: dict[str, tuple[OrderTestPlan, ...]] = {}

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._by_test.values())

    def item_ids(self) -> Collection[str]:
        """Ids of all items of the data sets, including excluded and unselected ones."""
        return self._item_ids

    def get(self, test: str) -> Evaluation | None:
        """Return the evaluation of a marked test function; None if it is not registered."""
        return self._by_test.get(test)

    def add(
        self, test: str, benchmark: object, protocol: str | None, body: Callable[..., object]
    ) -> Evaluation:
        """Register the marked test function ``test`` (a node id without parameters).

        ``body`` is the function; it is inspected, not called. Raises ConfigError if the marker does
        not name a benchmark, if the protocol or scorer is unknown, if the data cannot be loaded,
        or if another test already gives the result of the same (benchmark, scorer).
        """
        if not isinstance(benchmark, Benchmark):
            raise ConfigError(
                f"{test}: @pytest.mark.llmeval takes a Benchmark, not {type(benchmark).__name__}"
                + (" (call it: mmlu())" if callable(benchmark) else "")
            )
        selected = choose_protocol(benchmark, protocol, self.settings)
        scorers = (selected.scorer, *selected.also)
        unavailable_reason = None
        kinds = {jobs.kind: None for scorer in scorers if (jobs := get_scorer(scorer).jobs)}
        if kinds:
            try:
                runners = [KINDS[kind].identity(self.settings) for kind in kinds]
                selected = replace(selected, sandbox="; ".join(runners))
            except ConfigError as error:
                unavailable_reason = f"{test} runs code that models wrote, and {error}"
        if len(set(scorers)) < len(scorers):
            raise ConfigError(f"{test}: protocol {selected.name!r} names a scorer twice")
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
            items = tuple(sample_items(items, self.settings.limit, self.settings.seed))
            drawn = subject_sizes(items)
        if benchmark.name not in self._order_tests:
            self._order_tests[benchmark.name] = plan_order_tests(
                benchmark, dataset, data_hash, items, self.settings
            )
        if self.settings.shard is not None:
            items = take_shard(items, *self.settings.shard)
        # To all items: shots selected by an item's position must not change with exclusions.
        bound = selected.bound_to(loaded.whole)
        evaluation = Evaluation(
            test,
            benchmark,
            bound,
            dataset,
            data_hash,
            items,
            drawn,
            unavailable_reason,
            self._arms(test, bound, dataset),
            self.settings.debias if bound.scorer == "letter" else (),
            (f"{test} has no assert: every answer counts as correct",)
            if accepts_any_answer(body)
            else (),
            loaded.excluded,
            self._order_tests[benchmark.name],
        )
        self._by_test[test] = evaluation
        return evaluation

    def _arms(self, test: str, protocol: Protocol, dataset: Dataset) -> tuple[Arm, ...]:
        """Return the requests in addition to the original items: option orders, content-free prompts."""
        if dataset.chance() is None:
            return ()
        free: tuple[Arm, ...] = ()
        if self.settings.permutations is not None or self.settings.debias:
            _check_reordering(test, protocol, dataset)
        if "contextual" in self.settings.debias and protocol.scorer == "letter":
            content_free.check_shared_prompt(test, protocol, dataset)
            free = content_free.ARMS
        return (*self._orders(test, protocol, dataset), *free)

    def _orders(self, test: str, protocol: Protocol, dataset: Dataset) -> tuple[Arm, ...]:
        """Return the arms of the permutation audit except the original."""
        kind = self.settings.permutations
        if kind is None:
            return ()
        if protocol.samples > 1:
            raise ConfigError(f"{test}: --llm-permutations requires one sample per item")
        shots = protocol.shots > 0 and not protocol.examples and any(dataset.pool.values())
        return arms(kind, usual_options(dataset.items), self.settings.seed, shots=shots)[1:]

    def _load(self, benchmark: Benchmark) -> BenchmarkData:
        # Keyed by the source, so that two `starter()` calls share one data set. `repr` distinguishes
        # 1 from True, which are equal keys.
        key = (benchmark.source, repr(benchmark.exclusion))
        if key not in self._loaded:
            whole = self._whole(benchmark)
            rest, excluded = exclude_items(benchmark.name, whole, benchmark.exclusion)
            rest = replace(rest, items=tuple(_without_row(item) for item in rest.items))
            self._loaded[key] = BenchmarkData(whole, rest, rest.content_hash(), excluded)
        return self._loaded[key]

    def release(self) -> None:
        """Free the data that only further tests would need: whole data sets, with the rows of items."""
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


def _check_reordering(test: str, protocol: Protocol, dataset: Dataset) -> None:
    """Raise ConfigError if options cannot be shown in another order."""
    if protocol.template.prompt is not None:
        raise ConfigError(
            f"{test}: --llm-permutations and --llm-debias need prompts in which options can be"
            f" reordered, and template {protocol.template.name!r} renders complete prompts"
        )
    for item in dataset.items:
        if len(item.options) > len(LABELS):
            raise ConfigError(
                f"{test}: --llm-permutations and --llm-debias reorder up to {len(LABELS)} options,"
                f" and {item.id} has {len(item.options)}"
            )


def _without_row(item: Item) -> Item:
    """Return the item without its row, which only exclusions use: a third of its memory."""
    return replace(item, row=_NO_ROW) if item.row else item


def accepts_any_answer(body: Callable[..., object]) -> bool:
    """Return true if a test body neither raises nor calls anything, so that it accepts any answer.

    An example is ``answer.correct`` without ``assert``, or after a ``return``.
    """
    code = getattr(body, "__code__", None)
    return code is not None and not any(
        instruction.opname.startswith(("RAISE", "CALL", "BEFORE_WITH", "LOAD_SPECIAL"))
        for instruction in dis.get_instructions(code)
    )


def take_shard(items: Sequence[Item], part: int, parts: int) -> tuple[Item, ...]:
    """Return part ``part`` of ``parts`` (from 1): consecutive items, which share their subject's shots.

    The parts are disjoint, cover all items and differ in size by at most one.
    """
    return tuple(items[len(items) * (part - 1) // parts : len(items) * part // parts])


def sample_items(items: Iterable[Item], limit: int, seed: int) -> Iterator[Item]:
    """Sample ``limit`` items of every subject, in the data set's order.

    An item's rank is a hash of seed and id, so the sample depends neither on order nor on the
    process, and a larger limit contains the sample of a smaller one.
    """
    by_subject: dict[str, list[Item]] = {}
    ordered = list(items)
    for item in ordered:
        by_subject.setdefault(item.subject, []).append(item)
    sampled: set[str] = set()
    for members in by_subject.values():
        members.sort(key=lambda item: hashlib.sha256(f"{seed}/{item.id}".encode()).digest())
        sampled.update(item.id for item in members[:limit])
    return (item for item in ordered if item.id in sampled)
