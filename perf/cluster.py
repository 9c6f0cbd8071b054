"""Throughput of replicas on Ray against the ideal, with models that only sleep.

    python perf/cluster.py [--replicas 8 64] [--items 14042 100000]

One process per replica on this machine, with a fraction of a CPU each, answers every request after a
pause. Requests are sent in chunks of 128 and as far in advance as in a session of pytest; pytest and
records take no part. The ideal is the number of items times the real length of a pause, measured in
the same run, divided by the number of replicas. Also printed: processor time of this process per
item, until the first response, and its largest memory. Needs Ray; 64 replicas need 5 GB of memory.

Status 1: below 95 % of the ideal.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import Prompt
from pytest_llmeval.core import Request
from pytest_llmeval.core import Response
from pytest_llmeval.core.settings import ReplicaSettings
from pytest_llmeval.models.ray.cluster import LOCAL
from pytest_llmeval.models.ray.cluster import Cluster
from pytest_llmeval.models.ray.pool import ReplicatedModel

CHUNK = 128
LEAST = 0.95
# Pauses at which a run takes about a minute: items per second of the driver are what is tested.
PAUSES = {(8, 14_042): 0.03, (8, 100_000): 0.01, (64, 14_042): 0.2, (64, 100_000): 0.05}


@dataclass
class Sleeping:
    """Model that answers every request after a pause."""

    pause: float
    name: str = "sleeping"

    def answer(self, requests: Any) -> Any:
        """Yield the responses one by one."""
        for request in requests:
            time.sleep(self.pause)
            yield Response(request.id, logprobs=(-1.0, -2.0, -3.0, -4.0))


@dataclass
class Factory:
    """Constructor of the model in a replica."""

    pause: float

    def __call__(self) -> Sleeping:
        """Return the model."""
        return Sleeping(self.pause)


def real_pause(pause: float) -> float:
    """Return the mean length of a pause, over a second."""
    count = max(5, int(1 / pause))
    started = time.perf_counter()
    for _ in range(count):
        time.sleep(pause)
    return (time.perf_counter() - started) / count


def chunks(items: int) -> Any:
    """Yield the requests of a benchmark with five shots, by chunk."""
    for start in range(0, items, CHUNK):
        shots = tuple((f"shot {start} {number} " + 200 * "x", "A") for number in range(5))
        yield [
            Request(f"item-{n}", Prompt("", shots, 200 * "q"), ("A", "B", "C", "D"))
            for n in range(start, min(items, start + CHUNK))
        ]


def measure(replicas: int, items: int, pause: float) -> float:
    """Run one configuration, print a line, and return the share of the ideal throughput."""
    cluster = Cluster(LOCAL)
    began = time.perf_counter()
    model = ReplicatedModel(Factory(pause), cluster, ReplicaSettings(LOCAL, replicas))
    start_up = time.perf_counter() - began
    ideal = items * real_pause(pause) / replicas
    pending: deque[Any] = deque()
    left, outstanding, first = chunks(items), 0, 0.0
    processor, began = time.process_time(), time.perf_counter()
    answered = 0
    while True:
        while outstanding < model.prefetch and (chunk := next(left, None)) is not None:
            pending.append(model.answer(chunk))
            outstanding += len(chunk)
        if not pending:
            break
        for batch in list(pending):
            while batch.available and next(batch, None) is not None:
                answered += 1
                outstanding -= 1
                first = first or time.perf_counter() - began
            if batch.available:
                pending.remove(batch)
        time.sleep(0.02)
    wall = time.perf_counter() - began
    processor = time.process_time() - processor
    assert answered == items
    model.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{replicas:>3} replicas, {items:>7,} items of {pause:g} s: {wall:6.1f} s, ideal {ideal:6.1f} s,"
        f" {ideal / wall:4.0%}; driver {1e6 * processor / items:4.0f} µs an item, first response after"
        f" {first:.2f} s, {memory:.0f} MB; start-up {start_up:.1f} s",
        flush=True,
    )
    return ideal / wall


def main() -> int:
    """Run all configurations."""
    parser = argparse.ArgumentParser(description="throughput of replicas against the ideal")
    parser.add_argument("--replicas", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--items", type=int, nargs="+", default=[14_042, 100_000])
    options = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray: Any = importlib.import_module("ray")
    ray.init(
        address="local",
        num_cpus=max(options.replicas),
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
        logging_level="ERROR",
    )
    try:
        shares = [
            measure(replicas, items, PAUSES.get((replicas, items), 60 * replicas / items))
            for replicas in options.replicas
            for items in options.items
        ]
    finally:
        ray.shutdown()
    return 0 if min(shares) >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
