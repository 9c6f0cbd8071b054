"""Requests over replicas that die, hang, raise and answer in any order: each gets one response."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.models.ray.scheduling import LARGEST
from pytest_llmeval.models.ray.scheduling import SMALLEST
from pytest_llmeval.models.ray.scheduling import Scheduler


def requests(count: int, shots: str = "", samples: int = 1) -> list[Request]:
    prompt = Prompt("", ((shots, "A"),), "question")
    return [
        Request(f"{shots}{row}", prompt, sample=sample)
        for row in range(count)
        for sample in range(samples)
    ]


def batch() -> SimpleNamespace:
    return SimpleNamespace(cancelled=False)


class Machine:
    """Replicas that do what a random generator wants, around a scheduler."""

    def __init__(self, replicas: int, seed: int, *, poison=(), raising=(), hanging=(), mute=()):
        self.random = random.Random(seed)
        self.scheduler = Scheduler(silence=100.0)
        self.poison, self.raising = set(poison), set(raising)
        self.hanging, self.mute = set(hanging), set(mute)
        self.now = 0.0
        self.made = 0
        self.losses = 0
        self.answers: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        #: Replica → its calls, each with the positions that are still to be processed.
        self.running: dict[int, list[tuple[object, list[int]]]] = {}
        self.hung: set[int] = set()
        for _ in range(replicas):
            self.add()

    def add(self) -> None:
        self.running[self.made] = []
        self.scheduler.add(self.made)
        self.made += 1

    def error(self, tasks) -> None:
        self.errors.update(f"{task.request.id}/{task.request.sample}" for task in tasks)

    def lose(self, replica: int) -> None:
        del self.running[replica]
        self.hung.discard(replica)
        self.losses += 1
        self.error(self.scheduler.lose(replica, self.now))
        self.add()

    def assign(self) -> None:
        for call in self.scheduler.assign(self.now):
            order = list(range(len(call.tasks)))
            self.random.shuffle(order)
            self.running[call.replica].append((call, order))

    def step(self) -> None:
        """One event: the oldest call of some replica goes on."""
        self.now += self.random.choice((0.01, 0.5, 3.0))
        self.assign()
        for replica in self.scheduler.silent(self.now):
            self.lose(replica)
        able = [
            replica for replica, calls in self.running.items() if calls and replica not in self.hung
        ]
        if not able:
            self.now += 50
            return
        replica = self.random.choice(able)
        call, order = self.running[replica][0]
        if not order:
            self.running[replica].pop(0)
            self.error(self.scheduler.finish(call, self.now))
            return
        position = order.pop()
        item = call.tasks[position].request.id
        if item in self.poison:
            self.lose(replica)
        elif item in self.hanging:
            self.hung.add(replica)
        elif item in self.raising:
            self.running[replica].pop(0)
            self.error(self.scheduler.fail(call, self.now))
        elif item not in self.mute:
            task = self.scheduler.take(call, position, self.now)
            if task is not None:
                self.answers[f"{item}/{task.request.sample}"] += 1

    def run(self, chaos: float = 0.0) -> None:
        """Run to the end; ``chaos``: the probability that a step also loses a replica."""
        for _ in range(20_000):
            if self.scheduler.is_idle:
                return
            self.step()
            if chaos and self.random.random() < chaos:
                self.lose(self.random.choice(list(self.running)))
        raise AssertionError("it does not end")


COUNTS = st.integers(1, 80)


@given(COUNTS, st.integers(1, 5), st.integers(1, 3), st.integers(0, 10**6), st.data())
def test_every_request_gets_exactly_one_response(count, replicas, samples, seed, data):
    ids = st.sets(
        st.sampled_from([f"{group}{n}" for group in "ab" for n in range(count)]), max_size=3
    )
    faults = {name: data.draw(ids) for name in ("poison", "raising", "hanging", "mute")}
    machine = Machine(replicas, seed, **faults)
    sent = [*requests(count, "a", samples), *requests(count, "b", samples)]
    machine.scheduler.submit(batch(), sent[: count * samples])
    machine.scheduler.submit(batch(), sent[count * samples :])
    machine.run()
    both = machine.answers + machine.errors
    assert both == Counter(f"{accepted.id}/{accepted.sample}" for accepted in sent)
    bad = set().union(*faults.values())
    # A fault costs no other item than its own.
    assert {key.partition("/")[0] for key in machine.errors} == bad


@given(COUNTS, st.integers(1, 4), st.integers(0, 10**6))
def test_replicas_lost_now_and_then_cost_no_item(count, replicas, seed):
    machine = Machine(replicas, seed)
    machine.scheduler.submit(batch(), requests(count))
    # Rare, so that no request is alone with two losses.
    machine.run(chaos=1 / (40 * count))
    assert machine.answers == Counter(f"{n}/0" for n in range(count)) - machine.errors
    assert sum(machine.errors.values()) <= machine.losses // 2


def test_one_poison_item_costs_three_replicas():
    for seed in range(20):
        machine = Machine(3, seed, poison={"17"})
        machine.scheduler.submit(batch(), requests(64))
        machine.run()
        assert machine.errors == Counter({"17/0": 1})
        assert machine.losses <= 3


def test_a_hanging_replica_is_replaced_when_there_is_no_other():
    machine = Machine(1, 0, hanging={"3"})
    machine.scheduler.submit(batch(), requests(8))
    machine.run()
    assert machine.errors == Counter({"3/0": 1})
    assert sum(machine.answers.values()) == 7


def test_what_a_hanging_replica_has_is_answered_by_an_idle_one():
    scheduler = Scheduler()
    for replica in "ab":
        scheduler.add(replica)
    scheduler.submit(batch(), requests(8))
    hanging, quick = scheduler.assign(0.0)
    for position in range(len(quick.tasks)):
        assert scheduler.take(quick, position, 1.0) is not None
    assert scheduler.finish(quick, 1.0) == []
    assert list(scheduler.assign(1.5)) == []  # it is not late yet
    (copy,) = scheduler.assign(10.0)
    assert copy.replica == quick.replica
    assert list(copy.tasks) == list(hanging.tasks)
    assert list(scheduler.assign(10.0)) == []
    for position in range(len(copy.tasks)):
        assert scheduler.take(copy, position, 11.0) is not None
    assert scheduler.is_idle
    # A response that comes after all is not a second one.
    assert scheduler.take(hanging, 0, 12.0) is None
    assert scheduler.finish(hanging, 12.0) == []


@pytest.mark.parametrize(("count", "replicas"), [(4, 2), (64, 2), (640, 4), (2000, 64), (9, 8)])
def test_pieces_get_smaller_towards_the_end(count, replicas):
    scheduler = Scheduler()
    for replica in range(replicas):
        scheduler.add(replica)
    scheduler.submit(batch(), requests(count))
    left, sizes = count, []
    while not scheduler.is_idle:
        for call in list(scheduler.assign(0.0)):
            expected = min(LARGEST, max(SMALLEST, math.ceil(left / (4 * replicas))))
            assert len(call.tasks) <= expected
            sizes.append(len(call.tasks))
            left -= len(call.tasks)
            for position in range(len(call.tasks)):
                scheduler.take(call, position, 0.0)
            scheduler.finish(call, 0.0)
    assert left == 0
    assert sizes == sorted(sizes, reverse=True) or max(sizes) <= SMALLEST


def test_a_replica_stays_with_its_prefix_and_the_most_expensive_comes_first():
    scheduler = Scheduler()
    for name, count in (("a", 8), ("b", 40), ("c", 24)):
        scheduler.submit(batch(), requests(count, name))
    scheduler.add(0)
    scheduler.add(1)
    served: dict[int, list[str]] = {0: [], 1: []}
    while not scheduler.is_idle:
        for call in list(scheduler.assign(0.0)):
            served[call.replica].append(call.tasks[0].request.id[0])
            assert len({task.request.id[0] for task in call.tasks}) == 1
            for position in range(len(call.tasks)):
                scheduler.take(call, position, 0.0)
            scheduler.finish(call, 0.0)
    assert served[0][0] == "b"
    assert served[1][0] == "c"
    for groups in served.values():
        changes = sum(group != other for group, other in pairwise(groups))
        assert changes <= len(set(groups))


def test_samples_of_an_item_are_in_one_call():
    scheduler = Scheduler()
    scheduler.add(0)
    scheduler.submit(batch(), requests(20, samples=7))
    seen: dict[str, int] = {}
    number = 0
    while not scheduler.is_idle:
        for call in list(scheduler.assign(0.0)):
            number += 1
            for position, task in enumerate(call.tasks):
                assert seen.setdefault(task.request.id, number) == number
                scheduler.take(call, position, 0.0)
            scheduler.finish(call, 0.0)
    assert number > 5


def test_a_cancelled_batch_is_not_sent():
    scheduler = Scheduler()
    scheduler.add(0)
    gone = batch()
    scheduler.submit(gone, requests(10, "a"))
    gone.cancelled = True
    assert list(scheduler.assign(0.0)) == []
    assert scheduler.is_idle


def test_no_replica_waits_twice_while_another_is_idle():
    scheduler = Scheduler()
    for replica in range(4):
        scheduler.add(replica)
    scheduler.submit(batch(), requests(17))
    calls = list(scheduler.assign(0.0))
    assert Counter(call.replica for call in calls) == Counter(range(4))
    assert scheduler.busy == 4
