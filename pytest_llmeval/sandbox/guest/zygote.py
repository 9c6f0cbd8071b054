"""Warm interpreters that fork: a process per program without the cost of starting Python.

They never receive a program: it is sent to the forked process directly, so that no candidate
finds the checks, or another candidate, in its inherited memory.
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
from pytest_llmeval.sandbox.guest.candidate import CandidateServer
from pytest_llmeval.sandbox.guest.channel import receive
from pytest_llmeval.sandbox.guest.channel import send

_PRELOADED = (
    *("bisect", "calendar", "cmath", "collections", "copy", "dataclasses", "datetime", "decimal"),
    *("enum", "fractions", "functools", "hashlib", "heapq", "inspect", "itertools", "json", "math"),
    *("operator", "queue", "random", "re", "statistics", "string", "sys", "textwrap", "threading"),
    *("time", "types", "typing", "unittest", "numpy"),
)
"""Modules that candidates and checks often import, loaded once before forking."""
_COMMAND_BYTES = 1_000_000

Serve = Callable[[dict[str, Any], dict[str, Any], list[int]], None]


class Zygote:
    """The supervisor's end of a warm interpreter."""

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
        self.reply()

    def begin(self, how: dict[str, Any], descriptors: list[int]) -> None:
        """Fork a process that gets `descriptors`; the reply has its id."""
        socket.send_fds(self._socket, [json.dumps({"fork": how}).encode()], descriptors)

    def end(self) -> None:
        """Kill the process that was forked last; the reply has its wait status and CPU seconds."""
        self._socket.send(b'{"end": true}')

    def reply(self) -> dict[str, Any]:
        data = self._socket.recv(_COMMAND_BYTES)
        if not data:
            raise RuntimeError("a warm interpreter is gone")
        reply: dict[str, Any] = json.loads(data)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply


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
    """Load the common modules once, before the warm interpreters are forked."""
    for name in _PRELOADED:
        _load(name)
    # These objects live as long as the process: no fork needs to scan them for garbage.
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
    CandidateServer(line).serve()


def serve_checker(config: dict[str, Any], how: dict[str, Any], descriptors: list[int]) -> None:
    supervisor, line = descriptors
    confinement.become(how["user"])
    confinement.limit_memory(config)
    program = json.loads(receive(supervisor, 64_000_000))
    send(supervisor, json.dumps(checker.check(line, program)).encode())
