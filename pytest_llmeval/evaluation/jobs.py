"""Kinds of jobs that scorers submit, and the runners of each kind."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any
from typing import Protocol
from typing import get_args
from typing import get_type_hints

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.core.settings import Settings
from pytest_llmeval.sandbox import Execution
from pytest_llmeval.sandbox import Program
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox import open_sandbox
from pytest_llmeval.sandbox import sandbox_identity
from pytest_llmeval.sandbox.docker import connect
from pytest_llmeval.sandbox.swebench import Trial
from pytest_llmeval.sandbox.swebench import TrialLimits
from pytest_llmeval.sandbox.swebench import TrialResult
from pytest_llmeval.sandbox.swebench import open_trials
from pytest_llmeval.sandbox.swebench import trials_identity

_TRIALS_AT_ONCE = 2
"""Default number of concurrent containers, over all processes."""
_TIMEOUT = 1800.0
"""Default time limit of an instance's tests in seconds, that of the official harness."""

Job = Program | Trial
Result = Execution | TrialResult


class Runner(Protocol):
    """Runner of jobs of one kind."""

    def run(self, jobs: Iterable[Any]) -> Iterator[Any]:
        """Run jobs, taken one at a time as capacity allows; yield results as completed."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class JobKind:
    """How jobs of a kind are run."""

    #: Opens a runner, from the settings and the number of processes that open one each. Raises
    #: ConfigError, in one line, if this machine or the settings cannot provide it.
    open: Callable[[Settings, int], Runner]
    #: Returns everything about the runner that can change a verdict, without starting it. Raises
    #: ConfigError like ``open``.
    identity: Callable[[Settings], str]
    #: Runs reference solutions like the runner's ``run``, before any other job.
    run_references: Callable[[Any, Sequence[Any]], Iterable[Any]]
    #: Describes what jobs need and this machine does not have yet.
    lacking: Callable[[Settings, Sequence[Any]], str | None]
    #: True if a job takes minutes: its verdict is stored in the run folder, so that it is never run
    #: again, and an item whose reference solution fails is an error. Otherwise such an item is only
    #: warned about, and any solution of the data set may be run to check the machine.
    costly: bool


class TrialRunner:
    """Runner of trials with the limits of ``TrialLimits`` and ``timeout``, the seconds of their tests."""

    def __init__(self, limits: Mapping[str, Any]) -> None:
        own = {"workers": _TRIALS_AT_ONCE, **limits}
        self._timeout = own.pop("timeout", _TIMEOUT)
        self._trials = open_trials(**own)

    def run(self, jobs: Iterable[Trial]) -> Iterator[TrialResult]:
        """Run trials, taken one at a time as capacity allows; yield results as completed."""
        return self._trials.run(replace(trial, timeout=self._timeout) for trial in jobs)

    def lacking(self, jobs: Iterable[Trial]) -> str | None:
        """Return the number and size of the images of trials that have to be pulled; None if none has."""
        images = self._trials.images.missing(trial.image for trial in jobs)
        if not images.missing:
            return None
        size = "" if images.gigabytes is None else f", about {images.gigabytes:,.0f} GB"
        return f"{images.missing:,} of {images.images:,} images are not here{size}"

    def close(self) -> None:
        """End all trials."""
        self._trials.close()


def read_trial_limits(text: str, source: str) -> dict[str, Any]:
    """Parse ``LIMIT=VALUE,…`` into limits of ``TrialRunner``; image templates may be repeated.

    ``source``: name of the text in messages. Raises ConfigError, in one line, for an invalid text.
    """
    kinds = {**get_type_hints(TrialLimits), "timeout": float}
    limits: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if name not in kinds:
            raise ConfigError(f"{source} {text}: no limit {name!r}{suggestion(name, kinds)}")
        if not equals or not value:
            raise ConfigError(f"{source} {text}: {name}=VALUE was expected")
        if kinds[name] == tuple[str, ...]:
            limits[name] = (*limits.get(name, ()), value)
        elif name in limits:
            raise ConfigError(f"{source} {text}: {name} is given twice")
        else:
            limits[name] = _limit(kinds[name], value, f"{source} {text}: {name}")
    return limits


def _limit(kind: Any, value: str, where: str) -> Any:
    kinds = {kind, *get_args(kind)}
    if bool in kinds:
        if value not in ("yes", "no"):
            raise ConfigError(f"{where} is {value!r}, neither yes nor no")
        return value == "yes"
    if kinds & {int, float}:
        try:
            number = int(value) if int in kinds else float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            raise ConfigError(f"{where}: {value!r} is not a number above 0")
        return number
    return value


def _open_sandbox(settings: Settings, processes: int) -> Sandbox:
    share = max(1, (os.cpu_count() or 1) // processes)
    return open_sandbox(settings.sandbox, workers=share)


def _open_trials(settings: Settings, processes: int) -> TrialRunner:
    workers = settings.trials.get("workers", _TRIALS_AT_ONCE)
    return TrialRunner({**settings.trials, "workers": max(1, workers // processes)})


def _trials_identity(settings: Settings) -> str:
    if settings.sandbox != "docker":
        raise ConfigError(
            f"instances of SWE-bench are images of Docker: --llm-sandbox docker was expected, not"
            f" {settings.sandbox}"
        )
    connect().close()
    limits = dict(settings.trials)
    timeout = limits.pop("timeout", _TIMEOUT)
    return f"{trials_identity(**limits)}, timeout {timeout:g} s"


def _lacking_images(settings: Settings, trials: Sequence[Trial]) -> str | None:
    runner = TrialRunner(settings.trials)
    try:
        return runner.lacking(trials)
    finally:
        runner.close()


KINDS: Mapping[str, JobKind] = {
    "program": JobKind(
        _open_sandbox,
        lambda settings: sandbox_identity(settings.sandbox),
        lambda sandbox, programs: sandbox.calibrate(programs),
        lambda _settings, _programs: None,
        costly=False,
    ),
    "trial": JobKind(
        _open_trials,
        _trials_identity,
        lambda trials, references: trials.run(references),
        _lacking_images,
        costly=True,
    ),
}
"""Kinds by the name in a scorer's ``jobs``."""
