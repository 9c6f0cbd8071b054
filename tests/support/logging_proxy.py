"""An HTTP proxy on loopback that logs the requests it forwards: plain ones, and tunnels for TLS."""

from __future__ import annotations

import base64
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

_SECONDS = 30


class Proxy:
    """Its address, and a line for every request: ``GET http://…`` or ``CONNECT host:port``.

    ``login``: ``user:password`` that requests must have, or empty. ``hosts``: host name → address
    to which its requests are forwarded; other names are addresses.
    """

    def __init__(self, login: str, hosts: dict[str, str]) -> None:
        self.url = ""
        self.log: list[str] = []
        self.authorization = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self.hosts = hosts


@contextmanager
def serve_proxy(login: str = "", hosts: dict[str, str] | None = None) -> Iterator[Proxy]:
    """A proxy in threads of this process."""
    proxy = Proxy(login, hosts or {})

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with self.request as client:
                _forward(proxy, client)

    class Listener(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Listener(("127.0.0.1", 0), Handler) as listener:
        proxy.url = f"http://127.0.0.1:{listener.server_address[1]}"
        thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown()
            thread.join()


def _forward(proxy: Proxy, client: socket.socket) -> None:
    client.settimeout(_SECONDS)
    received = b""
    while b"\r\n\r\n" not in received:
        part = client.recv(65536)
        if not part:
            return
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, version = first.split(" ")
    proxy.log.append(f"{method} {target}")
    headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines}
    if proxy.authorization and headers.get("proxy-authorization") != proxy.authorization:
        client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        return
    parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
    host = proxy.hosts.get(parts.hostname or "", parts.hostname)
    with socket.create_connection((host, parts.port or 80), _SECONDS) as server:
        if method == "CONNECT":
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            kept = [
                line for line in lines if not line.lower().startswith(("proxy-", "connection:"))
            ]
            request = [f"{method} {parts.path} {version}", *kept, "Connection: close"]
            server.sendall("\r\n".join(request).encode("latin-1") + b"\r\n\r\n" + body)
        upward = threading.Thread(target=_copy, args=(client, server), daemon=True)
        upward.start()
        _copy(server, client)


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
