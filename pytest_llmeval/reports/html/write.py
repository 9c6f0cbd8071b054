"""Writing the report of a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.runs.run import Run

from .data import report_data
from .gather import gather
from .page import render_page


def write_report(
    out: Path, folder: Path, baseline: Run | None, comparison: Mapping[str, Any] | None
) -> None:
    """Write the report of a run folder to ``out``.

    ``comparison``, as ``comparison_json`` gives it, is the one that the run's own session made
    unless another is given; ``baseline`` is the run it is with, whose answers are shown.
    Raises RunError for a damaged run, and OSError where the file cannot be written.
    """
    page = render_page(report_data(gather(folder, baseline, comparison)))
    out.write_text(page, encoding="utf-8")
