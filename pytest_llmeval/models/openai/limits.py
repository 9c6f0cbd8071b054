"""Limits shared by all processes of a run: rates, requests in flight, and spending."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import TypeVar

from pytest_llmeval.core import ModelError
from pytest_llmeval.storage.line_writer import locked

T = TypeVar("T")

State = dict[str, Any]


class SharedState:
    """JSON object in a file that processes update under a lock.

    The operating system releases the lock of a killed process. A file that is not valid JSON counts
    as empty. Without a path, the object is in the memory of this process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._handle: int | None = None
        self._memory: State = {}
        # The file lock excludes other processes, this lock the other threads of this process.
        self._lock = threading.Lock()

    @property
    def is_file(self) -> bool:
        """True if the object is shared with other processes."""
        return self._path is not None

    def update(self, change: Callable[[State], T]) -> T:
        """Call ``change`` with the object, which it may modify; return its result.

        Raises ModelError if the file cannot be read or written.
        """
        with self._lock:
            if self._path is None:
                return change(self._memory)
            try:
                return self._update_file(self._path, change)
            except OSError as error:
                reason = error.strerror or str(error)
                raise ModelError(f"cannot share limits through {self._path}: {reason}") from None

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _update_file(self, path: Path, change: Callable[[State], T]) -> T:
        if self._handle is None:
            self._handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        with locked(self._handle):
            state = _parse(os.pread(self._handle, 1 << 20, 0))
            result = change(state)
            content = json.dumps(state).encode()
            os.ftruncate(self._handle, os.pwrite(self._handle, content, 0))
        return result


def _parse(content: bytes) -> State:
    try:
        state = json.loads(content)
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def is_alive(pid: int) -> bool:
    """Return True if a process of this machine is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# Share of a limit that is used. With 97 %, requests may arrive up to 1.8 s late, all at once,
# before a server counts more than the limit within a minute.
_SHARE = 0.97
# A due time (in seconds) further away than this was stored before the machine was restarted.
_FARTHEST = 3600.0


def reserve_request(
    state: State, now: float, tokens: int, per_request: float, per_token: float
) -> float:
    """Return the time at which the next request may be sent, and reserve it.

    ``per_request``, ``per_token``: seconds of the limits that a request and a token use.
    """
    due = max(now, _due(state, "requests", now), _due(state, "tokens", now))
    state["requests"] = due + per_request
    state["tokens"] = due + tokens * per_token
    return due


def _due(state: State, name: str, now: float) -> float:
    due = state.get(name, now)
    return due if isinstance(due, float) and due < now + _FARTHEST else now


class RateLimiter:
    """Limiter of requests and tokens per minute over all processes.

    Requests are spread evenly over a minute instead of using the allowance in a burst, which also
    satisfies servers that count per second; a late request then coincides with one later request,
    not with a burst.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        shared: SharedState | None = None,
    ) -> None:
        self.counts_tokens = tokens_per_minute is not None
        self._per_request = 60 / (requests_per_minute * _SHARE) if requests_per_minute else 0.0
        self._per_token = 60 / (tokens_per_minute * _SHARE) if tokens_per_minute else 0.0
        self._shared = shared or SharedState()
        self._turn = asyncio.Lock()

    async def admit(self, tokens: int = 0) -> float:
        """Wait until a request of ``tokens`` may be sent; return the seconds waited."""
        if not (self._per_request or self._per_token):
            return 0.0
        started = time.monotonic()
        # One at a time, so that a process reserves only its next request.
        async with self._turn:
            due = self._shared.update(
                lambda state: reserve_request(
                    state, time.monotonic(), tokens, self._per_request, self._per_token
                )
            )
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        return time.monotonic() - started

    def used(self, expected: int, actual: int) -> None:
        """Correct the reservation of a request by the difference of actual and expected tokens."""
        if not self._per_token or expected == actual:
            return

        def correct(state: State) -> None:
            due = state.get("tokens")
            if isinstance(due, float):
                state["tokens"] = due + (actual - expected) * self._per_token

        self._shared.update(correct)


