"""Room for replicas, the address of a cluster, and replicas that must not be mixed. Without Ray."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ConfigError
from pytest_llmeval.models.ray import cluster
from pytest_llmeval.models.ray.cluster import Placement
from pytest_llmeval.models.ray.cluster import check_address
from pytest_llmeval.models.ray.cluster import plan_placement
from pytest_llmeval.models.ray.pool import check_identities
from pytest_llmeval.models.ray.pool import spec_and_gpus
from pytest_llmeval.models.ray.replica import Identity

EIGHT = {"CPU": 64.0, "GPU": 8.0}
PLAIN = {"CPU": 4.0}


def free(nodes) -> dict[str, float]:
    return {kind: sum(node.get(kind, 0) for node in nodes) for kind in ("CPU", "GPU")}


@pytest.mark.parametrize(
    ("nodes", "replicas", "gpus", "expected"),
    [
        ([EIGHT, EIGHT], None, None, Placement(16, 1.0, 1)),
        ([EIGHT, EIGHT], 3, None, Placement(3, 1.0, 1)),
        ([EIGHT, PLAIN], None, 2.0, Placement(4, 2.0, 1)),
        ([{"CPU": 8, "GPU": 7}], None, 2.0, Placement(3, 2.0, 1)),
        ([EIGHT], None, 0.5, Placement(16, 0.5, 1)),
        ([EIGHT, EIGHT], 2, 0.0, Placement(2, 0.0, 64)),
        ([PLAIN, PLAIN], None, None, Placement(2, 0.0, 4)),
        ([PLAIN, PLAIN], 4, None, Placement(4, 0.0, 2)),
        ([PLAIN, PLAIN], 3, None, Placement(3, 0.0, 2)),
        ([{"CPU": 3.0}, {"CPU": 3.0}], 5, None, Placement(5, 0.0, 1)),
        ([{"CPU": 0.0}, PLAIN], None, None, Placement(1, 0.0, 4)),
    ],
)
def test_placement(nodes, replicas, gpus, expected):
    assert plan_placement(nodes, free(nodes), replicas, gpus) == expected


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.none() | st.integers(1, 50))
def test_replicas_fit_on_the_nodes(cpus, replicas):
    nodes = [{"CPU": float(number)} for number in cpus]
    try:
        placed = plan_placement(nodes, free(nodes), replicas, None)
    except ConfigError:
        assert (replicas or 1) > sum(cpus)
        return
    assert placed.replicas == (replicas or sum(number > 0 for number in cpus))
    room = [sum(number // each for number in cpus) for each in range(1, 10)]
    largest = max(each for each, count in enumerate(room, 1) if count >= placed.replicas)
    assert placed.cpus == largest


@pytest.mark.parametrize(
    ("nodes", "available", "replicas", "gpus", "line"),
    [
        ([EIGHT], {"GPU": 0}, None, None, "0 of 8 GPUs are free"),
        ([EIGHT], {"GPU": 5}, 6, None, "5 of 8 GPUs are free"),
        ([EIGHT, EIGHT], {"GPU": 16}, None, 16.0, "room for 0 (16 GPUs, at most 8 on a node)"),
        ([PLAIN], {"CPU": 4}, None, 1.0, "room for 0 (0 GPUs, at most 0 on a node)"),
        ([PLAIN], {"CPU": 4}, 5, None, "--llm-replicas 5: the cluster has 4 CPUs"),
        ([PLAIN], {"CPU": 1}, 2, None, "1 of 4 CPUs are free"),
    ],
)
def test_no_room_is_one_line(nodes, available, replicas, gpus, line):
    with pytest.raises(ConfigError) as raised:
        plan_placement(nodes, available, replicas, gpus)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.fixture
def _ray_installed(monkeypatch):
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda _name: object())
    monkeypatch.delenv("RAY_USE_TLS", raising=False)


@contextmanager
def serving(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """A server that answers one connection; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(answer(connection.recv(100)))

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.usefixtures("_ray_installed")
class TestAddress:
    @pytest.mark.parametrize(
        "address", ["auto", "ray://head:10001", "head", "head:port", ":6379", "http://head:8265"]
    )
    def test_another_form_is_refused(self, address):
        with pytest.raises(ConfigError, match="expected HOST:PORT of the head node"):
            check_address(address)

    def test_a_cluster_that_is_not_there_is_noticed_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
        started = time.monotonic()
        with pytest.raises(ConfigError, match="no cluster answers there"):
            check_address(f"127.0.0.1:{port}")
        assert time.monotonic() - started < 5

    def test_another_server_is_no_cluster(self):
        refusal = pytest.raises(ConfigError, match="not the port of a Ray head node")
        with serving(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as address, refusal:
            check_address(address)

    def test_a_server_that_hangs_up_is_no_cluster(self):
        refusal = pytest.raises(ConfigError, match="not the port of a Ray head node")
        with serving(lambda _: b"") as address, refusal:
            check_address(address)

    def test_a_head_node_answers_with_settings(self):
        with serving(lambda _: b"\0\0\0\4\0\0\0\0\0") as address:
            check_address(address)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"ray is not installed: .*\[ray\]"):
        check_address("local")


