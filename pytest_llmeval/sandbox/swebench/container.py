"""A container for one trial: files go in, one command runs, its output streams out."""

from __future__ import annotations

import contextlib
import io
import tarfile
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.sandbox.docker import LABEL
from pytest_llmeval.sandbox.docker import OWNER
from pytest_llmeval.sandbox.docker import ContainerStream
from pytest_llmeval.sandbox.docker import FramedOutput
from pytest_llmeval.sandbox.docker import docker_package
from pytest_llmeval.sandbox.docker import owner
from pytest_llmeval.sandbox.swebench.commands import FOLDER
from pytest_llmeval.sandbox.swebench.commands import KEEPER

_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "KILL")
"""What root needs to install and test as on a machine of its own; nothing that reaches out."""
_OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
"""Without a network, pip does not look for an index, and builds with what is installed.

pip reads 0 as no isolation here, and 1 as isolation."""
_NOTICED_SECONDS = 3.0
"""From the end of a container's processes to the engine's notice, at most."""
_EXIT_SECONDS = 10.0
"""From the last line of a command's output to the engine's report that it ended, at most."""


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """What a trial may use, and where its image comes from."""

    workers: int = 2
    """Trials at the same time, each in a container of its own."""
    memory_mb: int = 4096
    """Memory of all processes and of files in memory."""
    disk_mb: int = 4096
    """What a trial writes: each file, and together."""
    processes: int = 1024
    """Processes and threads."""
    network: bool = False
    """A trial reaches the network; the engine's default one."""
    runtime: str | None = None
    """Docker runtime, as runsc; the engine's default where it is None."""
    images: tuple[str, ...] = ("official",)
    """Where an instance's image is looked for, in this order: see `images.ImageProvider`."""
    pull: bool = True
    """Pull images that are not here."""
    free_gb: float = 20.0
    """Space that a pull must leave free on the engine's disk."""
    images_gb: float | None = None
    """Space that the images which this run pulled may take; no limit where it is None."""

    @property
    def identity(self) -> str:
        """All of the limits that can move a verdict."""
        network = "network" if self.network else "no network"
        runtime = f" {self.runtime}" if self.runtime else ""
        return (
            f"docker{runtime}, memory {self.memory_mb} MB, disk {self.disk_mb} MB, "
            f"processes {self.processes}, {network}, images {' '.join(self.images)}"
        )


class TrialContainer:
    """A container that ends with this process, whatever ends that."""

    def __init__(self, client: Any, image: str, limits: TrialLimits) -> None:
        """Start it; `LaunchError` where that fails."""
        self._client = client
        self._offline = not limits.network
        create = _creation(client, image, limits)
        self._keeper = ContainerStream(client, create)
        self.id: str = self._keeper.container.id

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write `files` into the trial's folder."""
        if not self._keeper.container.put_archive("/", _archive(files)):
            raise OSError("the engine does not take the trial's files")

    def start(self, command: Sequence[str]) -> Command:
        """Start `command` as root, with all of its output in one pipe."""
        environment = _OFFLINE if self._offline else {}
        created = self._client.api.exec_create(
            self.id, list(command), user="0:0", environment=environment
        )
        connection = self._client.api.exec_start(created["Id"], socket=True)
        return Command(self._client, created["Id"], connection)

    def lives(self) -> bool:
        """Whether it still runs, and goes on to: the engine notices an end only a little later."""
        docker = docker_package()
        try:
            self._client.api.wait(self.id, timeout=_NOTICED_SECONDS)
        except docker.errors.NotFound:
            return False
        except OSError:  # The time is over.
            return bool(self._client.api.inspect_container(self.id)["State"]["Running"])
        return False

    def written_mb(self) -> float:
        """Megabytes that differ from the image."""
        listed = self._client.api.containers(size=True, filters={"id": self.id})
        return listed[0].get("SizeRw", 0) / 1e6 if listed else 0.0

    def kill(self) -> None:
        """End the container at once, and wait until it is removed."""
        self._keeper.stop()


class Command:
    """A command that runs in a container."""

    def __init__(self, client: Any, number: str, connection: Any) -> None:
        self._client = client
        self._number = number
        self._connection = connection
        self._output = FramedOutput(getattr(connection, "_sock", connection))

    def read(self, seconds: float) -> bytes:
        """Output, b"" at its end; `TimeoutError` where none comes in `seconds`."""
        return self._output.read(seconds)

    def exit_code(self) -> int | None:
        """Return the exit code, from the engine; None where the command still runs."""
        deadline = time.monotonic() + _EXIT_SECONDS
        while time.monotonic() < deadline:
            state = self._client.api.exec_inspect(self._number)
            if not state["Running"] and state["ExitCode"] is not None:
                return int(state["ExitCode"])
            time.sleep(0.02)
        return None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.close()


def _creation(client: Any, image: str, limits: TrialLimits) -> Callable[[], Any]:
    docker = docker_package()
    file_size = limits.disk_mb * 1_000_000
    return lambda: client.containers.create(
        image,
        entrypoint=["bash", "-c", KEEPER],
        command=[],
        user="0:0",
        working_dir="/",
        stdin_open=True,
        auto_remove=True,
        # None: the engine's default network.
        network_mode=None if limits.network else "none",
        ipc_mode="private",
        cap_drop=["ALL"],
        cap_add=list(_CAPABILITIES),
        security_opt=["no-new-privileges"],
        mem_limit=f"{limits.memory_mb}m",
        memswap_limit=f"{limits.memory_mb}m",
        pids_limit=limits.processes,
        ulimits=[
            docker.types.Ulimit(name="fsize", soft=file_size, hard=file_size),
            docker.types.Ulimit(name="core", soft=0, hard=0),
        ],
        log_config={"type": "none"},
        labels={LABEL: "1", OWNER: owner()},
        runtime=limits.runtime,
    )


def _archive(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        folder = tarfile.TarInfo(FOLDER.strip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{folder.name}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()
