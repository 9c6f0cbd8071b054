"""Connection to a Ray cluster: its address is checked before Ray, which would retry for minutes."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.installation import install_hint

LOCAL = "local"
_CONNECT_SECONDS = 3.0
_FREE_SECONDS = 3.0  # Ray reports resources of ended actors with a delay
_OBJECT_STORE = 100_000_000  # bytes; requests and responses are too small for it
# HTTP/2 connection preface and an empty SETTINGS frame (RFC 9113, sections 3.4 and 6.5).
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_SETTINGS = 4

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # `uv run` would make Ray copy the environment to all nodes.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # Hide GPUs from replicas without GPU, as Ray does by default, without its warning about it.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
}


@dataclass(frozen=True, slots=True)
class Placement:
    """Number of replicas, and the GPUs and CPUs that each of them reserves on one node."""

    replicas: int
    gpus: float
    cpus: int


class Cluster:
    """Cluster at ``local`` or HOST:PORT, to which this process connects at most once."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._connected = self._owned = False

    def connect(self) -> Any:
        """Connect, and return the module ``ray``.

        Raises ConfigError, in one line and within seconds, if that is not possible.
        """
        if self._connected:
            return importlib.import_module("ray")
        check_address(self.address)
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        ray: Any = importlib.import_module("ray")
        if not ray.is_initialized():
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
            if self.address == LOCAL:
                options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE}
            try:
                with _kept_signal_handlers():
                    ray.init(address=self.address, **options)
            except ConnectionError as error:
                raise ConfigError(
                    f"--llm-ray {self.address}: {_one_line(error)}: if the cluster needs a token, set"
                    " RAY_AUTH_MODE=token and RAY_AUTH_TOKEN; this machine has to be a node of the"
                    f" cluster (`ray start --address={self.address} --num-cpus=0`)"
                ) from error
            except (RuntimeError, ValueError, OSError) as error:
                raise ConfigError(f"--llm-ray {self.address}: {_one_line(error)}") from error
            self._owned = True
        _silence(ray)
        self._connected = True
        return ray

    def place(self, replicas: int | None, gpus: float | None) -> Placement:
        """Return the placement of replicas on the free resources. Raises ConfigError."""
        ray = self.connect()
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        plan_placement(nodes, ray.cluster_resources(), replicas, gpus)  # more is never free
        deadline = time.monotonic() + _FREE_SECONDS
        while True:
            try:
                return plan_placement(nodes, ray.available_resources(), replicas, gpus)
            except ConfigError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        """Disconnect; ends a local cluster, and all actors of this process."""
        if self._owned:
            with _kept_signal_handlers():
                importlib.import_module("ray").shutdown()
        self._connected = self._owned = False


def check_address(address: str) -> None:
    """Raise ConfigError unless Ray is installed and a Ray cluster answers at the address.

    Sends the beginning of an HTTP/2 connection, because Ray itself retries for 14 minutes.
    """
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(f"--llm-ray {address}: ray is not installed: {install_hint('ray')}")
    if address == LOCAL:
        return
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or "/" in host:
        raise ConfigError(
            f"--llm-ray {address}: expected HOST:PORT of the head node, such as 10.0.0.5:6379, or"
            f" {LOCAL}"
        )
    start = f"start it with `ray start --head`, or write {LOCAL}"
    try:
        with socket.create_connection((host, int(port)), _CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS") == "1":
                return
            connection.sendall(_PREFACE)
            frame = connection.recv(9)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"--llm-ray {address}: no cluster answers there ({reason}): {start}"
        ) from None
    if len(frame) < 4 or frame[3] != _SETTINGS:
        raise ConfigError(
            f"--llm-ray {address}: that is not the port of a Ray head node (6379 by default): {start}"
        )


def plan_placement(
    nodes: Sequence[Mapping[str, float]],
    free: Mapping[str, float],
    replicas: int | None,
    gpus: float | None,
) -> Placement:
    """Return the placement of replicas on nodes with these resources (``CPU``, ``GPU``).

    By default a replica has one GPU and there are as many replicas as fit; on a cluster without
    GPUs there is one replica per node, and replicas share the CPUs of their nodes. ``free``: the
    free resources of all nodes together. Raises ConfigError if the replicas do not fit.
    """
    total_gpus = sum(node.get("GPU", 0) for node in nodes)
    if gpus is None:
        gpus = 1.0 if total_gpus else 0.0
    if gpus:
        fitting = sum(math.floor(node.get("GPU", 0) / gpus + 1e-9) for node in nodes)
        free_gpus = free.get("GPU", 0)
        count = replicas or max(1, min(fitting, math.floor(free_gpus / gpus + 1e-9)))
        if count > fitting:
            largest = max((node.get("GPU", 0) for node in nodes), default=0)
            raise ConfigError(
                f"--llm-replicas {count} with {gpus:g} GPUs each: the cluster has room for"
                f" {fitting} ({total_gpus:g} GPUs, at most {largest:g} on a node)"
            )
        if free_gpus + 1e-9 < count * gpus:
            raise ConfigError(
                f"--llm-replicas {count} with {gpus:g} GPUs each: {free_gpus:g} of"
                f" {total_gpus:g} GPUs are free: end what uses them, or start fewer replicas"
            )
        return Placement(count, gpus, 1)
    cpus = [math.floor(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    count = replicas or max(1, len(cpus))
    for each in range(max(cpus, default=0), 0, -1):
        if sum(node // each for node in cpus) >= count:
            break
    else:
        raise ConfigError(f"--llm-replicas {count}: the cluster has {sum(cpus)} CPUs, one for each")
    if free.get("CPU", 0) < count * each:
        each = math.floor(free.get("CPU", 0) / count)
    if not each:
        raise ConfigError(
            f"--llm-replicas {count}: {free.get('CPU', 0):g} of {sum(cpus)} CPUs are free: end what"
            " uses them, or start fewer replicas"
        )
    return Placement(count, 0.0, each)


def _silence(ray: Any) -> None:
    """Drop the messages about lost workers that Ray prints with ``log_to_driver=False`` too.

    They would break pytest's progress line; a lost replica is among the notes of the summary.
    """
    worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


@contextmanager
def _kept_signal_handlers() -> Iterator[None]:
    """Restore the handler of SIGTERM, which ``ray.init`` replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)


def error_line(error: BaseException, number: int) -> str:
    """Return a line of an error of Ray: 0 is the summary, -1 the end of the actor's traceback."""
    return (str(error).strip().splitlines() or [type(error).__name__])[number].strip()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
