"""Kinds of jobs that scorers have run: what runs them, and what their verdicts are worth."""

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
"""Containers of all processes together, where the user names no number."""
_TIMEOUT = 1800.0
"""Seconds of an instance's tests, as the official harness has them."""

Job = Program | Trial
Result = Execution | TrialResult


class Runner(Protocol):
    """Runs jobs of one kind."""

    def run(self, jobs: Iterable[Any]) -> Iterator[Any]:
        """Run jobs, taken one by one as there is room; results as completed."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class JobKind:
    """How jobs of a kind are run.

    ``open`` is given the settings and the number of processes that open a runner each; ``identity``
    is all of the runner that can move a verdict, without starting it. Both raise ConfigError in one
    line where this machine or the settings have none. ``run_references``: as the runner's ``run``,
    before all others. ``lacking``: what of the jobs' needs is not on this machine yet, in words.

    ``costly``: a job takes minutes. Its verdict is kept in the run folder, so that it is never run
    again, and an item whose own solution fails is an error. Otherwise it is only warned of, and any
    solution of the data set may be run to see how the machine does.
    """

    open: Callable[[Settings, int], Runner]
    identity: Callable[[Settings], str]
    run_references: Callable[[Any, Sequence[Any]], Iterable[Any]]
    lacking: Callable[[Settings, Sequence[Any]], str | None]
    costly: bool


class Trials:
    """Trials within limits: those of ``TrialLimits``, and ``timeout``, the seconds of their tests."""

    def __init__(self, limits: Mapping[str, Any]) -> None:
        own = {"workers": _TRIALS_AT_ONCE, **limits}
        self._timeout = own.pop("timeout", _TIMEOUT)
        self._trials = open_trials(**own)

    def run(self, jobs: Iterable[Trial]) -> Iterator[TrialResult]:
        """Run trials, taken one by one as there is room; results as completed."""
        return self._trials.run(replace(trial, timeout=self._timeout) for trial in jobs)

    def lacking(self, jobs: Iterable[Trial]) -> str | None:
        """How many images of the trials are to be pulled, and what they take."""
        found = self._trials.images.missing(trial.image for trial in jobs)
        if not found.missing:
            return None
        takes = "" if found.gigabytes is None else f", about {found.gigabytes:,.0f} GB"
        return f"{found.missing:,} of {found.images:,} images are not here{takes}"

    def close(self) -> None:
        """End all trials."""
        self._trials.close()


def read_trial_limits(text: str, source: str) -> dict[str, Any]:
    """``LIMIT=VALUE,…`` as limits of ``Trials``; several templates of images in their order.

    ``source``: what messages call the text. Raises ConfigError in one line for anything else.
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


def _open_trials(settings: Settings, processes: int) -> Trials:
    workers = settings.trials.get("workers", _TRIALS_AT_ONCE)
    return Trials({**settings.trials, "workers": max(1, workers // processes)})


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
    runner = Trials(settings.trials)
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
"""By the name that a scorer's ``jobs`` has: its kind."""
