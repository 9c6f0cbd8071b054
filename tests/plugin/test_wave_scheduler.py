"""The scheduler of sequential runs: no test of a wave runs before the decision on earlier waves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from plugin.test_scheduler import Node
from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.plugin.scheduler import LEAST_PENDING
from pytest_llmeval.plugin.scheduler import WaveScheduling


class Session:
    """Workers that run their tests as xdist's do, and a controller that decides after every wave.

    ``unneeded``: chunks that no gate needs after the first wave.
    """

    def __init__(self, waves: list[list[int]], workers: int, unneeded: set[int]) -> None:
        """``waves``: sizes of the chunks of every wave."""
        sizes = [(wave, size) for wave, chunks in enumerate(waves) for size in chunks]
        items = tuple(
            PlannedItem(f"t[{chunk}-{row}]", 0, 0, f"{chunk}-{row}", "s", chunk)
            for chunk, (_, size) in enumerate(sizes)
            for row in range(size)
        )
        costs = tuple(size for _, size in sizes)
        self.plan = replace(
            Plan(items=items, costs=costs), chunk_waves=tuple(wave for wave, _ in sizes)
        )
        self.ids = [item.nodeid for item in items]
        self.unneeded = unneeded
        self.decided = 0
        self.skipped: list[str] = []
        self.done: list[int] = []
        self.assigned: list[tuple[str, int]] = []
        self.crashed: list[str] = []
        self.has_crashed = False
        self.scheduler = WaveScheduling(
            workers,
            self.plan,
            "load",
            self.crashed.append,
            self.skipped.extend,
            lambda worker, chunk: self.assigned.append((worker, chunk)),
            LEAST_PENDING,
            needed=self.needed,
            skip=self.skipped.extend,
        )
        self.nodes: list[Node] = []
        self.ran: dict[str, int] = {}
        for _ in range(workers):
            self.scheduler.add_node(self.new_node())
        for node in self.nodes:
            self.scheduler.add_node_collection(node, self.ids)
        self.scheduler.schedule()

    def new_node(self) -> Node:
        node = Node(f"gw{len(self.ran)}")
        self.nodes.append(node)
        self.ran[node.name] = 0
        return node

    def wave(self, index: int) -> int:
        return self.plan.chunk_waves[self.plan.items[index].chunk]

    def needed(self, number: int, nodeids: list[str]) -> set[str]:
        assert number == self.decided + 1
        self.decided = number
        earlier = {index for index in range(len(self.ids)) if self.wave(index) < number}
        reported = {*self.done, *map(self.ids.index, [*self.skipped, *self.crashed])}
        left = earlier - reported
        assert all(self.plan.items[index].chunk in self.unneeded for index in left), left
        return {n for n in nodeids if self.plan.by_nodeid[n].chunk not in self.unneeded}

    def step(self, node: Node) -> bool:
        """Run one test of a worker; it holds its last test until it knows the next."""
        left = len(node.sent) - self.ran[node.name]
        if not (left > 1 or (left == 1 and node.shutting_down)):
            return False
        index = node.sent[self.ran[node.name]]
        ahead = self.wave(index) > self.decided
        # After a crash, a worker that has a test of the next wave may get the rest of a chunk.
        assert not ahead or self.has_crashed, "not before the decision on earlier waves"
        self.ran[node.name] += 1
        self.done.append(index)
        self.scheduler.mark_test_complete(node, index)
        return True

    def crash(self, node: Node) -> None:
        self.has_crashed = True
        self.nodes.remove(node)
        self.scheduler.remove_node(node)
        replacement = self.new_node()
        self.scheduler.add_node(replacement)
        self.scheduler.add_node_collection(replacement, self.ids)
        self.scheduler.schedule()

    def run(self, choose: Any = None) -> None:
        """Run all tests; ``choose`` selects the order of the workers."""
        moved = True
        while moved:
            order = list(self.nodes) if choose is None else choose(list(self.nodes))
            moved = sum(self.step(node) for node in order) > 0


WAVES = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=5)


@settings(max_examples=200)
@given(WAVES, st.integers(1, 4), st.data())
def test_every_test_is_run_or_skipped_once(waves, workers, data):
    chunks = sum(map(len, waves))
    later = range(len(waves[0]), chunks)
    unneeded = data.draw(st.sets(st.sampled_from(later)) if later else st.just(set()))
    session = Session(waves, workers, unneeded)
    session.run(lambda nodes: data.draw(st.permutations(nodes)))
    reported = [*session.done, *map(session.ids.index, session.skipped)]
    assert sorted(reported) == list(range(len(session.ids)))
    ran = {session.plan.items[index].chunk for index in session.done}
    assert ran >= set(range(chunks)) - unneeded
    assert session.scheduler.tests_finished
    assert not session.scheduler.has_pending
    assert session.decided == len(waves) - 1


@settings(max_examples=150)
@given(WAVES, st.integers(1, 3), st.integers(0, 12), st.data())
def test_a_crash_loses_one_test_at_most(waves, workers, steps, data):
    session = Session(waves, workers, set())
    for _ in range(steps):
        session.step(data.draw(st.sampled_from(session.nodes)))
    session.crash(data.draw(st.sampled_from(session.nodes)))
    session.run()
    reported = [*session.done, *map(session.ids.index, [*session.skipped, *session.crashed])]
    assert sorted(reported) == list(range(len(session.ids)))
    assert len(session.crashed) <= 1


def test_a_worker_is_left_for_every_later_wave():
    """One worker is lost while another has the only test of the next wave."""
    session = Session([[1, 1, 2, 3], [1], [1]], 3, set())
    session.crash(session.nodes[1])
    session.run()
    assert len(session.done) + len(session.crashed) == len(session.ids)


def test_a_chunk_of_the_next_wave_is_assigned_after_the_decision():
    """Before that, a model that works ahead would send its requests."""
    session = Session([[2], [3]], 1, set())
    session.step(session.nodes[0])
    assert session.assigned == [("gw0", 0)]
    assert session.nodes[0].sent == [0, 1, 2]
    session.step(session.nodes[0])
    assert session.assigned == [("gw0", 0), ("gw0", 1)]
    assert session.decided == 1


def test_ordinary_tests_run_in_the_first_wave():
    session = Session([[2], [2]], 1, {1})
    session.run()
    assert session.done[:2] == [0, 1]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_all_later_waves_are_skipped(workers):
    waves = [[2, 2]] + [[3, 2]] * 6
    session = Session(waves, workers, set(range(2, 14)))
    session.run()
    # At most the first test of a chunk reaches a worker in each wave.
    assert len(session.done) <= 4 + 6 * workers
    assert len(session.done) + len(session.skipped) == len(session.ids)
