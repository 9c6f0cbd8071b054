"""A replica: one copy of a model in a process on some node, which answers as Ray actor."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import pickle
import platform
import queue
import signal
import socket
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import replace
from importlib import metadata
from typing import Any

import pytest

from pytest_llmeval import __version__
from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import ModelError
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core import replace_lone_surrogates
from pytest_llmeval.models import Model
from pytest_llmeval.models import as_model
from pytest_llmeval.models import load_model
from pytest_llmeval.models.awaited import AwaitedAnswers

Source = str | Callable[[], object]
"""Spec of a model, or a function that constructs it."""

Answered = Sequence[tuple[int, Response]]
"""Responses, each with the position of its request in the call."""

# Responses that arrive within this time are sent together, which halves the work of the driver.
_FLUSH_SECONDS = 0.5
_PACKAGES = ("torch", "transformers")
_FORWARDED = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@dataclass(frozen=True, slots=True)
class Identity:
    """Properties of a replica's model and of the place where it runs."""

    name: str
    asks: frozenset[Ask]
    request_modes: Mapping[Ask, str]
    template_date: str
    fingerprint: str | None
    #: Package → version, also of Python; only packages that are installed.
    versions: Mapping[str, str]
    #: Host name.
    node: str
    #: Id of the node in Ray, and of the process.
    node_id: str
    pid: int
    #: Name of the GPU, or ``cpu``.
    device: str
    #: Data type of the weights; empty if unknown.
    dtype: str


def versions() -> dict[str, str]:
    """Return the versions, in this process, of all packages that can change an answer."""
    installed = {"python": platform.python_version(), "pytest-llmeval": __version__}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Parts of the driver's environment that a replica takes over."""

    #: Environment variables, unless the node sets them.
    variables: Mapping[str, str]
    #: Folders from which modules are imported, after those of the node.
    path: Sequence[str]
    #: Working folder, for relative paths in a spec.
    folder: str

    @classmethod
    def of_this_process(cls) -> Surroundings:
        variables = {name: os.environ[name] for name in _FORWARDED if name in os.environ}
        return cls(variables, tuple(path for path in sys.path if path), os.getcwd())

    def adopt(self) -> None:
        """Adopt them in this process, as far as the node has such folders."""
        for name, value in self.variables.items():
            os.environ.setdefault(name, value)
        sys.path += [path for path in self.path if path not in sys.path and os.path.isdir(path)]
        with contextlib.suppress(OSError):
            os.chdir(self.folder)


@dataclass(frozen=True, slots=True)
class Failure:
    """Exception in a replica, as text, because the exception itself may not survive the transfer."""

    reason: str
    #: Host name.
    node: str
    #: True if the model cannot be used at all.
    is_fatal: bool


class Replica:
    """Actor with one model, which one thread constructs and runs.

    Another thread sends the responses, so that none waits until the next one is complete.
    """

    def __init__(self, source: bytes, surroundings: Surroundings) -> None:
        """Load nothing. ``source``: a pickled Source, whose modules may be in the driver's folders."""
        self._source = source
        self._surroundings = surroundings
        self._model: Model | None = None
        self._thread = ThreadPoolExecutor(1, "llmeval-model")

    def identity(self) -> Identity | Failure:
        """Open the model, which loads no weights, and return its identity."""
        return self._thread.submit(self._identify).result()

    def answer(self, requests: Sequence[Request]) -> Iterator[Answered | Failure]:
        """Yield the responses to the requests, those of half a second together."""
        results: queue.SimpleQueue[tuple[int, Response] | Failure | None] = queue.SimpleQueue()
        self._thread.submit(self._answer, requests, results.put)
        while True:
            collected: list[tuple[int, Response]] = []
            deadline = math.inf
            result = results.get()
            while isinstance(result, tuple):
                collected.append(result)
                deadline = min(deadline, time.monotonic() + _FLUSH_SECONDS)
                try:
                    result = results.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    break
            if collected:
                yield collected
            if isinstance(result, Failure):
                yield result
            if not isinstance(result, tuple):
                return

    # --- within the model's thread

    def _identify(self) -> Identity | Failure:
        try:
            ray: Any = importlib.import_module("ray")
            self._surroundings.adopt()
            source: Source = pickle.loads(self._source)
            self._model = model = as_model(
                load_model(source) if isinstance(source, str) else source()
            )
            return Identity(
                name=model.name,
                asks=frozenset(model.asks),
                request_modes=dict(model.request_modes.items()),
                template_date=model.template_date,
                fingerprint=model.fingerprint,
                versions=versions(),
                node=socket.gethostname(),
                node_id=ray.get_runtime_context().get_node_id(),
                pid=os.getpid(),
                device=_device(),
                dtype=model.dtype,
            )
        except BaseException as error:
            return _failure(error)

    def _answer(
        self,
        requests: Sequence[Request],
        put: Callable[[tuple[int, Response] | Failure | None], None],
    ) -> None:
        """Pass on the responses, each with its request's sample and arm, then None or a Failure."""
        try:
            assert self._model is not None
            awaited = AwaitedAnswers((request, n) for n, request in enumerate(requests))
            for response in self._model.answer(requests):
                if not isinstance(response, Response):
                    name = type(response).__name__
                    raise TypeError(f"the model yielded {name}, not a Response")
                position = awaited.pop(response)
                if position is None:
                    continue
                request = requests[position]
                put((position, replace(response, sample=request.sample, arm=request.arm)))
                if not awaited:
                    break
            put(None)
        except BaseException as error:
            put(_failure(error))


def end_process(pid: int) -> None:
    """End a process of this node that does not react, as a task on its node."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _failure(error: BaseException) -> Failure:
    fatal = isinstance(error, (ConfigError, ModelError, pytest.exit.Exception))
    text = str(error) if fatal else f"{type(error).__name__}: {error}"
    return Failure(replace_lone_surrogates(" ".join(text.split())), socket.gethostname(), fatal)


def _device() -> str:
    """Return the name of this process's GPUs, or ``cpu``; does not import torch."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        count, name = torch.cuda.device_count(), torch.cuda.get_device_name(0)
        return f"{count} x {name}" if count > 1 else str(name)
    return "GPU" if os.environ.get("CUDA_VISIBLE_DEVICES", "").strip(" ,-1") else "cpu"
