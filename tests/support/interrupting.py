"""pytest in another process, and waiting for a moment to interrupt it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

QUICK = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")


def start(project: Any, *arguments: str) -> subprocess.Popen[bytes]:
    """pytest in the project's folder, in a session of its own; its output is in ``killed.txt``."""
    command = [sys.executable, "-m", "pytest", *QUICK, *arguments]
    with open(project.path / "killed.txt", "wb") as output:
        return subprocess.Popen(
            command,
            cwd=project.path,
            stdout=output,
            stderr=output,
            start_new_session=True,
            # A shell's background job, as CI may be one, has Ctrl-C ignored, and so its children.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )


def wait_until(project: Any, done: Callable[[], bool]) -> None:
    """Wait until something is so in a session that was started; fail with its output if not."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if done():
            return
        time.sleep(0.01)
    raise AssertionError((project.path / "killed.txt").read_text())


def wait_for_records(project: Any, number: int) -> None:
    """Wait until the session has written that many records."""
    wait_until(project, lambda: written(project) >= number)


def written(project: Any) -> int:
    """How many whole lines all sessions have written to ``records.jsonl``."""
    files = (project.path / "runs").glob("*/records.jsonl")
    return sum(file.read_bytes().count(b"\n") for file in files)


def kill(process) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