class Lease:
    """Share of a process in the requests that all processes together may have in flight.

    A process takes a slot only after another one has released it, so the sum never exceeds the
    limit. Slots of processes that have ended are free again.
    """

    def __init__(self, maximum: int, shared: SharedState) -> None:
        self._maximum = maximum
        self._shared = shared
        self._me = str(os.getpid())

    def renew(self, wanted: int, in_flight: int) -> int:
        """Return how many requests this process may have in flight, up to ``wanted``."""
        return self._shared.update(
            lambda state: allot(state, self._me, wanted, in_flight, self._maximum)
        )


def allot(state: State, me: str, wanted: int, in_flight: int, maximum: int) -> int:
    """Return how many of ``most`` slots process ``me`` may use, towards equal shares.

    Requests in flight above the share keep their slots until they are answered, and are not
    replaced.
    """
    others = {
        pid: part for pid, part in state.get("held", {}).items() if pid != me and is_alive(int(pid))
    }
    held = int(state.get("held", {}).get(me, (0, 0))[0])
    target = _fair_share(wanted, [part[1] for part in others.values()], maximum)
    if held > target:
        allowed, held = target, max(target, in_flight)
    else:
        allowed = held = min(target, max(held, maximum - sum(part[0] for part in others.values())))
    state["held"] = {**others, me: (held, wanted)} if wanted or held else others
    return allowed


def _fair_share(mine: int, others: list[int], maximum: int) -> int:
    """Return my max-min fair share: smaller claims are met in full, the rest is divided equally."""
    rest, claims = maximum, sorted(others)
    for number, claim in enumerate(claims):
        equal = rest // (len(claims) - number + 1)
        if mine <= equal or claim > equal:
            return min(mine, max(equal, 1))
        rest -= claim
    return min(mine, rest)


# Seconds between checks whether requests in flight have cost less than reserved.
_AGAIN_SECONDS = 0.05


class SpendLimitError(ModelError):
    """Error for a request that might exceed the spending limit; replies in flight still count."""


class Budget:
    """Spending limit over all processes and sessions of a run; no request may exceed it.

    A request is admitted if the money spent, the possible cost of requests in flight and its own
    possible cost stay within the limit. Its actual cost is recorded when its reply arrives.
    ``most``: the limit, None for no limit.
    """

    def __init__(self, maximum: float | None = None, shared: SharedState | None = None) -> None:
        self._maximum = maximum
        self._shared = shared or SharedState()
        self._me = str(os.getpid())

    @property
    def is_limited(self) -> bool:
        return self._maximum is not None

    async def admit(self, cost: float) -> None:
        """Wait until a request of this possible cost fits; raise SpendLimitError if it cannot."""
        if self._maximum is None:
            return
        maximum = self._maximum
        while True:
            admitted, spent, reserved = self._shared.update(
                lambda state: reserve_spend(state, self._me, cost, maximum)
            )
            if admitted:
                return
            if not reserved:
                raise SpendLimitError(
                    f"--llm-max-cost {maximum:g} is used up: {spent:.4f} is spent, and the next"
                    f" request may cost {cost:.4f}; continue with --llm-resume and a higher limit"
                )
            await asyncio.sleep(_AGAIN_SECONDS)

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reservation of a request by its actual cost."""
        if self._maximum is not None:
            self._shared.update(lambda state: settle(state, self._me, reserved, cost))


def reserve_spend(state: State, me: str, cost: float, maximum: float) -> tuple[bool, float, bool]:
    """Reserve ``cost`` if it fits; return success, the money spent, and whether any is reserved."""
    held, spent = _reserved_and_spent(state)
    fits = spent + sum(held.values()) + cost <= maximum
    if fits:
        held[me] = held.get(me, 0.0) + cost
    state["held"], state["spent"] = held, spent
    return fits, spent, any(amount > 1e-12 for amount in held.values())


def settle(state: State, me: str, reserved: float, cost: float) -> None:
    """Replace a reservation by the actual cost."""
    held, spent = _reserved_and_spent(state)
    held[me] = max(0.0, held.get(me, 0.0) - reserved)
    state["held"], state["spent"] = held, spent + cost


def _reserved_and_spent(state: State) -> tuple[dict[str, float], float]:
    """Return the reservations of running processes, and the money spent.

    Reservations of ended processes count as spent, because their requests have been sent.
    """
    held: dict[str, float] = state.get("held", {})
    living = {pid: amount for pid, amount in held.items() if is_alive(int(pid))}
    lost = sum(amount for pid, amount in held.items() if pid not in living)
    return living, float(state.get("spent", 0.0)) + lost
