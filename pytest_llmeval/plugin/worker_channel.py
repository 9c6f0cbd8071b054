"""Channel between xdist workers and their controller: a folder with the plan and the run's path.

xdist has no messages before the end of a session, and both sides need some earlier: the
controller needs the plan to schedule chunks and to check thresholds, the workers need the run
folder to write records.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_llmeval.core.plan import Plan


class WorkerChannel:
    """Shared folder of one session; it is created with the plan of the first worker."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def for_run(cls, testrunuid: str) -> WorkerChannel:
        """Return the channel of a session, by xdist's ``testrunuid``."""
        return cls(Path(tempfile.gettempdir()) / f"llmeval-{testrunuid}")

    @classmethod
    def current(cls, config: pytest.Config) -> WorkerChannel | None:
        """Return the channel of this process; None if it is not an xdist worker."""
        worker: dict[str, str] | None = getattr(config, "workerinput", None)
        return None if worker is None else cls.for_run(worker["testrunuid"])

    def publish_plan(self, plan: Plan) -> None:
        """Write the plan, unless another worker has: all workers have the same."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        if not self.has_plan:
            self._write("plan.json", plan.to_json())

    @property
    def has_plan(self) -> bool:
        """True if a worker has published a plan, so that there are marked tests."""
        return (self.path / "plan.json").exists()

    def read_plan(self) -> Plan | None:
        """Return the plan; None if there is none."""
        try:
            return Plan.from_json((self.path / "plan.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def publish_run_folder(self, folder: Path) -> None:
        """Write the path of the run folder, for the workers."""
        self._write("run", str(folder))

    def read_run_folder(self) -> Path:
        """Return the path of the run folder; raise FileNotFoundError if it is not published."""
        return Path((self.path / "run").read_text(encoding="utf-8"))

    def register_worker(self, worker: str) -> None:
        """Record that this process is a worker that writes to the run."""
        self._write(f"worker-{worker}", str(os.getpid()))

    def unregister_worker(self, worker: str) -> None:
        """Record that a worker has stopped writing to the run."""
        (self.path / f"worker-{worker}").unlink(missing_ok=True)

    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers that may write to the run."""
        pids = []
        for file in self.path.glob("worker-*"):
            with contextlib.suppress(FileNotFoundError):
                pids.append(int(file.read_text(encoding="utf-8")))
        return pids

    def end_workers(self, seconds: float) -> None:
        """Terminate the running workers of an interrupted session, before the run is judged.

        On SIGTERM they write their last records and remove their sandboxes, which no other process
        can. After ``seconds`` they are killed.
        """
        deadline = time.monotonic() + seconds
        signal_number = signal.SIGTERM
        while workers := self.worker_pids():
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
            if signal_number != signal.SIGTERM:
                return
            while self.worker_pids() and time.monotonic() < deadline:
                time.sleep(0.02)
            signal_number = signal.SIGKILL

    def limits_file(self, spec: str) -> Path:
        """Return the file through which workers share an endpoint's limits."""
        return self.path / f"limits-{hashlib.sha256(spec.encode()).hexdigest()[:16]}"

    @property
    def spending_file(self) -> Path:
        """File with the total cost of all workers."""
        return self.path / "spent"

    def record_assignment(self, worker: str, chunk: int) -> None:
        """Record that a worker is about to be sent the tests of a chunk."""
        with (self.path / f"chunks-{worker}").open("a", encoding="utf-8") as file:
            file.write(f"{chunk}\n")

    def assigned_chunks(self, worker: str) -> list[int]:
        """Return the chunks that a worker has been sent, in this order."""
        try:
            text = (self.path / f"chunks-{worker}").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [int(line) for line in text.split("\n")[:-1]]

    def publish_skips(self, skips: Mapping[str, str]) -> None:
        """Write the items of a sequential run that are not needed any more, with the reasons."""
        self._write("skips", json.dumps(skips))

    def read_skips(self) -> dict[str, str]:
        """Return the items that are not needed any more; none before the end of the first wave."""
        try:
            skips: dict[str, str] = json.loads((self.path / "skips").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return skips

    def record_crash(self, nodeid: str) -> None:
        """Record for all workers that one of them has crashed in a test."""
        self._write("crashed", "\n".join([*self.crashed_tests(), nodeid]))

    def crashed_tests(self) -> list[str]:
        """Return the node ids of the tests in which workers have crashed, one per crash."""
        try:
            return (self.path / "crashed").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def claim_task(self, task: str) -> bool:
        """Return True to the first worker that claims a task, which a single worker has to do."""
        try:
            (self.path / f"claimed-{task}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, text: str) -> None:
        # Several workers may write at the same time: each renames a complete file into place.
        temporary = self.path / f".{name}.{os.getpid()}"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, self.path / name)