HERE = {"python": "3.11.7", "torch": "2.13.0", "transformers": "5.24.0"}
FIRST = Identity(
    name="m",
    asks=frozenset({"text"}),
    request_modes={},
    template_date="",
    fingerprint="a1",
    versions=HERE,
    node="node-1",
    node_id="1",
    pid=1,
    device="NVIDIA H100",
    dtype="bfloat16",
)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"fingerprint": "b2"}, "model fingerprint, a1 on node-1, b2 on node-7"),
        ({"dtype": "float32"}, "dtype, bfloat16 on node-1, float32 on node-7"),
        ({"name": "n"}, "model, m on node-1, n on node-7"),
        ({"device": "NVIDIA A100"}, "NVIDIA H100 on node-1, NVIDIA A100 on node-7"),
        (
            {"versions": {**HERE, "transformers": "5.1.0"}},
            "replica on node-7: transformers 5.1.0, here 5.24.0",
        ),
        (
            {"versions": {"python": "3.11.7", "torch": "2.13.0"}},
            "transformers 5.24.0 on node-1, not installed on node-7",
        ),
    ],
)
def test_replicas_that_differ_are_refused(changes, line):
    other = replace(FIRST, node="node-7", **changes)
    with pytest.raises(ConfigError) as raised:
        check_identities([FIRST, FIRST, other], HERE, allow_mixed=False)
    assert line in str(raised.value)


def test_kinds_of_gpu_may_be_mixed_if_the_user_allows_it():
    check_identities([FIRST, replace(FIRST, device="NVIDIA A100")], HERE, allow_mixed=True)
    with pytest.raises(ConfigError):
        check_identities([FIRST, replace(FIRST, fingerprint="b2")], HERE, allow_mixed=True)


def test_what_only_the_nodes_have_is_compared_among_them():
    check_identities([FIRST, FIRST], {"python": "3.11.7"}, allow_mixed=False)


def test_shares_of_cpus_are_whole():
    placed = plan_placement([PLAIN], {"CPU": 3.0}, 2, None)
    assert placed.cpus == math.floor(3 / 2)


@pytest.mark.parametrize(
    ("spec", "gpus", "expected"),
    [
        ("hf:a/b", None, ("hf:a/b", None)),
        ("hf:a/b", 0.5, ("hf:a/b", 0.5)),
        ("hf:a/b", 4.0, ("hf:a/b?devices=4", 4.0)),
        ("hf:a/b?dtype=fp16", 2.0, ("hf:a/b?dtype=fp16&devices=2", 2.0)),
        ("hf:a/b?devices=2", None, ("hf:a/b?devices=2", 2.0)),
        ("hf:a/b?devices=2", 2.0, ("hf:a/b?devices=2", 2.0)),
        ("hf:a/b?devices=1", 0.5, ("hf:a/b?devices=1", 0.5)),
    ],
)
def test_a_replica_distributes_its_model_over_its_gpus(spec, gpus, expected) -> None:
    assert spec_and_gpus(spec, gpus) == expected


def test_two_numbers_of_gpus_are_one_line() -> None:
    with pytest.raises(ConfigError, match=r"-replica 2: hf:a/b\?devices=4 uses 4; leave out one"):
        spec_and_gpus("hf:a/b?devices=4", 2)
