"""Many jobs at once: an event loop in a thread of its own, always as full as the window allows.

How many requests to have in flight: more while that answers more, fewer when pushed back.

Pure bookkeeping: times come from the caller. Outcomes are counted in rounds of about twice the
limit, so that a round tells what the limit brought.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Response
from pytest_llmeval.models.openai.limits import Lease
from pytest_llmeval.models.openai.limits import SpendLimitError

_START = 8
_ROUND = 16
# Twice as many requests must bring this much more, or there is nothing to gain.
_GAIN = 1.1
_CUT = 0.7
# A cut that leaves less of the answers a second than this was not what was needed.
_COST = 0.85
# Share of requests pushed back, beyond what happens anyway, from which on there are too many.
_TOO_MANY = 0.1
# Share from which on it is too many whatever the cause; the count of answers is all noise there.
_MOST = 0.5
# Rounds before growth is tried again.
_PATIENCE = 10


@dataclass(slots=True)
class _Round:
    started: float
    answered: int = 0
    pushed_back: int = 0

    @property
    def outcomes(self) -> int:
        return self.answered + self.pushed_back

    @property
    def share(self) -> float:
        return self.pushed_back / self.outcomes


class Window:
    """The number of requests in flight. ``limit`` changes as outcomes are told.

    ``fixed``: begin with ``most`` instead of finding out; it still gives way to a server that
    pushes back, and returns.
    """

    def __init__(self, most: int, *, fixed: bool = False) -> None:
        self.most = most
        self.limit = most if fixed else min(_START, most)
        self._growing = not fixed
        self._best = 0.0
        self._before_growth = self.limit
        # The limit and the answers a second before the last cut.
        self._before_cut: tuple[int, float] | None = None
        self._anyway = 0.0
        self._waited = 0
        self._round: _Round | None = None

    def succeeded(self, now: float, *, full: bool) -> None:
        """Note an answer. ``full``: as many were in flight as the limit allows."""
        if not full:
            # A round in which there was too little to ask says nothing about the limit.
            self._round = None
            return
        self._count(now).answered += 1
        self._end_round(now)

    def pushed_back(self, now: float) -> None:
        """Note that the server was overloaded: 429, 5xx, no answer in time."""
        self._count(now).pushed_back += 1
        self._end_round(now)

    def _count(self, now: float) -> _Round:
        if self._round is None:
            self._round = _Round(now)
        return self._round

    def _end_round(self, now: float) -> None:
        done = self._round
        if done is None or done.outcomes < max(2 * self.limit, _ROUND) or now <= done.started:
            return
        self._round = None
        rate = done.answered / (now - done.started)
        if done.share > self._anyway + _TOO_MANY:
            self._cut(done.share, rate)
            return
        self._before_cut = None
        self._anyway += (done.share - self._anyway) / 4
        self._waited += 1
        if self._growing and rate < self._best * _GAIN:
            # The last step brought nothing: back to where it was taken from.
            self.limit, self._growing, self._waited = self._before_growth, False, 0
        elif self._growing or self._waited >= _PATIENCE:
            self._best, self._before_growth = rate, self.limit
            self.limit = min(self.most, 2 * self.limit)
            self._growing, self._waited = self.limit > self._before_growth, 0

    def _cut(self, share: float, rate: float) -> None:
        self._growing, self._waited = False, 0
        before = self._before_cut
        if before is not None and rate < before[1] * _COST and share < _MOST:
            # Fewer requests, fewer answers: it is not our number that has them pushed back.
            self.limit, self._anyway = before[0], share
            self._before_cut = None
            return
        self._before_cut = (self.limit, rate)
        self.limit = max(1, int(self.limit * _CUT))


Job = Callable[[], Coroutine[Any, Any, Sequence[Response]]]

# How often a part of a limit that processes share is asked for again.
_RENEWAL_SECONDS = 0.1
# How long the end may take before the thread is left to itself.
_END_SECONDS = 5


class Batch(Iterator[Response]):
    """The responses of jobs that were given in together, each once, as they complete.

    ``next`` waits for one; it raises ModelError when the model cannot go on. Whoever stops
    listening (an interrupt, an error) wants no more answers: what was not begun never is.
    """

    def __init__(self, jobs: int, ready: Iterable[Response] = ()) -> None:
        self.cancelled = False
        self._jobs = jobs
        self._ready = deque(ready)
        self._done: queue.SimpleQueue[Sequence[Response] | ModelError] = queue.SimpleQueue()
        self._arrived: Callable[[], None] = lambda: None

    def put(self, result: Sequence[Response] | ModelError) -> None:
        self._done.put(result)
        self._arrived()

    def listen(self, arrived: Callable[[], None]) -> None:
        """Have a function called, in the flow's thread, whenever ``available`` may have changed."""
        self._arrived = arrived
        arrived()

    @property
    def available(self) -> bool:
        """Whether the next response, or the end, is here and need not be waited for."""
        return bool(self._ready) or self._jobs == 0 or not self._done.empty()

    def __next__(self) -> Response:
        while not self._ready:
            if self._jobs == 0:
                self.close()
                raise StopIteration
            result = self._done.get()
            if isinstance(result, ModelError):
                self.close()
                raise ModelError(str(result))
            self._jobs -= 1
            self._ready.extend(result)
        return self._ready.popleft()

    def close(self) -> None:
        self.cancelled = True
        self._jobs = 0

    def __del__(self) -> None:
        self.close()


