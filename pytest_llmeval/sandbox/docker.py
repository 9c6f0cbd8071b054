"""Cells that are Docker containers: no network, read-only, nearly no capabilities, bounded."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.sandbox.bundle import COMMAND
from pytest_llmeval.sandbox.bundle import ENVIRONMENT
from pytest_llmeval.sandbox.cell import Cell
from pytest_llmeval.sandbox.cell import LaunchError
from pytest_llmeval.sandbox.types import Limits

LABEL = "pytest-llmeval.sandbox"
OWNER = "pytest-llmeval.owner"
CONTENTS = "pytest-llmeval.contents"
"""Label of an image: its Python and packages, which `llmeval sandbox build` found in it."""

_CAPABILITIES = ("SETUID", "SETGID", "KILL")
"""What the supervisor needs to give candidates an identity of their own, and to end them."""
_NANO_CPUS = 1_500_000_000
"""One CPU and a half: a cell's processes work one after the other, but do overlap."""
_START_SECONDS = 60.0
_OTHERWISE = ", or use another kind of sandbox (bubblewrap)"
_FRAME = 8
_STDERR = 2
_USERS = (10_000, 60_000, 100)
"""Candidates' user ids: from, to, and how many a cell has. Within the 65,536 of a remapped root."""


class DockerCells:
    """Starts cells from one image."""

    def __init__(self, limits: Limits) -> None:
        self._client = connect(_OTHERWISE)
        self._limits = limits
        self._image = find_image(self._client, limits.image)
        self._first_user = random.SystemRandom().randrange(*_USERS[:2], 10 * _USERS[2])
        check_runtime(self._client, limits.runtime)
        remove_unstarted(self._client)

    @property
    def identity(self) -> str:
        return identity_of(self._image, self._limits)

    def start(self, number: int) -> Cell:
        config = self._limits.for_guest(self._first_user + number * _USERS[2])
        stream = ContainerStream(self._client, self._container)
        return Cell(stream, config, _START_SECONDS)

    def close(self) -> None:
        self._client.close()

    def _container(self) -> Any:
        limits = self._limits
        return self._client.containers.create(
            self._image.id,
            entrypoint=["python3", *COMMAND],
            command=[],
            environment=ENVIRONMENT,
            user="0:0",
            working_dir="/",
            stdin_open=True,
            auto_remove=True,
            network_mode="none",
            ipc_mode="private",
            read_only=True,
            cap_drop=["ALL"],
            cap_add=list(_CAPABILITIES),
            security_opt=["no-new-privileges"],
            # Root makes the candidates' folders there and then closes it to them.
            tmpfs={
                "/tmp": f"size={limits.disk_mb}m,nr_inodes=16k,mode=1777,nosuid,nodev,noexec",
                "/dev/shm": "size=8m,nr_inodes=1k,mode=1777,nosuid,nodev,noexec",
            },
            mem_limit=f"{limits.cell_mb}m",
            memswap_limit=f"{limits.cell_mb}m",
            pids_limit=limits.processes + 64,
            nano_cpus=_NANO_CPUS,
            log_config={"type": "none"},
            labels={LABEL: "1", OWNER: owner()},
            runtime=limits.runtime,
        )


