"""One Ray cluster for all tests: a head and two nodes on this machine, both with a place for a sandbox, one with a
GPU.

The GPU is declared, not real. ``tox -e ray`` runs these tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster as Nodes

from pytest_llmeval.core.settings import ReplicaSettings
from pytest_llmeval.evaluation.node_jobs import RESOURCE
from pytest_llmeval.models.ray.cluster import Cluster
from pytest_llmeval.models.ray.pool import ReplicatedModel

SMALL = {"object_store_memory": 80_000_000}


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """The nodes, which a test may add to and remove from."""
    head = {"num_cpus": 0, "include_dashboard": False, **SMALL}
    cluster = Nodes(initialize_head=True, head_node_args=head)
    place = {RESOURCE: 1}
    cluster.add_node(num_cpus=1, resources=place, **SMALL)
    cluster.add_node(num_cpus=1, num_gpus=1, resources=place, **SMALL)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="session")
def cluster(nodes: Any) -> Iterator[Cluster]:
    """The connection of this process."""
    connection = Cluster(nodes.address)
    connection.connect()
    yield connection
    connection.close()


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Callable[..., ReplicatedModel]]:
    """A function that starts replicas, which the end of the test ends."""
    started = []

    def make(source: Any, replicas: int | None = 2, gpus: float = 0) -> ReplicatedModel:
        settings = ReplicaSettings(cluster.address, replicas, gpus)
        started.append(ReplicatedModel(source, cluster, settings))
        return started[-1]

    yield make
    for model in started:
        model.close()
