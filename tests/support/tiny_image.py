"""Images of next to nothing, made from a tar: what an instance's image may lack."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LIBRARY = re.compile(r"(/\S+) \(0x")


@contextmanager
def tiny_image(client: Any, *, bash: bool, tools: Iterable[str] = ()) -> Iterator[str]:
    """Reference of an image that has bash of this machine or none, and `tools` that do nothing."""
    tag = uuid.uuid4().hex
    name = "pytest-llmeval.tiny"
    client.api.import_image_from_data(_archive(bash, tools), repository=name, tag=tag)
    try:
        yield f"{name}:{tag}"
    finally:
        client.images.remove(f"{name}:{tag}", force=True)


def _archive(bash: bool, tools: Iterable[str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", dereference=True) as archive:
        archive.addfile(tarfile.TarInfo("empty"))
        if bash:
            _add_program(archive, "bash")
        for tool in tools:
            entry = tarfile.TarInfo(f"usr/bin/{tool}")
            entry.mode = 0o755
            archive.addfile(entry)
    return stream.getvalue()


def _add_program(archive: tarfile.TarFile, name: str) -> None:
    """A program of this machine as /usr/bin/NAME, with the libraries that it loads."""
    path = shutil.which(name)
    assert path is not None
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    for source, target in [
        (path, f"usr/bin/{name}"),
        *((lib, lib) for lib in _LIBRARY.findall(listed)),
    ]:
        archive.add(Path(source).resolve(), target.lstrip("/"))
