"""The supervisor: takes programs from the host one at a time, and says what became of each."""

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
"""Seconds that the checker has to tell its verdict once the candidate is gone."""
_OWN = 0.6
"""Share of its limit that a program must have had, for the limit to be final: running, or waiting by
its own choice, and not for a CPU. Less, and the limit grows until it has."""
_LEAST = 0.05
"""Share of its limit by which it grows at least."""
_EXTENSION = 3.0
"""How many times its length a limit may grow to; the host decides what happens then."""


_LOST = {"status": "lost", "detail": ""}
"""The candidate is gone, and the checker did not say so."""


class _Pair:
    """A candidate and a checker process, forked and waiting for a program."""

    def __init__(
        self, home: cleanup.Home, candidate: int, checker: int, ours: socket.socket
    ) -> None:
        self.home = home
        self._processes = (candidate, checker)
        self.ours = ours
        """The way to the checker: the program there, the verdict back."""
        self.end = _watch(candidate)

    def has_ended(self, seconds: float) -> bool:
        """Whether the candidate ends by itself within `seconds`; False where one cannot know."""
        return self.end is not None and bool(select.select([self.end], [], [], seconds)[0])

    def waited_for_cpu(self) -> float | None:
        """Seconds in which one of the two was ready and had no CPU; None where one cannot know."""
        waited = [cleanup.waited_for_cpu(one) for one in self._processes]
        return None if None in waited else sum(one for one in waited if one)

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
            users = [config["first_user"] + one for one in range(config["users"])]
            self._checker_user = config["first_user"] + config["users"]
        self._homes = cleanup.make_homes(users, config["own_machine"])
        confinement.hide_memory()
        confinement.adopt_orphans()
        preload()
        self._candidates = Zygote(serve_candidate, config)
        self._checkers = Zygote(serve_checker, config)
        self._known = {self._candidates.pid, self._checkers.pid}
        self._turn = 0
        self._pair = self._forked()

    def run(self, program: dict[str, Any]) -> dict[str, Any]:
        """Run one program; nothing of it is left when this returns."""
        if self._pair.has_ended(0):
            self._end()  # The kernel took it while it waited: no fault of this program's.
            self.prepare()
        pair, limit = self._pair, float(program["limit"])
        kills = cleanup.memory_kills()
        started = time.monotonic()
        with contextlib.suppress(ClosedError):
            send(pair.ours.fileno(), json.dumps(program).encode())
        verdict, starved = _awaited(pair, started, limit, self._host)
        seconds = time.monotonic() - started
        alone = verdict["status"] == "lost" and pair.has_ended(_GRACE)
        ended = self._end()
        return {
            "id": program["id"],
            "seconds": seconds,
            "cpu": ended["cpu"],
            "starved": starved,
            **_judged(verdict, ended["status"] if alone else None, kills, limit),
        }

    def prepare(self) -> None:
        """Fork the processes for the next program, while the host still reads the last report."""
        self._pair = self._forked()

    def _forked(self) -> _Pair:
        home = self._homes[self._turn % len(self._homes)]
        self._turn += 1
        ours, theirs = socket.socketpair()
        asking, asked = socket.socketpair()
        with theirs, asking, asked:
            self._candidates.begin({"user": home.user, "home": home.path}, [asked.fileno()])
            self._checkers.begin({"user": self._checker_user}, [theirs.fileno(), asking.fileno()])
            candidate = self._candidates.told()["pid"]
            checker = self._checkers.told()["pid"]
        return _Pair(home, candidate, checker, ours)

    def _end(self) -> dict[str, Any]:
        """End the two processes and all they left; return how the candidate ended."""
        self._pair.close()
        self._candidates.end()
        self._checkers.end()
        ended = self._candidates.told()
        self._checkers.told()
        cleanup.clear(self._pair.home, self._known)
        return ended


def _awaited(
    pair: _Pair, started: float, limit: float, host: int
) -> tuple[dict[str, str], float | None]:
    """The checker's verdict, or why there is none; and the seconds the candidate had no CPU."""
    ours, deadline = pair.ours.fileno(), started + limit
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    poll.register(host, 0)  # its end alone: what it sends is read later
    if pair.end is not None:
        poll.register(pair.end, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        ready = {one for one, _ in poll.poll(max(left, 0) * 1000 + 1)}
        if ours in ready:
            return _verdict(ours), 0.0
        if host in ready:
            return _LOST, None  # it is gone, and the program ends with it
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
    """A descriptor that becomes readable when `pid` ends; None where the kernel has none."""
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


def _judged(
    verdict: dict[str, str], status: int | None, kills: int, limit: float
) -> dict[str, str]:
    """The verdict in words for the host; `status` is that of a candidate that ended by itself."""
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
    """What a verdict may depend on inside this sandbox."""
    return {"python": platform.python_version(), "packages": cleanup.packages(), "warm": preloaded}


def main(config: dict[str, Any]) -> None:
    """Serve the host over standard input and output until it is gone."""
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
