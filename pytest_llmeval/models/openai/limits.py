"""Limits that all processes of a run share: requests and tokens a minute, requests at a time, money.

Limits that a server must never see exceeded: requests and tokens a minute, requests at a time.

Requests are spread evenly instead of being let through until a minute's allowance is used: a
server that counts by the second is then content too, and one late request meets one later one,
not a burst.

The most that all processes and sessions of a run may spend: no request is sent that may exceed it.

A request is let through when what has been spent, what the requests in flight may still cost and
what this one may cost stay within the limit. Its cost is put down when its answer is here.
"""

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


class Shared:
    """A JSON object that is read, changed and written under a lock.

    The lock goes with the process that holds it; what a killed one left half written counts as
    empty. Without a path the object lives in this process alone.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._handle: int | None = None
        self._memory: State = {}
        # The lock of the file excludes other processes, this one the threads of this process.
        self._lock = threading.Lock()

    @property
    def is_file(self) -> bool:
        """Whether other processes see it."""
        return self._path is not None

    def update(self, change: Callable[[State], T]) -> T:
        """Let ``change`` read and modify the object; return what it returns.

        Raises ModelError where the file cannot be written.
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


def alive(pid: int) -> bool:
    """Whether a process of this machine still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# How much of a limit is used. At 97 % requests may arrive up to 1.8 s late, all at once, before
# a server counts more than the limit within a minute.
_SHARE = 0.97
# A due time further away than this is left from before the machine was started.
_FARTHEST = 3600.0


def reserve_request(
    state: State, now: float, tokens: int, per_request: float, per_token: float
) -> float:
    """The time at which the next request may be sent, and note when the one after it may.

    ``per_request`` and ``per_token``: seconds that each takes out of the limits.
    """
    due = max(now, _due(state, "requests", now), _due(state, "tokens", now))
    state["requests"] = due + per_request
    state["tokens"] = due + tokens * per_token
    return due


def _due(state: State, name: str, now: float) -> float:
    due = state.get(name, now)
    return due if isinstance(due, float) and due < now + _FARTHEST else now


class Limiter:
    """Lets requests through at the pace that the limits allow, in all processes together."""

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.counts_tokens = tokens_per_minute is not None
        self._per_request = 60 / (requests_per_minute * _SHARE) if requests_per_minute else 0.0
        self._per_token = 60 / (tokens_per_minute * _SHARE) if tokens_per_minute else 0.0
        self._shared = shared or Shared()
        self._turn = asyncio.Lock()

    async def admitted(self, tokens: int = 0) -> float:
        """Wait until a request of so many tokens may be sent; return the seconds waited."""
        if not (self._per_request or self._per_token):
            return 0.0
        started = time.monotonic()
        # One at a time, so that a process never holds more than its next turn.
        async with self._turn:
            due = self._shared.update(
                lambda state: reserve_request(
                    state, time.monotonic(), tokens, self._per_request, self._per_token
                )
            )
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        return time.monotonic() - started

    def used(self, expected: int, actual: int) -> None:
        """Give back tokens that were expected but not used, or take those that were used too."""
        if not self._per_token or expected == actual:
            return

        def correct(state: State) -> None:
            due = state.get("tokens")
            if isinstance(due, float):
                state["tokens"] = due + (actual - expected) * self._per_token

        self._shared.update(correct)


class Lease:
    """One process's part of the requests that all processes together may have in flight.

    Nobody takes before another has given back, so the sum never exceeds the limit. What a dead
    process held is free again.
    """

    def __init__(self, most: int, shared: Shared) -> None:
        self._most = most
        self._shared = shared
        self._me = str(os.getpid())

    def renew(self, wanted: int, in_flight: int) -> int:
        """How many requests this process may have in flight, given how many it would like."""
        return self._shared.update(
            lambda state: divide(state, self._me, wanted, in_flight, self._most)
        )


def divide(state: State, me: str, wanted: int, in_flight: int, most: int) -> int:
    """How many of ``most`` ``me`` may have in flight after this: towards a fair part for all.

    What is in flight beyond that stays held until it has come back, and is not replaced.
    """
    others = {
        pid: part for pid, part in state.get("held", {}).items() if pid != me and alive(int(pid))
    }
    held = int(state.get("held", {}).get(me, (0, 0))[0])
    target = _fair_part(wanted, [part[1] for part in others.values()], most)
    if held > target:
        allowed, held = target, max(target, in_flight)
    else:
        allowed = held = min(target, max(held, most - sum(part[0] for part in others.values())))
    state["held"] = {**others, me: (held, wanted)} if wanted or held else others
    return allowed


def _fair_part(mine: int, others: list[int], most: int) -> int:
    """What remains for me when everybody gets what he wants, up to an equal part of the rest."""
    left, claims = most, sorted(others)
    for number, claim in enumerate(claims):
        equal = left // (len(claims) - number + 1)
        if mine <= equal or claim > equal:
            return min(mine, max(equal, 1))
        left -= claim
    return min(mine, left)


# How often it is looked whether requests in flight have cost less than they might have.
_AGAIN_SECONDS = 0.05


class SpendLimitError(ModelError):
    """The next request might cost more than is left. Answers that are on their way still count."""


class Budget:
    """Lets requests through as long as they fit in. ``most``: what may be spent, None: anything."""

    def __init__(self, most: float | None = None, shared: Shared | None = None) -> None:
        self._most = most
        self._shared = shared or Shared()
        self._me = str(os.getpid())

    @property
    def is_limited(self) -> bool:
        return self._most is not None

    async def admitted(self, cost: float) -> None:
        """Wait until a request of that possible cost fits; raise SpendLimitError if it never will."""
        if self._most is None:
            return
        most = self._most
        while True:
            admitted, spent, reserved = self._shared.update(
                lambda state: reserve_spend(state, self._me, cost, most)
            )
            if admitted:
                return
            if not reserved:
                raise SpendLimitError(
                    f"--llm-max-cost {most:g} is used up: {spent:.4f} is spent, and the next request"
                    f" may cost {cost:.4f}; --llm-resume goes on from here with a higher limit"
                )
            await asyncio.sleep(_AGAIN_SECONDS)

    def settle(self, reserved: float, cost: float) -> None:
        """Put down what a request that was let through has cost in the end."""
        if self._most is not None:
            self._shared.update(lambda state: settle(state, self._me, reserved, cost))


def reserve_spend(state: State, me: str, cost: float, most: float) -> tuple[bool, float, bool]:
    """Whether ``cost`` fits in and is now reserved, what is spent, whether anything is reserved."""
    held, spent = _living(state)
    fits = spent + sum(held.values()) + cost <= most
    if fits:
        held[me] = held.get(me, 0.0) + cost
    state["held"], state["spent"] = held, spent
    return fits, spent, any(amount > 1e-12 for amount in held.values())


def settle(state: State, me: str, reserved: float, cost: float) -> None:
    """Turn a reservation into what it has cost."""
    held, spent = _living(state)
    held[me] = max(0.0, held.get(me, 0.0) - reserved)
    state["held"], state["spent"] = held, spent + cost


def _living(state: State) -> tuple[dict[str, float], float]:
    """What living processes have in flight, and what is spent.

    What a dead one had in flight has been asked for, and counts as spent.
    """
    held: dict[str, float] = state.get("held", {})
    living = {pid: amount for pid, amount in held.items() if alive(int(pid))}
    lost = sum(amount for pid, amount in held.items() if pid not in living)
    return living, float(state.get("spent", 0.0)) + lost
