"""Thread that sends requests to the replicas of a model, and replaces replicas that are lost."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Sequence
from typing import Any

from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.models.awaited import ResponseBatch
from pytest_llmeval.models.ray.cluster import error_line
from pytest_llmeval.models.ray.replica import Failure
from pytest_llmeval.models.ray.replica import Identity
from pytest_llmeval.models.ray.replica import end_process
from pytest_llmeval.models.ray.scheduling import SILENCE_SECONDS
from pytest_llmeval.models.ray.scheduling import ReplicaCall
from pytest_llmeval.models.ray.scheduling import Scheduler
from pytest_llmeval.models.ray.scheduling import Task

_TICK_SECONDS = 0.5
# Delay of new requests, within which further ones arrive, so that pieces are not too small.
_GATHER_SECONDS = 0.1
IDLE_SECONDS = 60.0
"""Time without requests after which the replicas are ended, so that their GPUs are free."""
_NO_REPLICA_SECONDS = 300.0
_RETRY_SECONDS = 1.0
# Losses of replicas without a single response in between, per replica and in addition.
_LOSSES_EACH, _LOSSES = 2, 8
_END_SECONDS = 5.0


class Dispatcher:
    """Event loop in a thread, around the decisions of a Scheduler."""

    def __init__(
        self,
        ray: Any,
        actors: Sequence[Any],
        identities: Sequence[Identity],
        make: Callable[[], Any],
        differs: Callable[[Identity], str | None],
    ) -> None:
        """Take over started replicas.

        ``make``: starts another replica. ``differs``: returns why one must not be used, or None.
        """
        self._ray = ray
        self._make = make
        self._differs = differs
        self._count = len(actors)
        self._scheduler = Scheduler(SILENCE_SECONDS)
        self._actors: dict[int, Any] = {}
        self._identities: dict[int, Identity] = {}
        self._starting: set[Any] = set()
        self._next_number = 0
        self._fatal: ModelError | None = None
        self._gathering = False
        self._fruitless = 0  # losses since the last response
        self._last_use = time.monotonic()
        self._last_replica = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost = 0
        self._last_loss = ""
        self._unusable: list[str] = []
        #: (node, device) → replicas that were started there.
        self.places: Counter[tuple[str, str]] = Counter()
        for actor, identity in zip(actors, identities, strict=True):
            self._add(actor, identity)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="llmeval-replicas", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> int:
        """Number of replicas with a call."""
        return self._scheduler.busy

    @property
    def warnings(self) -> list[str]:
        """Lost and unusable replicas, in one line each."""
        lost = f"replicas lost: {self.lost}, the last one: {self._last_loss}"
        return [*([lost] if self.lost else []), *dict.fromkeys(self._unusable)]

    def submit(self, requests: Sequence[Request]) -> ResponseBatch:
        """Send requests with a common prefix; does not block."""
        batch = ResponseBatch(len(requests))
        self._loop.call_soon_threadsafe(self._submit, batch, requests)
        return batch

    def release(self) -> None:
        """End all replicas if there is nothing to do; the next requests start them again."""
        self._loop.call_soon_threadsafe(self._release)

    def close(self) -> None:
        """End the thread and all replicas."""
        if self._loop.is_closed():
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(_END_SECONDS)
        for actor in (*self._actors.values(), *self._starting):
            self._kill(actor)

    # --- within the loop's thread

    def _serve(self) -> None:
        try:
            self._spawn(self._tick())
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _stop(self) -> None:
        self._fail_all("the model was closed")

        async def end() -> None:
            tasks = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1.0) if tasks else None
            self._loop.stop()

        self._spawn(end())

    def _submit(self, batch: ResponseBatch, requests: Sequence[Request]) -> None:
        if self._fatal is not None:
            batch.put(self._fatal)
            return
        self._last_use = time.monotonic()
        self._scheduler.submit(batch, requests)
        missing = self._count - len(self._actors) - len(self._starting)
        if not self._actors and not self._starting:
            self._last_replica = time.monotonic()
        for _ in range(missing):  # they were ended while there was nothing to do
            self._start()
        if not self._gathering:
            self._gathering = True
            self._loop.call_later(_GATHER_SECONDS, self._send_gathered)

    def _send_gathered(self) -> None:
        self._gathering = False
        self._dispatch()

    def _add(self, actor: Any, identity: Identity) -> None:
        self._actors[self._next_number] = actor
        self._identities[self._next_number] = identity
        self._scheduler.add(self._next_number)
        self._next_number += 1
        self.places[identity.node, identity.device] += 1
        self._last_replica = time.monotonic()

    def _dispatch(self) -> None:
        if self._fatal is None:
            for call in self._scheduler.assign(time.monotonic()):
                self._spawn(self._run(call, self._actors[call.replica]))  # type: ignore[index]

    async def _run(self, call: ReplicaCall, actor: Any) -> None:
        """Send a call and take its responses."""
        failure: Failure | None = None
        try:
            method = actor.answer.options(num_returns="streaming")
            async for ref in method.remote([task.request for task in call.tasks]):
                part = await ref
                if isinstance(part, Failure):
                    failure = part
                else:
                    self._take(call, part)
        except self._ray.exceptions.RayTaskError as error:
            failure = Failure(error_line(error, -1), "", is_fatal=False)
        except self._ray.exceptions.RayError as error:
            self._lose(call.replica, error_line(error, 0))
            return
        except Exception as error:
            # A bug must not leave a consumer blocked.
            self._fail_all(f"{type(error).__name__}: {error}")
            return
        if call.replica not in self._actors:
            return
        now = time.monotonic()
        if failure is None:
            self._report(self._scheduler.finish(call, now), "the model gave no answer")
        elif failure.is_fatal:
            self._fail_all(f"replica on {failure.node}: {failure.reason}")
        else:
            self._report(self._scheduler.fail(call, now), failure.reason)
        self._dispatch()

    def _take(self, call: ReplicaCall, part: Sequence[tuple[int, Response]]) -> None:
        self._last_use = now = time.monotonic()
        self._fruitless = 0
        for position, response in part:
            task = self._scheduler.take(call, position, now)
            if task is not None:
                _put(task, response)

    def _report(self, tasks: Sequence[Task], error: str) -> None:
        for task in tasks:
            request = task.request
            _put(task, Response(request.id, error=error, sample=request.sample, arm=request.arm))

    def _lose(self, replica: Any, reason: str) -> None:
        """Remove a replica that has ended, or hangs, and start another one."""
        actor = self._actors.pop(replica, None)
        if actor is None:
            return  # its other call has reported it
        self._kill(actor)
        self.lost += 1
        self._fruitless += 1
        self._last_loss = reason
        failed = self._scheduler.lose(replica, time.monotonic())
        self._report(failed, f"replicas were lost while they answered it: {reason}")
        if self._fruitless > _LOSSES_EACH * self._count + _LOSSES:
            self._fail_all(f"{self._fruitless} replicas were lost in a row; the last: {reason}")
            return
        self._start()
        self._dispatch()

    def _start(self) -> None:
        self._spawn(self._start_replica())

    async def _start_replica(self) -> None:
        """Start a replica; try again if it ends at once, as on a node that is lost as well."""
        while self._fatal is None:
            actor = self._make()
            self._starting.add(actor)
            try:
                identity = await actor.identity.remote()
            except self._ray.exceptions.RayError as error:
                self._last_loss = error_line(error, 0)
                self._kill(actor)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            finally:
                self._starting.discard(actor)
            failed = isinstance(identity, Failure)
            problem = identity.reason if failed else self._differs(identity)
            if problem is None and self._fatal is None:
                self._add(actor, identity)
                self._dispatch()
                return
            self._kill(actor)
            if problem is not None:
                self._unusable.append(f"a new replica is not used: {problem}")
                if not self._actors and not self._starting:
                    self._fail_all(problem)
            return

    async def _tick(self) -> None:
        """Copy what is late, end what hangs or is idle."""
        while self._fatal is None:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            for replica in self._scheduler.silent(now):
                assert isinstance(replica, int)
                self._end_process(self._identities[replica])
                self._lose(replica, f"no response for {SILENCE_SECONDS:g} s")
            self._dispatch()
            if self._scheduler.is_idle:
                if now - self._last_use > IDLE_SECONDS:
                    self._release()
            elif not self._actors and now - self._last_replica > _NO_REPLICA_SECONDS:
                last = f"; the last one: {self._last_loss}" if self._last_loss else ""
                self._fail_all(f"no replica could be started for {_NO_REPLICA_SECONDS:g} s{last}")

    def _release(self) -> None:
        if not self._scheduler.is_idle:
            return
        for replica, actor in self._actors.items():
            if self._scheduler.is_busy(replica):  # with requests that others have answered
                self._end_process(self._identities[replica])
            self._scheduler.lose(replica, time.monotonic())
            self._kill(actor)
        self._actors.clear()

    def _fail_all(self, reason: str) -> None:
        if self._fatal is None:
            self._fatal = ModelError(reason)
            for batch in self._scheduler.unanswered_batches():
                assert isinstance(batch, ResponseBatch)
                batch.put(self._fatal)

    def _end_process(self, identity: Identity) -> None:
        """End the process of a replica that may not react to Ray."""
        task = self._ray.remote(num_cpus=0, max_retries=0)(end_process)
        with contextlib.suppress(Exception):  # its node may be lost as well
            task.options(
                scheduling_strategy=self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                    identity.node_id, soft=False
                )
            ).remote(identity.pid)

    def _kill(self, actor: Any) -> None:
        with contextlib.suppress(Exception):  # it has ended, or Ray is being shut down
            self._ray.kill(actor)


def _put(task: Task, response: Response) -> None:
    assert isinstance(task.batch, ResponseBatch)
    task.batch.put([response])
