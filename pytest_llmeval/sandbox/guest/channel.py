"""Messages over a stream, with requests in both directions."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

from pytest_llmeval.sandbox.guest.serialization import MESSAGE_BYTES
from pytest_llmeval.sandbox.guest.serialization import BadValueError
from pytest_llmeval.sandbox.guest.serialization import Resolve
from pytest_llmeval.sandbox.guest.serialization import dumps
from pytest_llmeval.sandbox.guest.serialization import loads

_HEAD = struct.Struct(">I")


class ClosedError(Exception):
    """The peer has closed the connection."""


def send(descriptor: int, data: bytes) -> None:
    """Write one message."""
    view = memoryview(_HEAD.pack(len(data)) + data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise ClosedError(str(error)) from None


def receive(descriptor: int, limit: int = MESSAGE_BYTES) -> bytes:
    """Read one message of at most `limit` bytes; raise `ClosedError` at the end of the stream."""
    (length,) = _HEAD.unpack(_exactly(descriptor, _HEAD.size))
    if length > limit:
        raise BadValueError(f"a message of {length:,} bytes, more than {limit:,}")
    return _exactly(descriptor, length)


def _exactly(descriptor: int, count: int) -> bytes:
    parts = []
    while count:
        try:
            part = os.read(descriptor, min(count, 1 << 20))
        except OSError as error:
            raise ClosedError(str(error)) from None
        if not part:
            raise ClosedError("end of stream")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class Connection:
    """One end of a connection on which each side may send requests, also while it serves one.

    A message is an array: ``["=", value]`` and ``["!", exception]`` are answers; everything else
    is a request, which is passed to `answer` and must be answered with one of the two.
    """

    def __init__(self, descriptor: int, resolve: Resolve) -> None:
        self._descriptor = descriptor
        self._resolve = resolve
        self.answer: Callable[[list[Any]], list[Any]] = _refuse_requests

    def request(self, message: list[Any]) -> list[Any]:
        """Send a packed request and return its answer; serve the requests that arrive meanwhile."""
        self._send(message)
        while True:
            message = self._receive()
            if message[0] in ("=", "!"):
                return message
            self._send(self.answer(message))

    def serve(self) -> None:
        """Serve requests until the peer closes the connection."""
        while True:
            self._send(self.answer(self._receive()))

    def _send(self, message: list[Any]) -> None:
        data = dumps(message)
        if len(data) > MESSAGE_BYTES:
            data = dumps(["!", [["ValueError"], f"a value of {len(data):,} bytes is too large"]])
        send(self._descriptor, data)

    def _receive(self) -> list[Any]:
        message = loads(receive(self._descriptor), self._resolve)
        if not isinstance(message, list) or not message:
            raise BadValueError("not a message")
        return message


def _refuse_requests(message: list[Any]) -> list[Any]:
    raise BadValueError(f"unexpected {message[0]!r}")
