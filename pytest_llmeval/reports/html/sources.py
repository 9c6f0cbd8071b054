"""Sources of the HTML report, read from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run
from pytest_llmeval.storage.prompts import StoredPrompt
from pytest_llmeval.storage.prompts import read_prompts


@dataclass(frozen=True)
class Sources:
    """Run, verdicts and prompts that a report shows."""

    run: Run
    judged: JudgedRun
    """The same run's documents; ``audit`` and ``extraction`` are not computed from records."""
    baseline: Run | None = None
    """The run compared with, for its answers; None if it is not available."""
    prompts: Mapping[tuple[str, str, str], StoredPrompt] = field(default_factory=dict)


def load_sources(
    folder: Path,
    baseline: Run | None = None,
    comparison: Mapping[str, Any] | None = None,
    overlap: OverlapReport | None = None,
) -> Sources:
    """Read the sources from a run folder.

    ``comparison``: value of ``RunComparison.as_json``; ``overlap``: of the run's benchmarks with a
    corpus; by default those of the run's session. Raises RunError for a damaged run.
    """
    judged = read_judged_run(folder, comparison, overlap)
    return Sources(load_run(folder), judged, baseline, read_prompts(folder))
