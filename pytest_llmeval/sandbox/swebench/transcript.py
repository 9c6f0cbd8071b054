"""The output of a trial as it streams in: bounded, and cut at its marks."""

from __future__ import annotations

from collections import deque

_LONGEST_REMARK = 2_000
"""Bytes after the end's nonce from which it is no remark of ours."""


class BoundedText:
    """The head and the tail of a stream of bytes; what is between them is dropped and counted."""

    def __init__(self, head: int, tail: int) -> None:
        self._head = bytearray()
        self._head_size = head
        self._tail: deque[bytes] = deque()
        self._tail_size = tail
        self._kept = 0
        self.dropped = 0
        """Bytes that are in neither."""

    def add(self, data: bytes) -> None:
        room = self._head_size - len(self._head)
        self._head += data[:room]
        rest = data[room:]
        if not rest:
            return
        self._tail.append(rest)
        self._kept += len(rest)
        while self._kept - len(self._tail[0]) >= self._tail_size:
            first = self._tail.popleft()
            self._kept -= len(first)
            self.dropped += len(first)

    def text(self) -> str:
        """Head and tail; where something was dropped between them, a line with its size."""
        gap = b"\n[%d bytes left out]\n" % self.dropped if self.dropped else b""
        return b"".join([bytes(self._head), gap, *self._tail]).decode(errors="replace")


class Transcript:
    """Splits a stream at the lines `NONCE start` and `NONCE end REMARK`.

    Before the start there are the machinery's own lines, `NONCE failed PART REASON`. The text
    between start and end is written by untrusted code, and of any size.
    """

    def __init__(self, nonce: str, head: int, tail: int) -> None:
        self._nonce = nonce
        self._start = f"{nonce} start\n".encode()
        self._end = f"\n{nonce} end ".encode()
        self._buffer = b""
        self._log = BoundedText(head, tail)
        self._remark: bytes | None = None
        self.started = False

    @property
    def ended(self) -> bool:
        """The line of the end has come, whole or too long to be one of ours."""
        remark = self._remark
        return remark is not None and (b"\n" in remark or len(remark) > _LONGEST_REMARK)

    @property
    def remark(self) -> str:
        line = (self._remark or b"").partition(b"\n")[0]
        return line[:_LONGEST_REMARK].decode(errors="replace").strip()

    @property
    def log(self) -> str:
        """The text between start and end, or what there is of it."""
        return self._log.text()

    @property
    def dropped(self) -> int:
        """Bytes of the log that were dropped."""
        return self._log.dropped

    @property
    def preface(self) -> str:
        """The text before the start, where there is no start."""
        return "" if self.started else self._buffer.decode(errors="replace")

    def failure(self) -> tuple[str, str] | None:
        """Return the part that failed before the start (patch, machine), and the reason."""
        for line in self.preface.splitlines():
            nonce, failed, rest = line.partition(" failed ")
            if failed and nonce == self._nonce:
                part, _, why = rest.partition(" ")
                return part, why
        return None

    def add(self, data: bytes) -> None:
        if self._remark is not None:
            if not self.ended:
                self._remark += data
            return
        self._buffer += data
        if not self.started:
            _, start, after = self._buffer.partition(self._start)
            if not start:
                return
            self.started = True
            self._buffer = after
        log, end, remark = self._buffer.partition(self._end)
        if end:
            self._log.add(log)
            self._remark, self._buffer = remark, b""
            return
        # The last bytes may be the beginning of the end.
        safe = max(0, len(self._buffer) - len(self._end) + 1)
        self._log.add(self._buffer[:safe])
        self._buffer = self._buffer[safe:]

    def close(self) -> None:
        """Take what is left as part of the log: the stream ended without its end."""
        if self.started and self._remark is None:
            self._log.add(self._buffer)
            self._buffer = b""
