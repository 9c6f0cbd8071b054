"""A registry of images over HTTP on this machine, which can refuse and fail."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from typing import Any

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class ImageRegistry:
    """Serves small images; `answers` are statuses that the next requests of manifests get."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = []
        """Status and message; when they are used up, requests succeed."""
        self.requests: list[str] = []
        self.digests: dict[str, str] = {}
        """Digests of manifests by reference."""
        self._blobs: dict[str, bytes] = {}
        self._manifests: dict[str, bytes] = {}
        self.address = ""

    def add(self, repository: str, tag: str = "latest", architecture: str = "amd64") -> str:
        """Add an image of one file; return its reference."""
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as archive:
            data = f"{repository} {tag}".encode()
            entry = tarfile.TarInfo("contents")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        config = {
            "architecture": architecture,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer.getvalue())]},
        }
        descriptors = [
            self._descriptor(data, f"application/vnd.docker.{kind}")
            for data, kind in (
                (json.dumps(config).encode(), "container.image.v1+json"),
                (gzip.compress(layer.getvalue(), mtime=0), "image.rootfs.diff.tar.gzip"),
            )
        ]
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": descriptors[0],
            "layers": descriptors[1:],
        }
        data = json.dumps(manifest).encode()
        for name in (tag, _digest(data)):
            self._manifests[f"/v2/{repository}/manifests/{name}"] = data
        reference = f"{self.address}/{repository}:{tag}"
        self.digests[reference] = _digest(data)
        return reference

    def _descriptor(self, data: bytes, kind: str) -> dict[str, Any]:
        digest = _digest(data)
        self._blobs[digest] = data
        return {"mediaType": kind, "size": len(data), "digest": digest}

    def response(self, path: str) -> tuple[int, str, bytes]:
        """Status, type and body for a request of `path`."""
        if "/manifests/" in path:
            self.requests.append(path)
            if self.answers:
                status, message = self.answers.pop(0)
                code = "TOOMANYREQUESTS" if status == 429 else "UNKNOWN"
                body = {"errors": [{"code": code, "message": message}]}
                return status, "application/json", json.dumps(body).encode()
            if path in self._manifests:
                return 200, _MANIFEST, self._manifests[path]
            body = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
            return 404, "application/json", json.dumps(body).encode()
        blob = self._blobs.get(path.rpartition("/")[2])
        if blob is not None:
            return 200, "application/octet-stream", blob
        return (200 if path == "/v2/" else 404), "application/json", b"{}"


@contextmanager
def image_registry() -> Iterator[ImageRegistry]:
    registry = ImageRegistry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, kind, body = registry.response(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.address = f"127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
