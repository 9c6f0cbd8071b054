"""Models that replicas in the tests of the cluster construct, with faults at chosen items."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response


@dataclass
class Faulty:
    """Answers an item with its id in capitals, after a pause; some items have an effect instead."""

    seconds: float = 0.01
    poison: str = ""
    #: Raises an exception on this item.
    raising: str = ""
    #: The model cannot be used from this item on.
    broken: str = ""
    #: The first replica to create this file has the effect, once.
    once: str = ""
    #: Signal that it sends itself at its fifth item.
    signal: int = 0
    fingerprint: str = "weights-1"
    name: str = "faulty"
    asks: frozenset[str] = frozenset({"text"})

    def answer(self, requests: Iterable[Request]) -> Iterator[Response]:
        for number, request in enumerate(requests):
            time.sleep(self.seconds)
            if request.id == self.poison:
                os.kill(os.getpid(), signal.SIGKILL)
            if request.id == self.raising:
                raise ValueError(f"cannot answer {request.id}")
            if request.id == self.broken:
                raise ModelError("the weights are damaged")
            if self.signal and number == 5 and self._is_first():
                os.kill(os.getpid(), self.signal)
            yield Response(request.id, text=request.id.upper(), seconds=self.seconds)

    def _is_first(self) -> bool:
        try:
            Path(self.once).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass
class Different(Faulty):
    """Has other weights in every process."""

    def __post_init__(self) -> None:
        self.fingerprint = str(os.getpid())


def cannot_load() -> object:
    raise OSError("weights.bin: no such file")
