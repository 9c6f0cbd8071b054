"""Distribution of requests over replicas: pure decisions, without Ray, threads or a clock.

Requests that wait are in groups with a common prompt prefix. Pieces are cut from a group when a
replica has room, so that their size fits what is left at that moment. Times are arguments, in
seconds of any monotonic clock.
"""

from __future__ import annotations

import math
from collections import Counter
from collections import deque
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Protocol

from pytest_llmeval.core import Request

SMALLEST = 4
LARGEST = 32
"""Bounds of the number of requests in a piece."""
_SHARE = 4  # pieces per replica into which the waiting requests are cut
_DEPTH = 2  # calls of a replica: one runs, one waits, so that a replica is never without work
_LIVES = 2  # replicas that a request may cost before it is sent alone
_COPIES = 2  # calls that may have the same request at a time
_LATE_FACTOR = 2.0  # times the usual duration after which a call is late
_LATE_SECONDS = 1.0
SILENCE_SECONDS = 1800.0
"""Time without a response after which a replica counts as lost; it includes loading the weights."""


class Batch(Protocol):
    """Requests that were submitted together, and the consumer of their responses."""

    @property
    def cancelled(self) -> bool:
        """True if the consumer is gone: what waits is not sent."""
        ...


@dataclass(eq=False, slots=True)
class Task:
    """A request until its response."""

    request: Request
    batch: Batch
    group: Hashable
    cost: int
    #: Maximum number of requests in a call with this one: fewer after a failure.
    limit: int = LARGEST
    #: Replicas that were lost while this request may have been the cause.
    deaths: int = 0
    #: Number of calls with this request.
    calls: int = 0
    done: bool = False


@dataclass(eq=False, slots=True)
class ReplicaCall:
    """A piece: requests that are sent to a replica together, in their order."""

    replica: Hashable
    tasks: Sequence[Task]
    #: Time since which the replica works on this call, or since which it waits.
    since: float
    #: Time of the last response, or ``since``.
    heard: float

    @property
    def unanswered(self) -> list[Task]:
        """The requests without a response from any replica."""
        return [task for task in self.tasks if not task.done]


@dataclass(eq=False, slots=True)
class _Replica:
    calls: deque[ReplicaCall] = field(default_factory=deque)
    group: Hashable = None


