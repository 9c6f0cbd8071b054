"""Scheduler for xdist: whole chunks, the most expensive first, each on one worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import pytest

from pytest_llmeval.core.plan import Plan

Node = Any  # xdist's WorkerController; xdist is not imported before a session uses it

LEAST_PENDING = 2
"""Minimum number of pending tests: a worker runs a test only once it knows the next one."""

MAX_CRASHES = 2
"""Number of workers that a chunk may crash before its remaining tests are given up."""


@dataclass
class _Unit:
    """Tests that are sent together: a chunk, or a group of ordinary tests."""

    key: Hashable
    indices: list[int]
    cost: float
    crashes: int = 0


@dataclass
class _WorkerQueue:
    """Unfinished tests of a worker: index → unit, in the order in which they run."""

    pending: dict[int, _Unit] = field(default_factory=dict)


class ChunkScheduling:
    """Implementation of xdist's ``Scheduling`` protocol.

    A worker is sent another chunk when it has at most ``low`` pending tests; ``assign(worker,
    chunk)`` is called before. When a worker crashes, xdist reports its running test as crashed, after
    a call of ``crashed(nodeid)``, and its other tests return to the queue. A chunk that crashes
    ``MAX_CRASHES`` workers is given up, and ``give_up`` is called with the node ids of its tests.
    """

    def __init__(
        self,
        numnodes: int,
        plan: Plan,
        dist: str,
        crashed: Callable[[str], None],
        give_up: Callable[[list[str]], None],
        assign: Callable[[str, int], None] = lambda worker, chunk: None,
        low: int = LEAST_PENDING,
    ) -> None:
        self._numnodes = numnodes
        self._plan = plan
        self._dist = dist
        self._crashed = crashed
        self._give_up = give_up
        self._assign = assign
        self._low = low
        self._assigned: dict[Node, _WorkerQueue] = {}
        self._collections: dict[Node, Sequence[str]] = {}
        self._ids: Sequence[str] | None = None
        self._queue: deque[_Unit] = deque()

    @property
    def nodes(self) -> list[Node]:
        return list(self._assigned)

    @property
    def collection_is_completed(self) -> bool:
        # Stays true when workers end: xdist reads it until the last one has ended.
        return self._ids is not None or len(self._collections) >= self._numnodes

    @property
    def tests_finished(self) -> bool:
        if not self.collection_is_completed or self._queue:
            return False
        return all(len(queue.pending) < 2 for queue in self._assigned.values())

    @property
    def has_pending(self) -> bool:
        return bool(self._queue) or any(queue.pending for queue in self._assigned.values())

    def add_node(self, node: Node) -> None:
        self._assigned[node] = _WorkerQueue()

    def add_node_collection(self, node: Node, collection: Sequence[str]) -> None:
        # A replacement worker that collected other tests stays idle.
        if self._ids is None or list(collection) == list(self._ids):
            self._collections[node] = collection

    def mark_test_complete(self, node: Node, item_index: int, duration: float = 0) -> None:
        self._assigned[node].pending.pop(item_index, None)
        self._refill(node)

    def mark_test_pending(self, item: str) -> None:
        # As xdist's schedulers without this feature do, for plugins that rerun tests.
        raise NotImplementedError("a chunk's tests are never sent again one by one")

    def remove_pending_tests_from_node(self, node: Node, indices: Sequence[int]) -> None:
        raise RuntimeError("this scheduler does not steal tests")

    def remove_node(self, node: Node) -> str | None:
        """Remove a worker; return the test in which it crashed, None if it did not crash."""
        pending = self._assigned.pop(node).pending
        self._collections.pop(node, None)
        if not pending:
            return None
        assert self._ids is not None
        crashed = next(iter(pending))
        crashed_unit = pending.pop(crashed)
        crashed_unit.crashes += 1
        self._crashed(self._ids[crashed])
        remaining: dict[Hashable, _Unit] = {}
        for index, unit in pending.items():
            rest = remaining.setdefault(unit.key, _Unit(unit.key, [], unit.cost, unit.crashes))
            rest.indices.append(index)
        if crashed_unit.crashes >= MAX_CRASHES and crashed_unit.key in remaining:
            given_up = remaining.pop(crashed_unit.key)
            self._give_up([self._ids[index] for index in given_up.indices])
        self._queue.extendleft(reversed(remaining.values()))
        self._refill(*self._assigned)
        return self._ids[crashed]

    def schedule(self) -> None:
        """Send the first chunks; when called again, send chunks to workers that started later."""
        if self._ids is None and not self._start():
            return
        self._refill(*self._collections)

    def _start(self) -> bool:
        first, *others = self._collections.values()
        if any(list(other) != list(first) for other in others):
            raise pytest.UsageError(
                "the workers collected different tests: test ids must not depend on hash seeds,"
                " sets, random numbers or time"
            )
        self._ids = first
        units: dict[Hashable, _Unit] = {}
        for index, nodeid in enumerate(first):
            key, cost = self._unit_of(nodeid)
            units.setdefault(key, _Unit(key, [], cost)).indices.append(index)
        self._queue.extend(sorted(units.values(), key=lambda unit: -unit.cost))
        return True

    def _unit_of(self, nodeid: str) -> tuple[Hashable, float]:
        planned = self._plan.by_nodeid.get(nodeid)
        if planned is None:
            return ordinary_unit(nodeid, self._dist), 0.0
        return planned.chunk, self._plan.costs[planned.chunk]

    def _refill(self, *nodes: Node) -> None:
        """Send chunks to workers with few pending tests, one chunk each in turn."""
        active = [n for n in nodes if not n.shutting_down and n in self._collections]
        sent = True
        while sent:
            sent = False
            for node in active:
                sent = self._send_unit(node) or sent
        if not self._queue:
            self._when_sent(active)

    def _when_sent(self, active: list[Node]) -> None:
        """End the workers, as all units are sent; they then run their last tests as well."""
        for node in active:
            node.shutdown()

    def _send_unit(self, node: Node) -> bool:
        """Send a worker one unit if it has few pending tests; return whether one was sent."""
        pending = self._assigned[node].pending
        if not self._queue or len(pending) > self._low:
            return False
        unit = self._queue.popleft()
        self._publish(node, unit)
        if not self._send(node, unit, unit.indices):
            self._queue.appendleft(unit)
            return False
        return True

    def _publish(self, node: Node, unit: _Unit) -> None:
        """Assign a chunk to a worker before its tests are sent, so that the worker can look it up."""
        if isinstance(unit.key, int):
            self._assign(node.gateway.id, unit.key)

    def _send(self, node: Node, unit: _Unit, indices: list[int]) -> bool:
        """Send a worker tests of a unit; return whether it could be reached."""
        try:
            node.send_runtest_some(indices)
        except OSError:
            return False  # the worker has crashed, which xdist will report
        self._assigned[node].pending.update(dict.fromkeys(indices, unit))
        return True


class WaveScheduling(ChunkScheduling):
    """Scheduler that sends no chunk of a wave before the gates are decided on all earlier waves.

    A worker runs a test only once it knows the next one. At the end of a wave it is therefore sent
    the first test of a chunk of a later wave, which it does not start until it is sent another
    test, and by then the gates are decided (unless another worker crashes meanwhile: then it may
    start before, which no decision uses). ``needed(number, nodeids)`` decides them after that
    number of complete waves and returns the node ids that are still needed; ``skip(nodeids)`` reports
    the others, which no worker has.
    """

    def __init__(
        self,
        *arguments: Any,
        needed: Callable[[int, list[str]], set[str]],
        skip: Callable[[list[str]], None],
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._needed = needed
        self._skip = skip
        #: Number of the current wave, from 0.
        self._wave = 0
        #: Units of the waves that have not begun.
        self._later: deque[list[_Unit]] = deque()
        #: Worker → the unit of a later wave of which it has the first test, and that wave.
        self._ahead: dict[Node, tuple[int, _Unit]] = {}

    @property
    def tests_finished(self) -> bool:
        return not self._later and not self._ahead and super().tests_finished

    @property
    def has_pending(self) -> bool:
        return bool(self._later) or super().has_pending

    def mark_test_complete(self, node: Node, item_index: int, duration: float = 0) -> None:
        if item_index in self._ahead_of(node):  # it was not held back
            wave, unit = self._ahead.pop(node)
            if rest := unit.indices[1:]:
                self._units_of(wave).append(_Unit(unit.key, rest, unit.cost, unit.crashes))
        super().mark_test_complete(node, item_index, duration)

    def remove_node(self, node: Node) -> str | None:
        """Remove a worker; its unit of a later wave returns to that wave."""
        if node in self._ahead:
            wave, unit = self._ahead.pop(node)
            self._assigned[node].pending.pop(unit.indices[0], None)
            self._units_of(wave).append(unit)
        return super().remove_node(node)

    def _start(self) -> bool:
        started = super()._start()
        waves = self._plan.chunk_waves
        by_wave: dict[int, list[_Unit]] = {
            number: [] for number in range(max(waves, default=0) + 1)
        }
        for unit in self._queue:  # ordinary tests run in the first wave
            by_wave[waves[unit.key] if isinstance(unit.key, int) else 0].append(unit)
        first, *later = by_wave.values()
        self._queue, self._later = deque(first), deque(later)
        return started

    def _refill(self, *nodes: Node) -> None:
        while self._is_wave_over() and (self._later or self._ahead):
            self._begin_wave()
            nodes = tuple(self._assigned)
        super()._refill(*nodes)

    def _when_sent(self, active: list[Node]) -> None:
        """Release the last test of each worker at the end of a wave; end the workers after the last."""
        if not self._later and not self._ahead:
            super()._when_sent(active)
            return
        for node in active:
            if len(self._assigned[node].pending) != 1 or node in self._ahead:
                continue
            waves = enumerate(self._later, self._wave + 1)
            wave, units = next(((wave, units) for wave, units in waves if units), (0, []))
            if not units:
                node.shutdown()  # it runs its last test, and there is no other that may follow it
            elif self._send(node, units[0], units[0].indices[:1]):
                self._ahead[node] = (wave, units.pop(0))

    def _is_wave_over(self) -> bool:
        if self._ids is None or self._queue:
            return False
        return all(
            not queue.pending.keys() - self._ahead_of(node)
            for node, queue in self._assigned.items()
        )

    def _ahead_of(self, node: Node) -> set[int]:
        return {self._ahead[node][1].indices[0]} if node in self._ahead else set()

    def _units_of(self, wave: int) -> list[_Unit]:
        """Return the units of a later wave, without those that a worker has begun to receive."""
        while len(self._later) < wave - self._wave:
            self._later.append([])
        return self._later[wave - self._wave - 1]

    def _begin_wave(self) -> None:
        """Decide the gates, skip what no gate needs, and send the rest of the units of a wave."""
        assert self._ids is not None
        units = self._later.popleft() if self._later else []
        self._wave += 1
        begun = [node for node, (wave, _) in self._ahead.items() if wave == self._wave]
        ahead = {node: self._ahead.pop(node)[1] for node in begun}
        nodeids = [self._ids[index] for unit in (*units, *ahead.values()) for index in unit.indices]
        needed = self._needed(self._wave, nodeids)
        skipped: list[str] = []
        for unit in units:
            if self._ids[unit.indices[0]] in needed:
                self._queue.append(unit)
            else:
                skipped += [self._ids[index] for index in unit.indices]
        for node, unit in ahead.items():
            # The worker reports the first test, which it has, as skipped.
            rest = unit.indices[1:]
            if self._ids[unit.indices[0]] not in needed:
                skipped += [self._ids[index] for index in rest]
                continue
            self._publish(node, unit)
            if rest and not self._send(node, unit, rest):
                self._queue.append(_Unit(unit.key, rest, unit.cost, unit.crashes))
        self._skip(skipped)


def ordinary_unit(nodeid: str, dist: str) -> str:
    """Return the key of the unit of an ordinary test under xdist's ``--dist``."""
    if dist == "loadfile":
        return nodeid.split("::", 1)[0]
    if dist == "loadscope":
        return nodeid.rsplit("::", 1)[0]
    if dist == "loadgroup" and "@" in nodeid.rpartition("]")[2]:
        return nodeid.rpartition("@")[2]
    return nodeid


