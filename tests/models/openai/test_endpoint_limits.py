"""Limits: never exceeded within any minute, used nearly in full, shared by processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.core import ModelError
from pytest_llmeval.models.openai.limits import Lease
from pytest_llmeval.models.openai.limits import SharedState
from pytest_llmeval.models.openai.limits import allot
from pytest_llmeval.models.openai.limits import is_alive
from pytest_llmeval.models.openai.limits import reserve_request

MINUTE = 60.0


def paced(pauses: list[float], limit: float) -> list[float]:
    """The times at which requests are sent, each submitted after such a pause."""
    state: dict[str, Any] = {}
    now, sent = 1000.0, []
    for pause in pauses:
        now += pause
        now = reserve_request(state, now, 0, MINUTE / (limit * 0.97), 0.0)
        sent.append(now)
    return sent


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.01, 1.0, 30.0]), max_size=300))
def test_no_minute_has_more_requests_than_the_limit(pauses: list[float]) -> None:
    sent = paced(pauses, 20)
    for number in range(20, len(sent)):
        assert sent[number] - sent[number - 20] > MINUTE


def test_the_limit_is_used_nearly_in_full() -> None:
    sent = paced([0.0] * 600, 600)
    assert sent[-1] - sent[0] < MINUTE * 1.04


def test_tokens_take_their_time_too() -> None:
    state: dict[str, Any] = {}
    per_token = MINUTE / 1000
    assert reserve_request(state, 10.0, 500, 0.0, per_token) == 10.0
    assert reserve_request(state, 10.0, 10, 0.0, per_token) == pytest.approx(40.0)
    assert reserve_request(state, 10.0, 10, 0.0, per_token) == pytest.approx(40.6)


def test_a_time_before_the_boot_is_ignored() -> None:
    assert reserve_request({"requests": 1e9, "tokens": "?"}, 50.0, 0, 0.1, 0.0) == 50.0


def test_a_torn_or_foreign_file_counts_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "limits"
    for content in (b"", b'{"requests": 12', b"[1]", b"\xff\xfe"):
        path.write_bytes(content)
        assert SharedState(path).update(lambda state: dict(state)) == {}


def test_a_shorter_state_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    shared = SharedState(tmp_path / "limits")
    shared.update(lambda state: state.update(a="x" * 100))
    shared.update(lambda state: state.clear())
    assert (tmp_path / "limits").read_text() == "{}"


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot share limits through .*: No such file"):
        SharedState(tmp_path / "no" / "limits").update(lambda state: None)


def _count(path: Path) -> None:
    shared = SharedState(path)
    for _ in range(500):
        shared.update(lambda state: state.update(n=state.get("n", 0) + 1))


def test_no_change_of_several_processes_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_count, args=(tmp_path / "limits",)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert json.loads((tmp_path / "limits").read_text()) == {"n": 1500}


def test_no_change_of_several_threads_is_lost(tmp_path: Path) -> None:
    shared = SharedState(tmp_path / "limits")

    def count() -> None:
        for _ in range(500):
            shared.update(lambda state: state.update(n=state.get("n", 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads((tmp_path / "limits").read_text()) == {"n": 2000}


# --- requests at a time

ME, OTHER = str(os.getpid()), str(os.getppid())


def test_a_single_process_gets_the_whole_limit() -> None:
    state: dict[str, Any] = {}
    assert allot(state, ME, 5, 0, 8) == 5
    assert allot(state, ME, 20, 5, 8) == 8
    assert allot(state, ME, 0, 0, 8) == 0
    assert state["held"] == {}


def test_a_second_process_waits_until_the_first_has_given_back() -> None:
    state: dict[str, Any] = {}
    assert allot(state, OTHER, 20, 0, 8) == 8
    assert allot(state, ME, 20, 0, 8) == 0
    # The first still has 7 in flight: it gives back one, and may begin no more until 4 are left.
    assert allot(state, OTHER, 20, 7, 8) == 4
    assert state["held"][OTHER][0] == 7
    assert allot(state, ME, 20, 0, 8) == 1
    assert allot(state, OTHER, 20, 2, 8) == 4
    assert allot(state, ME, 20, 1, 8) == 4


def test_unused_shares_go_to_other_processes() -> None:
    state: dict[str, Any] = {}
    assert allot(state, OTHER, 2, 0, 8) == 2
    assert allot(state, ME, 20, 0, 8) == 6


def test_leases_of_a_dead_process_are_released() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert not is_alive(dead.pid)
    assert allot({"held": {str(dead.pid): [8, 20]}}, ME, 20, 0, 8) == 8


@given(
    st.integers(1, 10),
    st.lists(
        st.tuples(st.sampled_from([ME, OTHER, "1"]), st.integers(0, 12), st.integers(0, 12)),
        max_size=40,
    ),
)
def test_the_parts_never_exceed_the_limit(most: int, turns: list[tuple[str, int, int]]) -> None:
    state: dict[str, Any] = {}
    held = {ME: 0, OTHER: 0, "1": 0}
    for who, wanted, busy in turns:
        allowed = allot(state, who, wanted, min(busy, held[who]), most)
        held[who] = state["held"].get(who, (0, 0))[0]
        assert allowed <= held[who]
        assert sum(held.values()) <= most


def test_a_busy_process_starves_no_other() -> None:
    """The first fills up whatever it may; the second gets its part all the same."""
    state: dict[str, Any] = {}
    busy = allowed = allot(state, OTHER, 40, 0, 3)
    for _ in range(3):
        mine = allot(state, ME, 40, 0, 3)
        allowed = allot(state, OTHER, 40, busy, 3)
        busy = min(busy, allowed)  # what has come back is not replaced beyond what is allowed
    assert mine >= 1


def test_leases_are_shared_through_the_file(tmp_path: Path) -> None:
    lease = Lease(8, SharedState(tmp_path / "limits"))
    assert lease.renew(20, 0) == 8
    assert json.loads((tmp_path / "limits").read_text()) == {"held": {ME: [8, 20]}}
    assert lease.renew(0, 0) == 0
