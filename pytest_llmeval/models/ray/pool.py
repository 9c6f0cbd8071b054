"""A model as several replicas: starts them, compares them, and answers through them."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import time
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from pytest_llmeval.core import Ask
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Request
from pytest_llmeval.core.settings import ReplicaSettings
from pytest_llmeval.models.awaited import ResponseBatch
from pytest_llmeval.models.base import Model
from pytest_llmeval.models.ray.cluster import Cluster
from pytest_llmeval.models.ray.cluster import Placement
from pytest_llmeval.models.ray.cluster import error_line
from pytest_llmeval.models.ray.dispatcher import Dispatcher
from pytest_llmeval.models.ray.replica import Failure
from pytest_llmeval.models.ray.replica import Identity
from pytest_llmeval.models.ray.replica import Replica
from pytest_llmeval.models.ray.replica import Source
from pytest_llmeval.models.ray.replica import Surroundings
from pytest_llmeval.models.ray.replica import versions
from pytest_llmeval.models.ray.scheduling import LARGEST

_START_SECONDS = 60.0  # without a further replica
# Pieces per replica that are requested in advance: twice the number into which they are cut.
_AHEAD = 8
_MOST_AHEAD = 50_000  # requests in advance, for the memory of this process

_CUDA_DEVICE = re.compile(r"[?&]device=cuda:\d")
_DEVICES = re.compile(r"[?&]devices=(\d+)")


class ReplicatedModel(Model):
    """Model that runs as replicas; name, requests and fingerprint are those of the model itself.

    Constructing it starts the replicas, which open the model but load no weights.
    """

    def __init__(self, source: Source, cluster: Cluster, settings: ReplicaSettings) -> None:
        """Start the replicas and compare them.

        ``source``: a spec, or a function that constructs the model. Raises ConfigError, in one
        line, if there is no room, if a replica cannot open the model, or if replicas differ.
        """
        gpus = settings.gpus
        if isinstance(source, str):
            source, gpus = spec_and_gpus(source, gpus)
        self._cluster = cluster
        self.placement = cluster.place(settings.replicas, gpus)
        ray = cluster.connect()
        options = {"num_cpus": self.placement.cpus, "num_gpus": self.placement.gpus}
        # Ray would match the responses of a repeated call by their position.
        never = {"max_restarts": 0, "max_task_retries": 0}
        remote = ray.remote(Replica).options(**options, **never, scheduling_strategy="SPREAD")
        arguments = (_pickled(source), Surroundings.of_this_process())
        actors, identities = _start(ray, lambda: remote.remote(*arguments), self.placement)
        try:
            check_identities(identities, versions(), settings.allow_mixed)
        except ConfigError:
            _kill(ray, actors)
            raise
        self._identity = identity = identities[0]
        self.name = identity.name
        self.asks: frozenset[Ask] = identity.asks
        self.request_modes: Mapping[Ask, str] = identity.request_modes
        self.template_date = identity.template_date
        self.fingerprint = identity.fingerprint
        self.dtype = identity.dtype
        self.prefetch = min(_AHEAD * LARGEST * self.placement.replicas, _MOST_AHEAD)

        def differs(other: Identity) -> str | None:
            return difference(identity, other, settings.allow_mixed)

        self._dispatcher = Dispatcher(
            ray, actors, identities, lambda: remote.remote(*arguments), differs
        )

    def answer(self, requests: Iterable[Request]) -> ResponseBatch:
        """Send the requests; responses arrive as replicas complete them."""
        return self._dispatcher.submit(list(requests))

    @property
    def activity(self) -> str:
        """Present state of the replicas, such as ``7 of 8 replicas busy``; any thread may read it."""
        dispatcher = self._dispatcher
        return f"{dispatcher.busy} of {self.placement.replicas} replicas busy"

    @property
    def warnings(self) -> Sequence[str]:
        """Replicas that were lost, in one line."""
        return self._dispatcher.warnings

    def description(self) -> dict[str, Any]:
        """Return where the model runs, for the manifest of a run."""
        places = sorted(self._dispatcher.places.items())
        return {
            "address": self._cluster.address,
            "replicas": self.placement.replicas,
            "gpus_per_replica": self.placement.gpus,
            "cpus_per_replica": self.placement.cpus,
            "dtype": self.dtype,
            "places": [
                {"node": node, "device": device, "started": count}
                for (node, device), count in places
            ],
            "lost": self._dispatcher.lost,
        }

    def release(self) -> None:
        """End the replicas if they have nothing to do; the next requests start them again."""
        self._dispatcher.release()

    def close(self) -> None:
        """End all replicas."""
        self._dispatcher.close()


def check_identities(
    identities: Sequence[Identity], driver: Mapping[str, str], allow_mixed: bool
) -> None:
    """Raise ConfigError if replicas differ, or have other versions than this process.

    ``driver``: the versions of this process. ``allow_mixed``: allow different kinds of GPU.
    """
    for identity in identities:
        for package, version in identity.versions.items():
            if driver.get(package, version) != version:
                raise ConfigError(
                    f"replica on {identity.node}: {package} {version}, here {driver[package]}:"
                    " install the same version on all nodes"
                )
        if (problem := difference(identities[0], identity, allow_mixed)) is not None:
            raise ConfigError(problem)


def difference(first: Identity, other: Identity, allow_mixed: bool) -> str | None:
    """Return, in one line, what makes answers of two replicas incomparable; None if nothing does."""
    for package in sorted({*first.versions, *other.versions}):
        left, right = (it.versions.get(package, "not installed") for it in (first, other))
        if left != right:
            return f"replicas differ: {package} {left} on {first.node}, {right} on {other.node}"
    pairs = {
        "model fingerprint": (str(first.fingerprint), str(other.fingerprint)),
        "model": (first.name, other.name),
        "dtype": (first.dtype, other.dtype),
    }
    for what, (left, right) in pairs.items():
        if left != right:
            return f"replicas differ: {what}, {left} on {first.node}, {right} on {other.node}"
    if first.device != other.device and not allow_mixed:
        return (
            f"replicas differ: {first.device} on {first.node}, {other.device} on {other.node}: use"
            " nodes with the same GPU, or allow it with --llm-allow-mismatch"
        )
    return None


def spec_and_gpus(spec: str, gpus: float | None) -> tuple[str, float | None]:
    """Return the spec of a replica's model, and the GPUs per replica.

    A replica with several GPUs distributes the layers of its model over them (``devices``).
    ``gpus``: the setting. Raises ConfigError if the spec names a GPU, or another number of them.
    """
    if _CUDA_DEVICE.search(spec):
        raise ConfigError(
            f"--llm-model {spec}: Ray gives every replica its own GPU: write device=cuda, or leave"
            " it out"
        )
    if (match := _DEVICES.search(spec)) is None:
        if gpus is None or gpus <= 1:
            return spec, gpus
        return f"{spec}{'&' if '?' in spec else '?'}devices={gpus:g}", gpus
    devices = int(match[1])
    if gpus is None:
        return spec, float(devices)
    if devices != max(1, gpus):
        raise ConfigError(
            f"--llm-gpus-per-replica {gpus:g}: {spec} uses {devices}; leave out one of the two"
        )
    return spec, gpus


def _start(ray: Any, make: Any, placement: Placement) -> tuple[list[Any], list[Identity]]:
    """Start the replicas; return them with their identities, in the same order. Raises ConfigError."""
    actors = [make() for _ in range(placement.replicas)]
    pending = {actor.identity.remote(): actor for actor in actors}
    order = list(pending)
    results: dict[Any, Identity] = {}
    try:
        deadline = time.monotonic() + _START_SECONDS
        while len(results) < len(order):
            waiting = [ref for ref in order if ref not in results]
            ready, _ = ray.wait(waiting, timeout=max(0.1, deadline - time.monotonic()))
            if not ready:
                raise ConfigError(_no_room(ray, len(results), placement))
            for ref in ready:
                try:
                    identity = ray.get(ref)
                except ray.exceptions.RayError as error:
                    raise ConfigError(
                        f"a replica did not start: {error_line(error, -1)}"
                    ) from error
                if isinstance(identity, Failure):
                    raise ConfigError(
                        f"replica on {identity.node} cannot open the model: {identity.reason}"
                    )
                results[ref] = identity
            deadline = time.monotonic() + _START_SECONDS
    except BaseException:
        _kill(ray, actors)
        raise
    return actors, [results[ref] for ref in order]


def _no_room(ray: Any, started: int, placement: Placement) -> str:
    free, total = ray.available_resources(), ray.cluster_resources()
    resources = ", ".join(
        f"{free.get(name, 0):g} of {total.get(name, 0):g} {name}s are free"
        for name in ("GPU", "CPU")
        if total.get(name)
    )
    return (
        f"--llm-replicas {placement.replicas}: {started} started, no other within"
        f" {_START_SECONDS:g} s; {resources}"
    )


def _kill(ray: Any, actors: Iterable[Any]) -> None:
    for actor in actors:
        with contextlib.suppress(Exception):
            ray.kill(actor)


def _pickled(source: Source) -> bytes:
    """Return a source for other processes; a function of a ``conftest.py`` contains its code.

    Raises ConfigError if it cannot be sent.
    """
    cloudpickle: Any = importlib.import_module("ray.cloudpickle")
    name = "" if isinstance(source, str) else getattr(source, "__module__", "")
    module = sys.modules.get(name)
    by_value = module is not None and name.rpartition(".")[2] == "conftest"
    if by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        pickled: bytes = cloudpickle.dumps(source)
    except Exception as error:
        raise ConfigError(
            f"pooled({getattr(source, '__name__', source)}) cannot be sent to replicas:"
            f" {' '.join(str(error).split())}"
        ) from error
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)
    return pickled
