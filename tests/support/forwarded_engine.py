"""A socket that leads to the Docker engine until it is closed: an engine that goes away."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path


class ForwardedEngine:
    """Forwards connections at `path` to the engine's own socket; `close` ends them all."""

    def __init__(self, path: Path, engine: str = "/var/run/docker.sock") -> None:
        self.path = path
        self._engine = engine
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(self._engine)
                self._open += [client, engine]
                for source, target in ((client, engine), (engine, client)):
                    threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
