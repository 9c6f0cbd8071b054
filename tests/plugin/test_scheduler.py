"""The xdist scheduler on its own, with workers that only remember what they were sent."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core.plan import Plan
from pytest_llmeval.core.plan import PlannedItem
from pytest_llmeval.plugin.scheduler import LEAST_PENDING
from pytest_llmeval.plugin.scheduler import ChunkScheduling


class Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.gateway = SimpleNamespace(id=name)
        self.broken = False
        self.sent: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        if self.broken:
            raise OSError("cannot send (already closed?)")
        self.sent += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def make_plan(sizes: list[int], costs: list[int]) -> tuple[Plan, list[str]]:
    items = [
        PlannedItem(f"t[{chunk}-{row}]", 0, 0, f"{chunk}-{row}", "s", chunk)
        for chunk, size in enumerate(sizes)
        for row in range(size)
    ]
    return Plan(items=tuple(items), costs=tuple(costs)), [item.nodeid for item in items]


def make_scheduler(plan: Plan, ids: list[str], count: int, low: int = LEAST_PENDING):
    events: dict[str, list] = {"crashed": [], "given up": [], "assigned": []}
    scheduler = ChunkScheduling(
        count,
        plan,
        "load",
        events["crashed"].append,
        events["given up"].extend,
        lambda worker, chunk: events["assigned"].append((worker, chunk)),
        low,
    )
    nodes = [Node(f"gw{number}") for number in range(count)]
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        assert not scheduler.collection_is_completed
        scheduler.add_node_collection(node, ids)
    scheduler.schedule()
    return scheduler, nodes, events


def run_to_the_end(scheduler, nodes) -> dict[str, list[int]]:
    """Let the workers run one test each in turn, as long as they may."""
    done: dict[str, list[int]] = {node.name: [] for node in nodes}
    moved = True
    while moved:
        moved = False
        for node in nodes:
            ran = done[node.name]
            left = len(node.sent) - len(ran)
            # A worker holds its last test back until it knows what comes next.
            if left > 1 or (left == 1 and node.shutting_down):
                ran.append(node.sent[len(ran)])
                scheduler.mark_test_complete(node, ran[-1])
                moved = True
    return done


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    workers=st.integers(1, 5),
    data=st.data(),
)
def test_every_test_runs_once_and_a_chunk_stays_together(sizes, workers, data):
    costs = data.draw(
        st.lists(st.integers(0, 5), min_size=len(sizes), max_size=len(sizes)), "costs"
    )
    plan, ids = make_plan(sizes, costs)
    scheduler, nodes, _ = make_scheduler(plan, ids, workers)
    done = run_to_the_end(scheduler, nodes)
    assert sorted(index for ran in done.values() for index in ran) == list(range(len(ids)))
    where: dict[int, set[str]] = {}
    for name, ran in done.items():
        for index in ran:
            where.setdefault(plan.items[index].chunk, set()).add(name)
    assert all(len(names) == 1 for names in where.values())
    assert scheduler.tests_finished
    assert not scheduler.has_pending


def test_the_most_expensive_chunk_goes_first():
    plan, ids = make_plan([3, 3, 3], [5, 9, 7])
    _, (node,), _ = make_scheduler(plan, ids, 1)
    assert node.sent == [3, 4, 5]


def test_ordinary_tests_run_too():
    plan, ids = make_plan([2], [1])
    scheduler, nodes, _ = make_scheduler(plan, ["a::unit", *ids, "b::unit"], 2)
    done = run_to_the_end(scheduler, nodes)
    assert sorted(index for ran in done.values() for index in ran) == [0, 1, 2, 3]


def test_the_rest_of_a_dead_workers_chunk_goes_to_another():
    plan, ids = make_plan([4, 4], [2, 1])
    scheduler, (first, second), events = make_scheduler(plan, ids, 2)
    scheduler.mark_test_complete(first, 0)
    assert scheduler.remove_node(first) == ids[1]
    assert (events["crashed"], events["given up"]) == ([ids[1]], [])
    run_to_the_end(scheduler, [second])
    replacement = Node("gw2")
    scheduler.add_node(replacement)
    scheduler.add_node_collection(replacement, ids)
    scheduler.schedule()
    run_to_the_end(scheduler, [second, replacement])
    assert sorted([*second.sent, *replacement.sent]) == [2, 3, 4, 5, 6, 7]
    assert scheduler.collection_is_completed
    assert not scheduler.has_pending


def test_a_chunk_that_kills_two_workers_is_given_up():
    plan, ids = make_plan([4], [1])
    scheduler, (first,), events = make_scheduler(plan, ids, 1)
    assert scheduler.remove_node(first) == ids[0]
    second = Node("gw1")
    scheduler.add_node(second)
    scheduler.add_node_collection(second, ids)
    scheduler.schedule()
    assert second.sent == [1, 2, 3]
    assert scheduler.remove_node(second) == ids[1]
    assert (events["crashed"], events["given up"]) == ([ids[0], ids[1]], [ids[2], ids[3]])
    assert not scheduler.has_pending


def test_a_worker_that_leaves_with_nothing_to_do_has_not_crashed():
    plan, ids = make_plan([2], [1])
    scheduler, nodes, events = make_scheduler(plan, ids, 2)
    run_to_the_end(scheduler, nodes)
    assert [scheduler.remove_node(node) for node in nodes] == [None, None]
    assert (events["crashed"], events["given up"]) == ([], [])
    assert scheduler.tests_finished


def test_a_worker_that_cannot_be_sent_to_costs_no_test():
    """It has died, and xdist has not reported it yet."""
    plan, ids = make_plan([3, 3, 3, 3], [9, 8, 7, 6])
    scheduler, nodes, events = make_scheduler(plan, ids, 2)
    first, second = nodes
    first.broken = True
    for index in first.sent[:2]:
        scheduler.mark_test_complete(first, index)
    scheduler.remove_node(first)
    done = run_to_the_end(scheduler, [second])
    assert events["crashed"] == [ids[2]]
    assert sorted([*first.sent, *done["gw1"]]) == list(range(12))


def test_more_is_sent_ahead_where_models_want_it():
    plan, ids = make_plan([3] * 6, [6, 5, 4, 3, 2, 1])
    _, nodes, events = make_scheduler(plan, ids, 2, low=6)
    assert [len(node.sent) for node in nodes] == [9, 9]
    assert events["assigned"] == [(f"gw{chunk % 2}", chunk) for chunk in range(6)]
