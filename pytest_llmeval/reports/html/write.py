"""Writing the ``report.html`` of a run folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_llmeval.runs.run import Run

from .data import report_data
from .gather import gather
from .page import render_page

FILE = "report.html"


def write_report(
    folder: Path,
    baseline: Run | None = None,
    *,
    comparison: Mapping[str, Any] | None = None,
    out: Path | None = None,
) -> Path:
    """Write the report of a run folder to ``out``, in one step; into the folder by default.

    ``comparison``, as ``comparison_json`` gives it, is the one that the run's own session made
    unless another is given; ``baseline`` is the run it is with, whose answers are shown.
    Raises RunError for a damaged run, and OSError where the file cannot be written.
    """
    page = render_page(report_data(gather(folder, baseline, comparison))).encode("utf-8")
    file = folder / FILE if out is None else out
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_bytes(page)
    os.replace(temporary, file)
    return file
