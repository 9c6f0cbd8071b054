"""Docker images for the sandbox: Python, numpy, and a label with the versions inside."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox.docker import CONTENTS
from pytest_llmeval.sandbox.docker import LABEL
from pytest_llmeval.sandbox.docker import find_image

BASE = "python:3.12-slim"
PACKAGES = ("numpy",)
"""What programs of the benchmarks import beyond the standard library."""
OLDEST_PYTHON = (3, 10)

_LIST = """\
import importlib.metadata, platform
found = sorted({f"{one.metadata['Name']} {one.version}" for one in importlib.metadata.distributions()})
print(", ".join([f"python {platform.python_version()}", *found]))
"""


def build_image(client: Any, tag: str, base: str = BASE, rootfs: Path | None = None) -> Any:
    """Make the image `tag` from a registry's `base`, or from a tar of a root file system."""
    import docker

    try:
        image = _from_registry(client, base) if rootfs is None else _imported(client, rootfs)
        contents = _contents(client, image)
        return _labelled(client, image, tag, contents)
    except docker.errors.BuildError as error:
        raise ConfigError(
            f"sandbox build from {base}: {error.msg}; where no registry is reachable, give a root "
            "file system with --rootfs TAR"
        ) from None
    except (docker.errors.DockerException, OSError) as error:
        reason = getattr(error, "explanation", None) or error
        raise ConfigError(f"sandbox build: {reason}") from None


def dockerfile(base: str) -> str:
    packages = " ".join(PACKAGES)
    return f"FROM {base}\nRUN python3 -m pip install --no-cache-dir {packages}\n"


def _from_registry(client: Any, base: str) -> Any:
    image, _ = client.images.build(fileobj=io.BytesIO(dockerfile(base).encode()), rm=True)
    return image


def _imported(client: Any, rootfs: Path) -> Any:
    if not rootfs.is_file():
        raise ConfigError(f"sandbox build: no file {rootfs}")
    loose = f"{LABEL}.imported"
    client.api.import_image(src=str(rootfs), repository=loose)
    return find_image(client, loose)


def _contents(client: Any, image: Any) -> str:
    import docker

    try:
        printed = client.containers.run(
            image.id,
            entrypoint=["python3", "-s", "-B", "-c", _LIST],
            command=[],
            network_mode="none",
            read_only=True,
            remove=True,
            labels={LABEL: "1"},
        )
    except (docker.errors.ContainerError, docker.errors.APIError) as error:
        raise ConfigError(f"sandbox build: python3 does not run in the image: {error}") from None
    contents: str = printed.decode().strip()
    version = tuple(int(part) for part in contents.split(",")[0].split()[1].split(".")[:2])
    if version < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise ConfigError(f"sandbox build: {contents.split(',')[0]} is older than {oldest}")
    return contents


def _labelled(client: Any, image: Any, tag: str, contents: str) -> Any:
    import docker

    container = client.containers.create(image.id, command=["python3"])
    try:
        repository, _, version = tag.partition(":")
        changes = f'LABEL {CONTENTS}="{contents}"'
        labelled = container.commit(repository, version or "latest", changes=changes)
    finally:
        container.remove(force=True)
    with contextlib.suppress(docker.errors.DockerException):
        # The image stays as the layer below; only its passing name goes.
        client.images.remove(f"{LABEL}.imported:latest", noprune=True)
    return labelled
