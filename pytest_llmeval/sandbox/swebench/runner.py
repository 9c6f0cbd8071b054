"""Trials of patches: each in a fresh container of its instance's image, several at once."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any
from typing import Self
from weakref import WeakSet

from pytest_llmeval.sandbox.cell import LaunchError
from pytest_llmeval.sandbox.docker import check_runtime
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.docker import docker_package
from pytest_llmeval.sandbox.docker import reason
from pytest_llmeval.sandbox.docker import remove_unstarted
from pytest_llmeval.sandbox.parallel import in_parallel
from pytest_llmeval.sandbox.swebench.commands import KILL_AFTER
from pytest_llmeval.sandbox.swebench.commands import KILLED
from pytest_llmeval.sandbox.swebench.commands import command
from pytest_llmeval.sandbox.swebench.commands import files
from pytest_llmeval.sandbox.swebench.commands import version
from pytest_llmeval.sandbox.swebench.container import Command
from pytest_llmeval.sandbox.swebench.container import TrialContainer
from pytest_llmeval.sandbox.swebench.container import TrialLimits
from pytest_llmeval.sandbox.swebench.images import Image
from pytest_llmeval.sandbox.swebench.images import ImageProvider
from pytest_llmeval.sandbox.swebench.images import Missing
from pytest_llmeval.sandbox.swebench.transcript import Transcript
from pytest_llmeval.sandbox.swebench.trial import Trial
from pytest_llmeval.sandbox.swebench.trial import TrialResult
from pytest_llmeval.sandbox.types import one_line
from pytest_llmeval.sandbox.types import read_limits

_HEAD, _TAIL = 8_000_000, 8_000_000
"""Bytes of a log that are kept at its two ends. The longest of 901 recorded logs has 0.9 MB."""
_PREPARATION = 900.0
"""Seconds for all that precedes the tests: patches are applied, some repositories are large."""
_SLACK = 60.0
"""Seconds beyond the tests' time, and the signals after it, until their end must be reported."""
_WATCH = 2.0
"""Seconds between two looks at what a trial has written."""
_TIMED_OUT = (124, 137)
"""Exit codes of `timeout`: ended by its first signal, and by its second."""
_NEARLY = 0.95
"""Share of the time after which these are the time limit's, and not the tests' own."""
_ATTEMPTS = 2
"""Times that a trial is begun before the machinery's failure is its result."""


def open_trials(**limits: Any) -> Trials:
    """Trials with `limits` (see `TrialLimits`); `ConfigError` in one line without an engine."""
    return Trials(read_limits(limits, TrialLimits))


def trials_identity(**limits: Any) -> str:
    """All that can move a verdict of such trials but the images, without starting any."""
    return _identity(read_limits(limits, TrialLimits))


class Trials:
    """Runs trials of patches that are not trusted. A context manager, as `Sandbox` is."""

    def __init__(self, limits: TrialLimits) -> None:
        self._client = connect()
        check_runtime(self._client, limits.runtime)
        remove_unstarted(self._client)
        self._limits = limits
        self.identity = _identity(limits)
        """All that can move a verdict but the images, whose digests are in the results."""
        self.images = ImageProvider(
            self._client,
            limits.images,
            pull=limits.pull,
            free_gb=limits.free_gb,
            images_gb=limits.images_gb,
        )
        self._containers: WeakSet[_Containers] = WeakSet()

    def run(self, trials: Iterable[Trial]) -> Iterator[TrialResult]:
        """Run `trials`, taken as there is room; results as completed.

        While trials run, the images of those that follow are pulled: of twice as many as run.
        """
        containers = _Containers()
        self._containers.add(containers)
        obtained = self.images.ensure(trials, lambda trial: trial.image)
        workers = [partial(self._run, containers)] * self._limits.workers
        return in_parallel(obtained, workers, containers.close)

    def close(self) -> None:
        """End all containers; trials that run are given up, and others not begun."""
        self.images.close()
        for containers in list(self._containers):
            containers.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, containers: _Containers, obtained: tuple[Trial, Image | Missing]) -> TrialResult:
        trial, image = obtained
        if isinstance(image, Missing):
            return TrialResult(trial.id, "error", detail=one_line(image.reason))
        began = time.monotonic()
        try:
            result = self._attempted(containers, trial, image)
        finally:
            self.images.release(image)
        return replace(
            result,
            detail=one_line(result.detail),
            seconds=time.monotonic() - began,
            image_digest=image.digest,
        )

    def _attempted(self, containers: _Containers, trial: Trial, image: Image) -> TrialResult:
        try:
            given = files(trial)
        except ValueError as error:
            return TrialResult(trial.id, "error", detail=str(error))
        for _ in range(_ATTEMPTS):
            result = self._attempt(containers, trial, image, given)
            if containers.closed:
                return TrialResult(trial.id, "error", detail="the trials were closed")
            if result.status != "error":
                break
        return result

    def _attempt(
        self, containers: _Containers, trial: Trial, image: Image, given: dict[str, bytes]
    ) -> TrialResult:
        docker = docker_package()
        try:
            with containers.started(self._client, image.id, self._limits) as container:
                container.put(given)
                nonce = secrets.token_hex(16)
                running = container.start(command(trial, nonce))
                try:
                    return _observed(trial, container, running, nonce, self._limits.disk_mb)
                finally:
                    running.close()
        except LaunchError as error:
            return TrialResult(trial.id, "error", detail=_why_none_starts(str(error)))
        except (docker.errors.DockerException, OSError) as error:
            return TrialResult(trial.id, "error", detail=f"Docker: {reason(error)}")