class Flow:
    """Runs jobs, the first given in first, as many at a time as window and lease allow.

    A job that raises ModelError ends everything: all batches raise it, also later ones.
    SpendLimitError lets what is in flight come back first. ``last`` is awaited when the thread ends.
    """

    def __init__(
        self,
        window: Window,
        lease: Lease | None = None,
        last: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._window = window
        self._lease = lease
        self._last = last
        self._granted = 0
        self._waiting: deque[tuple[Batch, Job]] = deque()
        self._running: dict[asyncio.Task[None], Batch] = {}
        #: Batches of jobs for which there was no money.
        self._unanswered: list[Batch] = []
        self._hopeless: ModelError | None = None
        self._spent: SpendLimitError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._stop: Callable[[], Any] | None = None

    @property
    def in_flight(self) -> int:
        """How many jobs run now."""
        return len(self._running)

    @property
    def is_full(self) -> bool:
        """Whether there is more to do than the window allows at once."""
        return bool(self._waiting)

    def submit(self, jobs: Sequence[Job], ready: Iterable[Response] = ()) -> Batch:
        """Begin with the jobs at once, without waiting; ``ready`` goes before their responses."""
        batch = Batch(len(jobs), ready)
        if jobs:
            loop = self._started()
            loop.call_soon_threadsafe(self._take, batch, jobs)
        return batch

    def close(self) -> None:
        """Cancel what runs and end the thread. A closed flow stays closed."""
        if self._stop is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._give_up, ModelError("the model was closed"))
            self._stop()
            self._stop = self._loop = None

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=_serve, args=(self._loop,), name="llmeval-endpoint", daemon=True
            )
            thread.start()
            # Also at the interpreter's end, so that no task is destroyed while it waits.
            self._stop = weakref.finalize(self, _end, self._loop, thread, self._last)
        return self._loop

    # --- within the loop's thread

    def _take(self, batch: Batch, jobs: Sequence[Job]) -> None:
        hopeless = self._hopeless or self._spent
        if hopeless is not None:
            batch.put(hopeless)
            return
        self._waiting.extend((batch, job) for job in jobs)
        self._pump()

    def _pump(self) -> None:
        if self._spent is not None:
            return
        allowed = self._window.limit
        if self._lease is not None:
            allowed = min(allowed, self._granted)
            if self._renewal is None and self._waiting:
                self._renewal = asyncio.ensure_future(self._keep_renewing(self._lease))
        while self._waiting and len(self._running) < allowed:
            batch, job = self._waiting.popleft()
            if batch.cancelled:
                continue
            task = asyncio.ensure_future(self._run(batch, job))
            self._running[task] = batch
            task.add_done_callback(self._finished)

    async def _run(self, batch: Batch, job: Job) -> None:
        try:
            batch.put(await job())
        except SpendLimitError as error:
            self._spent = error
            self._unanswered.append(batch)
        except ModelError as error:
            self._give_up(error)
        except Exception as error:
            # A mistake of ours must not leave anybody waiting for ever.
            self._give_up(ModelError(f"{type(error).__name__}: {error}"))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if self._spent is not None and not self._running:
            self._give_up(self._spent)
        self._pump()

    def _give_up(self, error: ModelError) -> None:
        self._hopeless = error
        waiting = [batch for batch, _ in self._waiting]
        left = [*waiting, *self._running.values(), *self._unanswered]
        self._waiting.clear()
        for batch in {id(batch): batch for batch in left}.values():
            batch.put(error)

    async def _keep_renewing(self, lease: Lease) -> None:
        try:
            while self._waiting or self._running:
                wanted = min(self._window.limit, len(self._waiting) + len(self._running))
                self._granted = lease.renew(wanted, len(self._running))
                self._pump()
                await asyncio.sleep(_RENEWAL_SECONDS)
        except ModelError as error:
            self._give_up(error)
        finally:
            # Also when the flow is closed: an xdist worker lives on after its session.
            self._renewal = None
            self._granted = 0
            with contextlib.suppress(ModelError):
                lease.renew(0, 0)
        if self._waiting:
            self._pump()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end(
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    last: Callable[[], Coroutine[Any, Any, None]] | None,
) -> None:
    async def end() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if last is not None:
            with contextlib.suppress(Exception):  # nobody is there any more to be told
                await last()
        loop.stop()

    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: asyncio.ensure_future(end()))
    if threading.current_thread() is not thread:  # a flow may be forgotten within its thread
        thread.join(_END_SECONDS)
