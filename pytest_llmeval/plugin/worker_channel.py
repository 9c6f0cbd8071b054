"""Where xdist workers and their controller meet: a folder with the plan and the run's path.

xdist offers no message before the end of a session, and both sides need one earlier: the
controller must know the plan to schedule chunks and to refuse bad thresholds, the workers
must know the run folder to write their records.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from pytest_llmeval.core.plan import Plan


class Exchange:
    """One session's folder. It exists only once a worker has left a plan in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def for_run(cls, testrunuid: str) -> Exchange:
        return cls(Path(tempfile.gettempdir()) / f"llmeval-{testrunuid}")

    @classmethod
    def here(cls, config: pytest.Config) -> Exchange | None:
        """The one of this process, if it is an xdist worker."""
        worker: dict[str, str] | None = getattr(config, "workerinput", None)
        return None if worker is None else cls.for_run(worker["testrunuid"])

    def leave_plan(self, plan: Plan) -> None:
        """Write the plan unless there is one: all workers make the same."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        if not self.has_plan:
            self._write("plan.json", plan.to_json())

    @property
    def has_plan(self) -> bool:
        """Whether a worker has left a plan: there is something to evaluate."""
        return (self.path / "plan.json").exists()

    def read_plan(self) -> Plan | None:
        try:
            return Plan.from_json((self.path / "plan.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def leave_run(self, folder: Path) -> None:
        self._write("run", str(folder))

    def read_run(self) -> Path:
        return Path((self.path / "run").read_text(encoding="utf-8"))

    def enter(self, worker: str) -> None:
        """Note that a worker of this process's id may write to the run."""
        self._write(f"worker-{worker}", str(os.getpid()))

    def leave(self, worker: str) -> None:
        """Note that a worker writes to the run no more."""
        (self.path / f"worker-{worker}").unlink(missing_ok=True)

    def working(self) -> list[int]:
        """The process ids of the workers that may write to the run."""
        found = []
        for file in self.path.glob("worker-*"):
            with contextlib.suppress(FileNotFoundError):
                found.append(int(file.read_text(encoding="utf-8")))
        return found

    def limits(self, spec: str) -> Path:
        """The file through which workers share an endpoint's limits."""
        return self.path / f"limits-{hashlib.sha256(spec.encode()).hexdigest()[:16]}"

    @property
    def spent(self) -> Path:
        """The file in which workers add up what they have spent."""
        return self.path / "spent"

    def assign(self, worker: str, chunk: int) -> None:
        """Note that a worker is about to be sent a chunk's tests."""
        with (self.path / f"chunks-{worker}").open("a", encoding="utf-8") as file:
            file.write(f"{chunk}\n")

    def assigned(self, worker: str) -> list[int]:
        """The chunks that a worker has been sent, in their order."""
        try:
            text = (self.path / f"chunks-{worker}").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [int(line) for line in text.split("\n")[:-1]]

    def note_crash(self, nodeid: str) -> None:
        """Tell the workers that one of them has died in a test."""
        self._write("crashed", "\n".join([*self.crashed(), nodeid]))

    def crashed(self) -> list[str]:
        """Node ids of the tests that workers have died in, one for every death."""
        try:
            return (self.path / "crashed").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def claim(self, task: str) -> bool:
        """Whether this worker is the first to ask for a task that one of them has to do."""
        try:
            (self.path / f"claimed-{task}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, text: str) -> None:
        # Several workers may write at once: each renames a whole file into place.
        temporary = self.path / f".{name}.{os.getpid()}"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, self.path / name)