def _why_none_starts(reason: str) -> str:
    """Why no container starts; the runtime's words for a program that is missing vary."""
    if "bash" in reason and "executable file" in reason:
        return "the image has no bash"
    return f"no container starts: {reason}"


class _Containers:
    """The containers of a run, which can be ended all at once."""

    def __init__(self) -> None:
        self.closed = False
        self._running: set[TrialContainer] = set()
        self._lock = threading.Lock()

    @contextmanager
    def started(self, client: Any, image: str, limits: TrialLimits) -> Iterator[TrialContainer]:
        """Return a container that is removed afterwards; `LaunchError` where none starts."""
        if self.closed:
            raise LaunchError("the trials were closed")
        container = TrialContainer(client, image, limits)
        try:
            with self._lock:
                self._running.add(container)
            if self.closed:  # Meanwhile.
                raise LaunchError("the trials were closed")
            yield container
        finally:
            container.kill()
            with self._lock:
                self._running.discard(container)

    def close(self) -> None:
        """End all that run; others do not start."""
        self.closed = True
        with self._lock:
            running = list(self._running)
        for container in running:
            container.kill()


def _observed(
    trial: Trial, container: TrialContainer, running: Command, nonce: str, disk_mb: int
) -> TrialResult:
    """Read the output of a trial to its end, and judge how it ended."""
    transcript = Transcript(nonce, _HEAD, _TAIL)
    started: float | None = None
    deadline = time.monotonic() + _PREPARATION
    watch = time.monotonic() + _WATCH
    while not transcript.ended:
        try:
            part = running.read(min(_WATCH, deadline - time.monotonic()))
        except TimeoutError:
            pass
        else:
            if not part:
                break
            transcript.add(part)
        now = time.monotonic()
        if started is None and transcript.started:
            started = now
            deadline = now + _longest(trial)
        if now >= deadline:
            break
        if now >= watch:
            if container.written_mb() > disk_mb:
                detail = f"the tests wrote more than {disk_mb} MB"
                return TrialResult(trial.id, "finished", transcript.log, KILLED, detail)
            watch = time.monotonic() + _WATCH
    transcript.close()
    elapsed = time.monotonic() - (deadline - _PREPARATION if started is None else started)
    return _judged(trial, container, running, transcript, elapsed)


def _judged(
    trial: Trial,
    container: TrialContainer,
    running: Command,
    transcript: Transcript,
    seconds: float,
) -> TrialResult:
    """How a trial ended, `seconds` after its tests began."""
    failure = transcript.failure()
    if failure is not None:
        part, why = failure
        return TrialResult(trial.id, "patch_failed" if part == "patch" else "error", detail=why)
    if not transcript.ended and seconds < _longest(trial) and not container.lives():
        detail = "the container was ended from outside"
        return TrialResult(trial.id, "error", transcript.log, detail=detail)
    if not transcript.started:
        detail = f"the trial does not start: exit code {running.exit_code()}"
        return TrialResult(trial.id, "error", detail=f"{detail} {transcript.preface}")
    limit = f"the tests took longer than {trial.timeout:g} s"
    if seconds >= _longest(trial):
        return TrialResult(trial.id, "timeout", transcript.log, detail=limit)
    code = running.exit_code()
    if code is None or not transcript.ended:
        # Whatever is in the log, the tests did not come to an end that the engine confirms.
        detail = "the tests ended what runs them"
        return TrialResult(trial.id, "finished", transcript.log, code or KILLED, detail)
    if code in _TIMED_OUT and seconds >= _NEARLY * trial.timeout:
        return TrialResult(trial.id, "timeout", transcript.log, code, limit)
    notes = [transcript.remark] if transcript.remark else []
    if transcript.dropped:
        notes.append(f"{transcript.dropped} bytes of the log left out")
    return TrialResult(trial.id, "finished", transcript.log, code, "; ".join(notes))


def _longest(trial: Trial) -> float:
    """Seconds after the start of the tests by which the end must be reported."""
    return trial.timeout + KILL_AFTER + _SLACK


def _identity(limits: TrialLimits) -> str:
    return f"{limits.identity}, guard {version()}"
