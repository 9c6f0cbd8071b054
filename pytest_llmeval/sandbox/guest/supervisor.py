"""The supervisor: runs programs from the host one at a time and reports the outcome of each."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import signal
import socket
import sys
import time
from typing import Any

from pytest_llmeval.sandbox.guest import cleanup
from pytest_llmeval.sandbox.guest import confinement
from pytest_llmeval.sandbox.guest.channel import ClosedError
from pytest_llmeval.sandbox.guest.channel import receive
from pytest_llmeval.sandbox.guest.channel import send
from pytest_llmeval.sandbox.guest.zygote import Zygote
from pytest_llmeval.sandbox.guest.zygote import preload
from pytest_llmeval.sandbox.guest.zygote import serve_candidate
from pytest_llmeval.sandbox.guest.zygote import serve_checker

PROGRAM_BYTES = 64_000_000
_GRACE = 0.25
"""Seconds that the checker has to report its verdict after the candidate has ended."""
_OWN = 0.6
"""Share of its limit that a program must have been running, or waiting for something else than a
CPU, for the limit to be final. Until then the limit is extended."""
_LEAST = 0.05
"""Smallest extension, as a share of the limit."""
_EXTENSION = 3.0
"""Largest extended limit, as a multiple of the limit; beyond it the host decides."""


_LOST = {"status": "lost", "detail": ""}
"""Verdict where the candidate has ended and the checker has not reported it."""


class _Pair:
    """A candidate and a checker process, forked and waiting for a program."""

    def __init__(
        self, home: cleanup.Home, candidate: int, checker: int, ours: socket.socket
    ) -> None:
        self.home = home
        self._processes = (candidate, checker)
        self.ours = ours
        """Connection to the checker: sends the program, receives the verdict."""
        self.end = _watch(candidate)

    def has_ended(self, seconds: float) -> bool:
        """Return whether the candidate ends within `seconds`; False where that is unknown."""
        return self.end is not None and bool(select.select([self.end], [], [], seconds)[0])

    def waited_for_cpu(self) -> float | None:
        """Return the seconds in which either was ready but had no CPU; None where unknown."""
        waited = [cleanup.waited_for_cpu(process) for process in self._processes]
        return None if None in waited else sum(seconds for seconds in waited if seconds)

    def close(self) -> None:
        self.ours.close()
        if self.end is not None:
            os.close(self.end)


class Supervisor:
    def __init__(self, config: dict[str, Any], host: int) -> None:
        """``host``: the descriptor that programs come from."""
        self._host = host
        users, self._checker_user = list[int](), 0
        if config["own_users"]:
            users = [config["first_user"] + number for number in range(config["users"])]
            self._checker_user = config["first_user"] + config["users"]
        self._homes = cleanup.make_homes(users, config["own_machine"])
        confinement.hide_memory()
        confinement.adopt_orphans()
        preload()
        self._candidates = Zygote(serve_candidate, config)
        self._checkers = Zygote(serve_checker, config)
        self._known = {self._candidates.pid, self._checkers.pid}
        self._turn = 0
        self._pair = self._fork_pair()

    def run(self, program: dict[str, Any]) -> dict[str, Any]:
        """Run one program and remove everything that it leaves."""
        if self._pair.has_ended(0):
            self._end()  # The kernel took it while it waited: no fault of this program's.
            self.prepare()
        pair, limit = self._pair, float(program["limit"])
        kills = cleanup.memory_kills()
        started = time.monotonic()
        with contextlib.suppress(ClosedError):
            send(pair.ours.fileno(), json.dumps(program).encode())
        verdict, starved = _wait_for_verdict(pair, started, limit, self._host)
        seconds = time.monotonic() - started
        alone = verdict["status"] == "lost" and pair.has_ended(_GRACE)
        ended = self._end()
        return {
            "id": program["id"],
            "seconds": seconds,
            "cpu": ended["cpu"],
            "starved": starved,
            **_final_verdict(verdict, ended["status"] if alone else None, kills, limit),
        }

    def prepare(self) -> None:
        """Fork the processes for the next program while the host reads the last report."""
        self._pair = self._fork_pair()

    def _fork_pair(self) -> _Pair:
        home = self._homes[self._turn % len(self._homes)]
        self._turn += 1
        ours, theirs = socket.socketpair()
        requesting, answering = socket.socketpair()
        with theirs, requesting, answering:
            self._candidates.begin({"user": home.user, "home": home.path}, [answering.fileno()])
            self._checkers.begin(
                {"user": self._checker_user}, [theirs.fileno(), requesting.fileno()]
            )
            candidate = self._candidates.reply()["pid"]
            checker = self._checkers.reply()["pid"]
        return _Pair(home, candidate, checker, ours)

    def _end(self) -> dict[str, Any]:
        """Kill both processes and remove what they left; return how the candidate ended."""
        self._pair.close()
        self._candidates.end()
        self._checkers.end()
        ended = self._candidates.reply()
        self._checkers.reply()
        cleanup.clear(self._pair.home, self._known)
        return ended


def _wait_for_verdict(
    pair: _Pair, started: float, limit: float, host: int
) -> tuple[dict[str, str], float | None]:
    """Return the checker's verdict or the reason for none, and the seconds without a CPU."""
    ours, deadline = pair.ours.fileno(), started + limit
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    poll.register(host, 0)  # only its end: its data is read later
    if pair.end is not None:
        poll.register(pair.end, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        ready = {descriptor for descriptor, _ in poll.poll(max(left, 0) * 1000 + 1)}
        if ours in ready:
            return _verdict(ours), 0.0
        if host in ready:
            return _LOST, None  # the host is gone, and the program ends with it
        if pair.end is not None and ready:
            # The checker may have its verdict yet; a grandchild may hold the socket open.
            poll.unregister(pair.end)
            return (_verdict(ours) if poll.poll(_GRACE * 1000) else _LOST), 0.0
        if time.monotonic() >= deadline:
            starved = pair.waited_for_cpu()
            missing = _OWN * limit - (deadline - started - (starved or 0.0))
            left = started + limit * _EXTENSION - deadline
            if missing <= 0 or left <= 0:
                return {"status": "timeout", "detail": ""}, starved
            deadline += min(max(missing, _LEAST * limit), left)


def _watch(pid: int) -> int | None:
    """Return a descriptor that becomes readable when `pid` ends; None where unsupported."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _verdict(descriptor: int) -> dict[str, str]:
    try:
        verdict = json.loads(receive(descriptor))
    except ClosedError:
        return {"status": "crashed", "detail": "the checks ended without a verdict"}
    return {"status": str(verdict["status"]), "detail": str(verdict["detail"])}


def _final_verdict(
    verdict: dict[str, str], status: int | None, kills: int, limit: float
) -> dict[str, str]:
    """Return the verdict for the host; `status`: wait status of a candidate that ended early."""
    if verdict["status"] == "timeout":
        return {"status": "timeout", "detail": f"no end within {limit:g} s"}
    if verdict["status"] != "lost":
        return verdict
    if verdict["detail"]:
        return {"status": "failed", "detail": verdict["detail"]}
    if status is None:
        detail = "closed its connection before the checks finished"
        return {"status": "failed", "detail": detail}
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL and cleanup.memory_kills() > kills:
            return {"status": "memory", "detail": "ended by the kernel: out of memory"}
        return {"status": "failed", "detail": f"ended by signal {_signal_name(number)}"}
    code = os.WEXITSTATUS(status)
    return {"status": "failed", "detail": f"exited before the checks finished (exit code {code})"}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def describe(preloaded: list[str]) -> dict[str, Any]:
    """Return the versions in this sandbox that a verdict may depend on."""
    return {"python": platform.python_version(), "packages": cleanup.packages(), "warm": preloaded}


def main(config: dict[str, Any]) -> None:
    """Serve the host over standard input and output until it closes them."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    config = {**config, "close": [source, sink]}
    supervisor = Supervisor(config, source)
    send(sink, json.dumps({"ready": describe(sorted(sys.modules))}).encode())
    while True:
        try:
            program = json.loads(receive(source, PROGRAM_BYTES))
        except ClosedError:
            return
        send(sink, json.dumps(supervisor.run(program)).encode())
        supervisor.prepare()
