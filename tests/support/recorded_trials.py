"""Trials that are answered from records, where no container is needed.

``recorded.jsonl`` in the working folder has a record a trial: ``instance_id``, ``patch``, and what
the trial gives: ``status``, ``log``, ``exit_code``, ``detail``. A record without a patch is that of
any other patch. ``ran.jsonl`` gets a line for every trial that was run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.evaluation import jobs
from pytest_llmeval.sandbox.swebench import MissingImages
from pytest_llmeval.sandbox.swebench import Trial
from pytest_llmeval.sandbox.swebench import TrialResult

CONFTEST = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from support.recorded_trials import pytest_configure
"""
"""The ``conftest.py`` of a project whose trials are answered so, in xdist's workers too."""


class RecordedTrials:
    """As ``Trials``."""

    def __init__(self, **limits: Any) -> None:
        self.identity = identity(**limits)
        self._recorded: dict[tuple[str, str | None], dict[str, Any]] = {}
        for line in Path("recorded.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            self._recorded[record.pop("instance_id"), record.pop("patch", None)] = record

    def run(self, trials: Iterable[Trial]) -> Iterator[TrialResult]:
        for trial in trials:
            key = (trial.instance_id, trial.patch)
            recorded = self._recorded.get(key) or self._recorded[trial.instance_id, None]
            with Path("ran.jsonl").open("a", encoding="utf-8") as file:
                line = {
                    "instance": trial.instance_id,
                    "gold": trial.patch == trial.gold_patch,
                    "guarded": trial.guarded,
                }
                file.write(json.dumps(line) + "\n")
            if recorded.get("raises"):
                raise RuntimeError(recorded["raises"])
            time.sleep(recorded.get("sleeps", 0))
            yield TrialResult(
                trial.id,
                recorded.get("status", "finished"),
                recorded.get("log", ""),
                recorded.get("exit_code"),
                recorded.get("detail", ""),
                0.1,
            )

    def close(self) -> None:
        pass

    @property
    def images(self) -> RecordedTrials:
        return self

    def missing(self, images: Iterable[str]) -> MissingImages:
        """As of an image provider that has one image."""
        different = len(set(images))
        return MissingImages(different, different - 1, 2.5 * (different - 1))


class _Engine:
    def close(self) -> None:
        pass


def identity(**limits: Any) -> str:
    return f"recorded {sorted(limits.items())}"


def pytest_configure(config: pytest.Config) -> None:
    patch = pytest.MonkeyPatch()
    answer_trials(patch)
    config.add_cleanup(patch.undo)


def answer_trials(patch: pytest.MonkeyPatch) -> None:
    """Answer the trials of this process from records."""
    patch.setattr(jobs, "open_trials", RecordedTrials)
    patch.setattr(jobs, "trials_identity", identity)
    patch.setattr(jobs, "connect", _Engine)
