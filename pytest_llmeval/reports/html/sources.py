"""What a report is made of, read from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import read_judged
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.storage.prompts import StoredPrompt
from pytest_llmeval.storage.prompts import read_prompts


@dataclass(frozen=True)
class Sources:
    """What a report is made of.

    ``judged``: of the same run, with what is not computed from records (``audit``, ``extraction``).
    ``baseline``: the run compared with, for its answers, where it is at hand.
    """

    run: Run
    judged: JudgedRun
    baseline: Run | None = None
    prompts: Mapping[tuple[str, str, str], StoredPrompt] = field(default_factory=dict)


def gather(
    folder: Path, baseline: Run | None = None, comparison: Mapping[str, Any] | None = None
) -> Sources:
    """All that a run folder has for its report. Raises RunError for damage in it.

    ``comparison``, as ``RunComparison.as_json`` gives it, is the one that the run's own session made
    unless another is given.
    """
    return Sources(
        load_run(folder), read_judged(folder, comparison), baseline, read_prompts(folder)
    )
