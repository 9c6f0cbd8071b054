"""Warm interpreters that fork: a process per program without the cost of starting Python.

They never see a program: it goes to the forked process directly, so that no candidate finds the
checks, or another candidate, in the memory that it was forked with.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from pytest_llmeval.sandbox.guest import checker
from pytest_llmeval.sandbox.guest import confinement
from pytest_llmeval.sandbox.guest.candidate import Candidate
from pytest_llmeval.sandbox.guest.channel import receive
from pytest_llmeval.sandbox.guest.channel import send

_PRELOADED = (
    *("bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime", "decimal"),
    *("enum", "fractions", "functools", "hashlib", "heapq", "inspect", "itertools", "json", "math"),
    *("operator", "queue", "random", "re", "statistics", "string", "sys", "textwrap", "threading"),
    *("time", "types", "typing", "unittest", "numpy"),
)
"""What candidates and checks import most, so that they need not load it again each time."""
_COMMAND_BYTES = 1_000_000

Serve = Callable[[dict[str, Any], dict[str, Any], list[int]], None]


class Zygote:
    """One warm interpreter, as the supervisor has it."""

    def __init__(self, serve: Serve, config: dict[str, Any]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._socket.close()
                for descriptor in config["close"]:
                    os.close(descriptor)
                _serve(theirs, serve, config)
            finally:
                os._exit(1)
        theirs.close()
        self.told()

    def begin(self, how: dict[str, Any], descriptors: list[int]) -> None:
        """Have a process forked that gets `descriptors`; `told` gives its id."""
        socket.send_fds(self._socket, [json.dumps({"fork": how}).encode()], descriptors)

    def end(self) -> None:
        """Kill the process that was forked last; `told` gives its wait status and CPU seconds."""
        self._socket.send(b'{"end": true}')

    def told(self) -> dict[str, Any]:
        data = self._socket.recv(_COMMAND_BYTES)
        if not data:
            raise RuntimeError("a warm interpreter is gone")
        told: dict[str, Any] = json.loads(data)
        if "error" in told:
            raise RuntimeError(told["error"])
        return told


def _serve(requests: socket.socket, serve: Serve, config: dict[str, Any]) -> None:
    try:
        if serve is serve_candidate:
            confinement.refuse_system_calls()
    except OSError as error:
        requests.send(json.dumps({"error": str(error)}).encode())
        return
    requests.send(b"{}")
    pid = 0
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, _COMMAND_BYTES, 4)
        if not data:
            return
        request = json.loads(data)
        if "end" in request:
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            ended = {"status": status, "cpu": usage.ru_utime + usage.ru_stime}
            requests.send(json.dumps(ended).encode())
            continue
        pid = os.fork()
        if pid == 0:
            requests.close()
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            serve(config, request["fork"], descriptors)
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(json.dumps({"pid": pid}).encode())


def preload() -> None:
    """Load what every fork then has; done once, before the warm interpreters are forked."""
    for name in _PRELOADED:
        _load(name)
    # What is there now is for good: no fork needs to look through it for garbage.
    gc.collect()
    gc.freeze()


def _load(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError:
        return  # numpy is not in every image.
    if name == "numpy":
        module.zeros(1).tolist()


def serve_candidate(config: dict[str, Any], how: dict[str, Any], descriptors: list[int]) -> None:
    (line,) = descriptors
    os.setsid()
    confinement.be_first_to_die()
    confinement.become(how["user"])
    os.chdir(how["home"])
    os.environ["HOME"] = os.environ["TMPDIR"] = how["home"]
    confinement.limit_process(config)
    Candidate(line).serve()


def serve_checker(config: dict[str, Any], how: dict[str, Any], descriptors: list[int]) -> None:
    supervisor, line = descriptors
    confinement.become(how["user"])
    confinement.limit_memory(config)
    program = json.loads(receive(supervisor, 64_000_000))
    send(supervisor, json.dumps(checker.check(line, program)).encode())