class Scheduler:
    """Distribution of the requests of several batches over replicas that may be lost at any time.

    Every request leaves it exactly once: by ``take`` with a response, or among the failed tasks
    that ``finish``, ``fail`` and ``lose`` return, each of which is an error of that request alone.
    """

    def __init__(self, silence: float = SILENCE_SECONDS) -> None:
        self._silence = silence
        self._replicas: dict[Hashable, _Replica] = {}
        self._groups: dict[Hashable, deque[Task]] = {}
        self._costs: Counter[Hashable] = Counter()
        #: Group → replicas that worked on it last.
        self._users: Counter[Hashable] = Counter()
        #: By number of calls: the replicas that have room for another one.
        self._with_room: list[dict[Hashable, None]] = [{} for _ in range(_DEPTH)]
        self._waiting = 0
        #: Seconds and requests of all finished calls.
        self._seconds, self._finished = 0.0, 0

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return len(self._replicas)

    @property
    def busy(self) -> int:
        """Number of replicas with a call."""
        return len(self._replicas) - len(self._with_room[0])

    @property
    def is_idle(self) -> bool:
        """True if no request waits and no call runs that any request needs."""
        return not self._waiting and not any(
            call.unanswered for state in self._replicas.values() for call in state.calls
        )

    def is_busy(self, replica: Hashable) -> bool:
        """Return True if a replica has a call."""
        return bool(self._replicas[replica].calls)

    def submit(self, batch: Batch, requests: Sequence[Request]) -> None:
        """Add requests with a common prefix: that of the first one identifies their group."""
        if not requests:
            return
        prompt = requests[0].prompt
        group = (requests[0].benchmark, requests[0].chat, prompt.description, prompt.shots)
        self._put_back(
            [Task(request, batch, group, _cost(request)) for request in requests], first=False
        )

    def add(self, replica: Hashable) -> None:
        """Add a replica that can be called."""
        self._replicas[replica] = _Replica()
        self._with_room[0][replica] = None

    def assign(self, now: float) -> Iterator[ReplicaCall]:
        """Yield the calls to send now: one to each idle replica first, then one in advance."""
        for depth, replicas in enumerate(self._with_room):
            for replica in list(replicas):
                # Close to the end, a call in advance would wait while another replica is idle.
                if depth and self._waiting <= SMALLEST * len(self._replicas):
                    return
                state = self._replicas[replica]
                tasks = self._cut(state)
                if not tasks and not depth:
                    tasks = self._late_tasks(now)
                if not tasks:
                    break
                yield self._send(replica, state, tasks, now)

    def take(self, call: ReplicaCall, position: int, now: float) -> Task | None:
        """Note the response to a request of a call; return its task if it is the first response."""
        call.heard = now
        task = call.tasks[position]
        if task.done:
            return None
        task.done = True
        return task

    def finish(self, call: ReplicaCall, now: float) -> list[Task]:
        """End a call; return the tasks that the model left without a response."""
        tasks = self._end(call, now)
        self._seconds += now - call.since
        self._finished += len(call.tasks)
        return _mark_done(tasks)

    def fail(self, call: ReplicaCall, now: float) -> list[Task]:
        """End a call in which the model raised; halve it, or return its only request as failed."""
        tasks = self._end(call, now)
        if len(tasks) <= 1:
            return _mark_done(tasks)
        for task in tasks:
            task.limit = (len(tasks) + 1) // 2
        self._put_back(tasks, first=True)
        return []

    def lose(self, replica: Hashable, now: float) -> list[Task]:
        """Remove a replica that is lost, and send its requests again.

        The oldest call is to blame, because calls run in order. Requests that have cost two
        replicas are sent one at a time, so that the one that is the cause costs only one more.
        Returns the requests that are the cause.
        """
        state = self._replicas.get(replica)
        if state is None:
            return []
        failed: list[Task] = []
        again: list[Task] = []
        for number, call in enumerate(list(state.calls)):
            tasks = self._end(call, now)
            # Also for requests that another call has, or their copies would go on for ever.
            suspects = call.unanswered if number == 0 else []
            for task in suspects:
                task.deaths += 1
                task.limit = 1 if task.deaths >= _LIVES else task.limit
            if len(suspects) == 1 and suspects[0].deaths >= _LIVES:
                failed, tasks = _mark_done(suspects), []
            again += tasks
        self._put_back(again, first=True)
        del self._replicas[replica]
        del self._with_room[0][replica]
        self._users[state.group] -= 1
        return failed

    def silent(self, now: float) -> list[Hashable]:
        """Return the replicas that should count as lost, because they have sent nothing for long."""
        return [
            replica
            for replica, state in self._replicas.items()
            if state.calls and now - state.calls[0].heard > self._silence
        ]

    def unanswered_batches(self) -> list[Batch]:
        """Return the batches with a request that has no response."""
        running = [task for s in self._replicas.values() for c in s.calls for task in c.unanswered]
        waiting = [task for group in self._groups.values() for task in group]
        return list({id(task.batch): task.batch for task in (*running, *waiting)}.values())

    # ----------------------------------------------------------------------------------

    def _put_back(self, tasks: Sequence[Task], first: bool) -> None:
        for task in reversed(tasks) if first else tasks:
            group = self._groups.setdefault(task.group, deque())
            group.appendleft(task) if first else group.append(task)
            self._costs[task.group] += task.cost
        self._waiting += len(tasks)

    def _next(self, group: Hashable) -> Task | None:
        """Return the first task of a group that still needs a response."""
        tasks = self._groups.get(group)
        while tasks:
            if not tasks[0].done and not tasks[0].batch.cancelled:
                return tasks[0]
            self._pop(group)
        return None

    def _pop(self, group: Hashable) -> Task:
        task = self._groups[group].popleft()
        self._waiting -= 1
        self._costs[group] -= task.cost
        if not self._groups[group]:
            del self._groups[group], self._costs[group]
        return task

    def _cut(self, state: _Replica) -> list[Task]:
        """Remove and return the next piece for a replica: of its last group, if that has requests."""
        while self._waiting:
            group = state.group if state.group in self._groups else self._best_group()
            head = self._next(group)
            if head is None:
                continue  # the group had only requests of cancelled batches
            if group != state.group:
                self._users[state.group] -= 1
                self._users[group] += 1
                state.group = group
            waiting = len(self._groups[group])
            size = math.ceil(self._waiting / (_SHARE * len(self._replicas)))
            size = min(LARGEST, max(SMALLEST, size))
            size = math.ceil(waiting / math.ceil(waiting / size))  # pieces of equal size
            tasks: list[Task] = []
            largest = LARGEST
            while (task := self._next(group)) is not None:
                largest = min(largest, task.limit)
                # Samples of an item share its prompt.
                same = bool(tasks) and task.request.id == tasks[-1].request.id
                if tasks and len(tasks) >= (largest if same else min(size, largest)):
                    break
                tasks.append(self._pop(group))
            return tasks
        return []

    def _best_group(self) -> Hashable:
        """Return the most expensive of the groups that the fewest replicas work on."""
        return min(self._groups, key=lambda group: (self._users[group], -self._costs[group]))

    def _late_tasks(self, now: float) -> list[Task]:
        """Return the unanswered requests of the call that is latest, to be copied; empty if none is."""
        if not self._finished:
            return []
        pace = self._seconds / self._finished
        latest, most = [], 0.0
        for state in self._replicas.values():
            if not state.calls:
                continue
            first = state.calls[0]
            over = now - first.since - _LATE_FACTOR * pace * len(first.tasks) - _LATE_SECONDS
            if over <= 0:
                continue
            for call in state.calls:
                tasks = [task for task in call.unanswered if task.calls < _COPIES]
                if tasks and over > most:
                    latest, most = tasks, over
        return latest[: min(task.limit for task in latest)] if latest else []

    def _send(
        self, replica: Hashable, state: _Replica, tasks: Sequence[Task], now: float
    ) -> ReplicaCall:
        call = ReplicaCall(replica, tasks, now, now)
        for task in tasks:
            task.calls += 1
        self._with_room[len(state.calls)].pop(replica)
        state.calls.append(call)
        if len(state.calls) < _DEPTH:
            self._with_room[len(state.calls)][replica] = None
        return call

    def _end(self, call: ReplicaCall, now: float) -> list[Task]:
        """Remove a call; return its unanswered requests that no other call has."""
        state = self._replicas[call.replica]
        if len(state.calls) < _DEPTH:
            self._with_room[len(state.calls)].pop(call.replica)
        state.calls.remove(call)
        self._with_room[len(state.calls)][call.replica] = None
        if state.calls and state.calls[0].since < now:
            state.calls[0].since = state.calls[0].heard = now
        for task in call.tasks:
            task.calls -= 1
        return [task for task in call.tasks if not task.done and not task.calls]


def _mark_done(tasks: Sequence[Task]) -> list[Task]:
    for task in tasks:
        task.done = True
    return list(tasks)


def _cost(request: Request) -> int:
    """Return a cost in proportion to the expected time: characters of the prompt, tokens of a text."""
    length = len(request.prompt.text)
    return length if request.choices else length + 4 * request.decoding.max_tokens
