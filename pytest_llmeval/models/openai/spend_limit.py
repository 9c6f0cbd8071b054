"""The most that all processes and sessions of a run may spend: no request is sent that may exceed it.

A request is let through when what has been spent, what the requests in flight may still cost and
what this one may cost stay within the limit. Its cost is put down when its answer is here.
"""

from __future__ import annotations

import asyncio
import os

from pytest_llmeval.core import ModelError
from pytest_llmeval.models.openai.shared_state import Shared
from pytest_llmeval.models.openai.shared_state import State
from pytest_llmeval.models.openai.shared_state import alive

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
                lambda state: reserve(state, self._me, cost, most)
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


def reserve(state: State, me: str, cost: float, most: float) -> tuple[bool, float, bool]:
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
