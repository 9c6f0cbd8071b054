"""What a report is made of, read from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_llmeval.runs.folder import RunFolder
from pytest_llmeval.runs.prompts import StoredPrompt
from pytest_llmeval.runs.prompts import read_prompts
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run


@dataclass(frozen=True)
class Sources:
    """What a report is made of.

    ``gates``: ``gates.json``. ``measured``: the entries of ``metrics.json``, for what is not
    computed from records (``audit``, ``extraction``). ``comparison``: as ``comparison_json`` gives
    it. ``baseline``: the run compared with, for its answers, where it is at hand.
    """

    run: Run
    gates: Mapping[str, Any] | None = None
    measured: Sequence[Mapping[str, Any]] = ()
    comparison: Mapping[str, Any] | None = None
    baseline: Run | None = None
    prompts: Mapping[tuple[str, str, str], StoredPrompt] = field(default_factory=dict)


def gather(
    folder: Path, baseline: Run | None = None, comparison: Mapping[str, Any] | None = None
) -> Sources:
    """All that a run folder has for its report. Raises RunError for what is damaged in it."""
    return Sources(
        run=load_run(folder),
        gates=_document(folder, "gates.json"),
        measured=(_document(folder, "metrics.json") or {}).get("results", ()),
        comparison=comparison or _document(folder, "comparison.json"),
        baseline=baseline,
        prompts=read_prompts(folder),
    )


def _document(folder: Path, name: str) -> Mapping[str, Any] | None:
    """A document of the folder; None where the run ended before it was written."""
    return RunFolder(folder).read(name) if (folder / name).is_file() else None