class ContainerStream:
    """The input and output of a container, which ends when this connection does."""

    def __init__(self, client: Any, create: Callable[[], Any]) -> None:
        docker = docker_package()
        try:
            self.container = create()
        except (docker.errors.DockerException, OSError) as error:
            raise LaunchError(reason(error)) from None
        try:
            attached = client.api.attach_socket(
                self.container.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            self._attached = attached
            self._socket: socket.socket = getattr(attached, "_sock", attached)
            self._output = FramedOutput(self._socket)
            self.container.start()
        except (docker.errors.DockerException, OSError) as error:
            with contextlib.suppress(docker.errors.DockerException, OSError):
                self.container.remove(force=True)
            raise LaunchError(reason(error)) from None

    def write(self, data: bytes) -> None:
        self._socket.settimeout(30)
        self._socket.sendall(data)

    def read(self, seconds: float) -> bytes:
        """Bytes of standard output, b"" at the end; `TimeoutError` where none come in `seconds`."""
        return self._output.read(seconds)

    def stop(self) -> str:
        docker = docker_package()
        with contextlib.suppress(docker.errors.DockerException, OSError):
            self.container.kill()
        with contextlib.suppress(docker.errors.DockerException, OSError):
            self.container.wait(condition="removed", timeout=20)
        with contextlib.suppress(OSError):
            while self.read(1.0):
                pass
        self._attached.close()
        self._socket.close()
        return self._output.complaint.decode(errors="replace")


class FramedOutput:
    """Standard output from a connection on which Docker frames it and standard error."""

    def __init__(self, connection: socket.socket) -> None:
        self.complaint = b""
        """The end of standard error."""
        self._socket = connection
        self._buffer = bytearray()
        self._left = 0
        self._complains = False

    def read(self, seconds: float) -> bytes:
        """Bytes of standard output, b"" at the end; `TimeoutError` where none come in `seconds`."""
        while True:
            self._socket.settimeout(max(seconds, 0.001))
            part = self._socket.recv(1 << 16)
            if not part:
                return b""
            self._buffer += part
            output = self._unframed()
            if output:
                return output

    def _unframed(self) -> bytes:
        output = bytearray()
        while self._buffer:
            if not self._left:
                if len(self._buffer) < _FRAME:
                    break
                self._complains = self._buffer[0] == _STDERR
                self._left = int.from_bytes(self._buffer[4:_FRAME], "big")
                del self._buffer[:_FRAME]
            part = self._buffer[: self._left]
            del self._buffer[: len(part)]
            self._left -= len(part)
            if self._complains:
                self.complaint = (self.complaint + part)[-4_000:]
            else:
                output += part
        return bytes(output)


def connect(otherwise: str = "") -> Any:
    """Return a client of the Docker engine; `ConfigError` where there is none.

    `otherwise`: advice to a user without an engine, in addition to starting it.
    """
    docker = docker_package()
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        raise ConfigError(
            f"sandbox docker: no Docker engine answers at {_address()} ({reason(error)}): start it"
            f"{otherwise}"
        ) from None
    return client


def check_runtime(client: Any, name: str | None) -> None:
    """Raise `ConfigError` for a runtime that the engine does not have."""
    runtimes = client.info().get("Runtimes", {})
    if name is not None and name not in runtimes:
        available = ", ".join(sorted(runtimes))
        raise ConfigError(f"sandbox runtime {name!r}: Docker knows {available}")


def find_image(client: Any, name: str) -> Any:
    docker = docker_package()
    try:
        return client.images.get(name)
    except docker.errors.ImageNotFound:
        raise ConfigError(
            f"sandbox docker: no image {name!r}: make it with `llmeval sandbox build`"
        ) from None
    except docker.errors.DockerException as error:
        raise ConfigError(f"sandbox docker: image {name!r}: {reason(error)}") from None


def identity_of(image: Any, limits: Limits) -> str:
    contents = image.labels.get(CONTENTS, "contents not recorded")
    runtime = f" {limits.runtime}" if limits.runtime else ""
    return f"docker{runtime} {image.id} {contents} {limits.identity}"


def owner(pid: int | None = None) -> str:
    """Name a process, this one by default, so that containers can be attributed to it."""
    pid = os.getpid() if pid is None else pid
    return f"{socket.gethostname()} {pid} {_started(pid)}"


def owner_lives(text: str) -> bool | None:
    """Whether the process in an owner label runs; None where it is another machine's."""
    host, _, process = text.partition(" ")
    pid, _, started = process.partition(" ")
    if not pid:
        return False  # No sandbox: a container that looked into an image.
    if host != socket.gethostname():
        return None
    return _started(int(pid)) == started


def _started(pid: int) -> str:
    """When `pid` began, in the kernel's ticks: ids are used again."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        # No such process, or no /proc as on a Mac.
        return "-" if _runs(pid) else "gone"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def docker_package() -> Any:
    try:
        import docker
    except ImportError:
        raise ConfigError(
            f"sandbox docker: docker is not installed: {install_hint('docker')}"
        ) from None
    return docker


def _address() -> str:
    return os.environ.get("DOCKER_HOST") or "/var/run/docker.sock"


def reason(error: BaseException) -> str:
    """Return the reason of an error in few words: the system's own where there is one."""
    cause: BaseException | None = error
    while cause is not None:
        # The package's messages quote what they were raised from, as Python writes it.
        for source in (cause, *cause.args):
            if isinstance(source, OSError) and source.strerror:
                return source.strerror
        cause = cause.__cause__ or cause.__context__
    return str(getattr(error, "explanation", None) or error).splitlines()[0][:200]


def remove_unstarted(client: Any) -> None:
    """Remove containers that a killed session had created and not yet started.

    A container that has started ends with its session, and is not touched.
    """
    docker = docker_package()
    filters = {"label": f"{LABEL}=1", "status": "created"}
    for container in client.containers.list(all=True, filters=filters, ignore_removed=True):
        owned_by = container.labels.get(OWNER, "")
        if owned_by and owner_lives(owned_by) is False:
            # Another session may remove it at the same time, or have started it.
            with contextlib.suppress(docker.errors.APIError):
                container.remove()


def remove_left(client: Any, everything: bool = False) -> tuple[int, int]:
    """Remove containers whose owner is gone; return how many went and how many are in use."""
    docker = docker_package()
    removed = kept = 0
    labelled = {"label": f"{LABEL}=1"}
    for container in client.containers.list(all=True, filters=labelled, ignore_removed=True):
        # What another machine owns cannot be known to be left.
        if not everything and owner_lives(container.labels.get(OWNER, "")) is not False:
            kept += 1
            continue
        with contextlib.suppress(docker.errors.NotFound):
            container.remove(force=True)
        removed += 1
    return removed, kept