class DeferredScheduling:
    """Scheduler that delegates to xdist's own, or to `ChunkScheduling` if there are marked tests.

    xdist creates the scheduler before the collection, which decides between the two.
    """

    def __init__(self, default: Any, choose: Callable[[], ChunkScheduling | None]) -> None:
        self._inner = default
        #: Read by other plugins, since xdist's schedulers have it.
        self.config = default.config
        self._choose = choose
        self._chosen = False

    @property
    def nodes(self) -> list[Node]:
        return list(self._inner.nodes)

    @property
    def collection_is_completed(self) -> bool:
        return bool(self._inner.collection_is_completed)

    @property
    def tests_finished(self) -> bool:
        return bool(self._inner.tests_finished)

    @property
    def has_pending(self) -> bool:
        return bool(self._inner.has_pending)

    def add_node(self, node: Node) -> None:
        self._inner.add_node(node)

    def add_node_collection(self, node: Node, collection: Sequence[str]) -> None:
        if not self._chosen:
            self._chosen = True
            scheduler = self._choose()
            if scheduler is not None:
                for added in self._inner.nodes:
                    scheduler.add_node(added)
                self._inner = scheduler
        self._inner.add_node_collection(node, collection)

    def mark_test_complete(self, node: Node, item_index: int, duration: float = 0) -> None:
        self._inner.mark_test_complete(node, item_index, duration)

    def mark_test_pending(self, item: str) -> None:
        self._inner.mark_test_pending(item)

    def remove_pending_tests_from_node(self, node: Node, indices: Sequence[int]) -> None:
        self._inner.remove_pending_tests_from_node(node, indices)

    def remove_node(self, node: Node) -> str | None:
        crashed: str | None = self._inner.remove_node(node)
        return crashed

    def schedule(self) -> None:
        self._inner.schedule()
