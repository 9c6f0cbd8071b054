"""Limits that a server must never see exceeded: requests and tokens a minute, requests at a time.

Requests are spread evenly instead of being let through until a minute's allowance is used: a
server that counts by the second is then content too, and one late request meets one later one,
not a burst.
"""

from __future__ import annotations

import asyncio
import os
import time

from pytest_llmeval.models.openai.shared_state import Shared
from pytest_llmeval.models.openai.shared_state import State
from pytest_llmeval.models.openai.shared_state import alive

# How much of a limit is used. At 97 % requests may arrive up to 1.8 s late, all at once, before
# a server counts more than the limit within a minute.
_SHARE = 0.97
# A due time further away than this is left from before the machine was started.
_FARTHEST = 3600.0


def reserve(state: State, now: float, tokens: int, per_request: float, per_token: float) -> float:
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
                lambda state: reserve(
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
