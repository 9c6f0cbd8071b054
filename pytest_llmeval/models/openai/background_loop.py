"""Concurrent jobs on an event loop in a background thread, and the limit of jobs in flight."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Response
from pytest_llmeval.models.awaited import ResponseBatch
from pytest_llmeval.models.openai.limits import Lease
from pytest_llmeval.models.openai.limits import SpendLimitError

# Initial limit.
_START = 8
# Minimum number of outcomes in a round.
_ROUND = 16
# Doubling the limit must raise the throughput by this factor to be kept.
_GAIN = 1.1
# Factor by which the limit is reduced.
_CUT = 0.7
# A reduction that lowers the throughput below this factor is undone.
_COST = 0.85
# Share of rejected requests, above the usual share, from which on the limit is reduced.
_TOO_MANY = 0.1
# Share from which on a reduction is never undone: the measured throughput is mostly noise.
_MOST = 0.5
# Rounds before growth is tried again.
_PATIENCE = 10


@dataclass(slots=True)
class _Round:
    started: float
    answered: int = 0
    rejected: int = 0

    @property
    def outcomes(self) -> int:
        return self.answered + self.rejected

    @property
    def share(self) -> float:
        return self.rejected / self.outcomes


class ConcurrencyWindow:
    """Limit of the requests in flight, adapted to the outcomes of requests.

    ``limit`` doubles while that raises the throughput, and is reduced when the server rejects
    requests. Outcomes are counted in rounds of about twice the limit, so that a round measures the
    effect of the limit. Times are arguments: the class reads no clock.

    ``most``: upper bound. ``fixed``: start with ``most``; the limit is still reduced when requests
    are rejected, and then grows back.
    """

    def __init__(self, maximum: int, *, fixed: bool = False) -> None:
        self.maximum = maximum
        self.limit = maximum if fixed else min(_START, maximum)
        self._growing = not fixed
        self._best = 0.0
        self._before_growth = self.limit
        # The limit and the responses per second before the last reduction.
        self._before_cut: tuple[int, float] | None = None
        #: The usual share of rejected requests, which does not depend on the limit.
        self._usual_share = 0.0
        self._rounds_waited = 0
        self._round: _Round | None = None

    def succeeded(self, now: float, *, full: bool) -> None:
        """Count a response. ``full``: True if the limit of requests in flight was reached."""
        if not full:
            # A round with too few pending requests does not measure the limit.
            self._round = None
            return
        self._count(now).answered += 1
        self._end_round(now)

    def rejected(self, now: float) -> None:
        """Count a request that an overloaded server rejected (429, 5xx) or answered too late."""
        self._count(now).rejected += 1
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
        if done.share > self._usual_share + _TOO_MANY:
            self._cut(done.share, rate)
            return
        self._before_cut = None
        self._usual_share += (done.share - self._usual_share) / 4
        self._rounds_waited += 1
        if self._growing and rate < self._best * _GAIN:
            # The last growth did not raise the throughput: undo it.
            self.limit, self._growing, self._rounds_waited = self._before_growth, False, 0
        elif self._growing or self._rounds_waited >= _PATIENCE:
            self._best, self._before_growth = rate, self.limit
            self.limit = min(self.maximum, 2 * self.limit)
            self._growing, self._rounds_waited = self.limit > self._before_growth, 0

    def _cut(self, share: float, rate: float) -> None:
        self._growing, self._rounds_waited = False, 0
        before = self._before_cut
        if before is not None and rate < before[1] * _COST and share < _MOST:
            # Throughput fell in proportion: the rejections do not depend on the limit.
            self.limit, self._usual_share = before[0], share
            self._before_cut = None
            return
        self._before_cut = (self.limit, rate)
        self.limit = max(1, int(self.limit * _CUT))


Job = Callable[[], Coroutine[Any, Any, Sequence[Response]]]

# Seconds between renewals of a lease.
_RENEWAL_SECONDS = 0.1
# Seconds to wait for the thread to end.
_END_SECONDS = 5


class JobRunner:
    """Runner of jobs in order of submission, as many at a time as window and lease allow.

    If a job raises ModelError, all batches raise it, including later ones. After SpendLimitError,
    jobs in flight finish first. ``on_exit`` is awaited when the thread ends.
    """

    def __init__(
        self,
        window: ConcurrencyWindow,
        lease: Lease | None = None,
        on_exit: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._window = window
        self._lease = lease
        self._on_exit = on_exit
        self._granted = 0
        self._waiting: deque[tuple[ResponseBatch, Job]] = deque()
        self._running: dict[asyncio.Task[None], ResponseBatch] = {}
        #: Batches with jobs that exceeded the spending limit.
        self._unanswered: list[ResponseBatch] = []
        self._fatal_error: ModelError | None = None
        self._spend_error: SpendLimitError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._stop: Callable[[], Any] | None = None

    @property
    def in_flight(self) -> int:
        """Number of running jobs."""
        return len(self._running)

    @property
    def is_full(self) -> bool:
        """True if jobs are waiting because the window is full."""
        return bool(self._waiting)

    def submit(self, jobs: Sequence[Job], ready: Iterable[Response] = ()) -> ResponseBatch:
        """Start the jobs without blocking; ``ready`` responses are yielded first."""
        batch = ResponseBatch(len(jobs), ready)
        if jobs:
            loop = self._running_loop()
            loop.call_soon_threadsafe(self._enqueue, batch, jobs)
        return batch

    def close(self) -> None:
        """Cancel all jobs and end the thread; a closed runner cannot be reopened."""
        if self._stop is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._fail_all, ModelError("the model was closed"))
            self._stop()
            self._stop = self._loop = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=_serve, args=(self._loop,), name="llmeval-endpoint", daemon=True
            )
            thread.start()
            # Also runs at interpreter exit, so that no pending task is destroyed.
            self._stop = weakref.finalize(self, _end_thread, self._loop, thread, self._on_exit)
        return self._loop

    # --- within the loop's thread

    def _enqueue(self, batch: ResponseBatch, jobs: Sequence[Job]) -> None:
        error = self._fatal_error or self._spend_error
        if error is not None:
            batch.put(error)
            return
        self._waiting.extend((batch, job) for job in jobs)
        self._start_jobs()

    def _start_jobs(self) -> None:
        if self._spend_error is not None:
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

    async def _run(self, batch: ResponseBatch, job: Job) -> None:
        try:
            batch.put(await job())
        except SpendLimitError as error:
            self._spend_error = error
            self._unanswered.append(batch)
        except ModelError as error:
            self._fail_all(error)
        except Exception as error:
            # A bug must not leave a consumer blocked.
            self._fail_all(ModelError(f"{type(error).__name__}: {error}"))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if self._spend_error is not None and not self._running:
            self._fail_all(self._spend_error)
        self._start_jobs()

    def _fail_all(self, error: ModelError) -> None:
        self._fatal_error = error
        waiting = [batch for batch, _ in self._waiting]
        batches = [*waiting, *self._running.values(), *self._unanswered]
        self._waiting.clear()
        for batch in {id(batch): batch for batch in batches}.values():
            batch.put(error)

    async def _keep_renewing(self, lease: Lease) -> None:
        try:
            while self._waiting or self._running:
                pending = len(self._waiting) + len(self._running)
                wanted = min(self._window.limit, pending)
                self._granted = lease.renew(wanted, len(self._running))
                self._start_jobs()
                await asyncio.sleep(_RENEWAL_SECONDS)
        except ModelError as error:
            self._fail_all(error)
        finally:
            # Also when the runner is closed: the process of an xdist worker outlives its session.
            self._renewal = None
            self._granted = 0
            with contextlib.suppress(ModelError):
                lease.renew(0, 0)
        if self._waiting:
            self._start_jobs()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _end_thread(
    loop: asyncio.AbstractEventLoop,
    thread: threading.Thread,
    on_exit: Callable[[], Coroutine[Any, Any, None]] | None,
) -> None:
    async def end() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if on_exit is not None:
            with contextlib.suppress(Exception):  # no consumer is left to receive it
                await on_exit()
        loop.stop()

    if not loop.is_closed():
        loop.call_soon_threadsafe(lambda: asyncio.ensure_future(end()))
    if (
        threading.current_thread() is not thread
    ):  # the runner may be garbage collected in its own thread
        thread.join(_END_SECONDS)
