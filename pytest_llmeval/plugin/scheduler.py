"""The xdist scheduler: whole chunks, the most expensive first, each on one worker."""

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
"""A worker holds back its last test until it knows the next one."""

LIVES = 2
"""How many workers one chunk may cost before its remaining items are given up."""


@dataclass
class _Unit:
    """Tests that are sent together: a chunk, or a single test that is none of ours."""

    key: Hashable
    indices: list[int]
    cost: float
    deaths: int = 0


@dataclass
class _Assigned:
    """What a worker was sent and has not finished, in the order it will run."""

    pending: dict[int, _Unit] = field(default_factory=dict)


class ChunkScheduling:
    """Implements xdist's Scheduling protocol.

    A worker is sent another chunk when at most ``low`` of its tests are left; ``assign`` is told
    beforehand. When a worker dies, the test that it was running is reported as crashed (by xdist;
    ``crashed`` is called first) and the rest of its chunks goes back to the queue. A chunk that
    kills ``LIVES`` workers is given up: ``give_up`` is called with its tests.
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
        self._assigned: dict[Node, _Assigned] = {}
        self._collections: dict[Node, Sequence[str]] = {}
        self._ids: Sequence[str] | None = None
        self._queue: deque[_Unit] = deque()

    @property
    def nodes(self) -> list[Node]:
        return list(self._assigned)

    @property
    def collection_is_completed(self) -> bool:
        # Stays true when workers leave: xdist asks until the last one has gone.
        return self._ids is not None or len(self._collections) >= self._numnodes

    @property
    def tests_finished(self) -> bool:
        if not self.collection_is_completed or self._queue:
            return False
        return all(len(assigned.pending) < 2 for assigned in self._assigned.values())

    @property
    def has_pending(self) -> bool:
        return bool(self._queue) or any(one.pending for one in self._assigned.values())

    def add_node(self, node: Node) -> None:
        self._assigned[node] = _Assigned()

    def add_node_collection(self, node: Node, collection: Sequence[str]) -> None:
        # A worker that collected something else (after the start: a replacement) stays idle.
        if self._ids is None or list(collection) == list(self._ids):
            self._collections[node] = collection

    def mark_test_complete(self, node: Node, item_index: int, duration: float = 0) -> None:
        self._assigned[node].pending.pop(item_index, None)
        self._refill(node)

    def mark_test_pending(self, item: str) -> None:
        # What xdist's own say that do not: plugins which run tests again ask.
        raise NotImplementedError("a chunk's tests are never sent again one by one")

    def remove_pending_tests_from_node(self, node: Node, indices: Sequence[int]) -> None:
        raise RuntimeError("this scheduler does not steal tests")

    def remove_node(self, node: Node) -> str | None:
        """Forget a worker; return the test it died in, if it died."""
        pending = self._assigned.pop(node).pending
        self._collections.pop(node, None)
        if not pending:
            return None
        assert self._ids is not None
        crashed = next(iter(pending))
        killer = pending.pop(crashed)
        killer.deaths += 1
        self._crashed(self._ids[crashed])
        left: dict[Hashable, _Unit] = {}
        for index, unit in pending.items():
            rest = left.setdefault(unit.key, _Unit(unit.key, [], unit.cost, unit.deaths))
            rest.indices.append(index)
        if killer.deaths >= LIVES and killer.key in left:
            given_up = left.pop(killer.key)
            self._give_up([self._ids[index] for index in given_up.indices])
        self._queue.extendleft(reversed(left.values()))
        self._refill(*self._assigned)
        return self._ids[crashed]

    def schedule(self) -> None:
        """Send the first chunks, or, when called again, fill workers that came later."""
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
        """Send chunks to those that have little left, in turn."""
        able = [n for n in nodes if not n.shutting_down and n in self._collections]
        gave = True
        while gave:
            gave = False
            for node in able:
                gave = self._give(node) or gave
        if not self._queue:
            for node in able:
                node.shutdown()  # lets the worker run the test that it holds back

    def _give(self, node: Node) -> bool:
        """Send a worker one chunk if it needs one and there is one; whether it was sent."""
        pending = self._assigned[node].pending
        if not self._queue or len(pending) > self._low:
            return False
        unit = self._queue.popleft()
        if isinstance(unit.key, int):
            # First, so that a worker that has its tests knows their chunk.
            self._assign(node.gateway.id, unit.key)
        try:
            node.send_runtest_some(unit.indices)
        except OSError:
            # It has died, and xdist is about to say so.
            self._queue.appendleft(unit)
            return False
        pending.update(dict.fromkeys(unit.indices, unit))
        return True


def ordinary_unit(nodeid: str, dist: str) -> str:
    """What an ordinary test is kept together with, under xdist's ``--dist``."""
    if dist == "loadfile":
        return nodeid.split("::", 1)[0]
    if dist == "loadscope":
        return nodeid.rsplit("::", 1)[0]
    if dist == "loadgroup" and "@" in nodeid.rpartition("]")[2]:
        return nodeid.rpartition("@")[2]
    return nodeid


class DeferredScheduling:
    """Decides at the first collection: ours if anything is to be evaluated, else xdist's own.

    The scheduler has to exist before tests are collected, and a session without marked tests
    must not notice this plugin.
    """

    def __init__(self, default: Any, choose: Callable[[], ChunkScheduling | None]) -> None:
        self._inner = default
        #: Other plugins take the configuration from the scheduler, as xdist's own have it.
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
            ours = self._choose()
            if ours is not None:
                for known in self._inner.nodes:
                    ours.add_node(known)
                self._inner = ours
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
