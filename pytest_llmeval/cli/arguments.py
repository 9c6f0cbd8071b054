"""Arguments and output that several commands of ``llmeval`` have."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from pytest_llmeval.overlap.report import DOCUMENT
from pytest_llmeval.overlap.report import OverlapReport
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.overlap import load_overlap
from pytest_llmeval.runs.run import LATEST
from pytest_llmeval.runs.run import RUNS
from pytest_llmeval.runs.run import run_folder

ANY_RUN = f"run folder, baseline file, name of a baseline in baselines/, or {LATEST}"
"""Help text of an argument that names a run to compare."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the run of a command; by default the newest."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default=LATEST,
        help=f"run folder (default: {LATEST}, the newest in {RUNS}/)",
    )


def add_allow_mismatch(parser: argparse.ArgumentParser) -> None:
    """Add the option to compare runs that are not comparable."""
    parser.add_argument(
        "--allow-mismatch",
        action="store_true",
        help="compare runs of different protocols or data, without a verdict",
    )


def add_overlap(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the result of ``llmeval overlap``."""
    parser.add_argument(
        "--overlap",
        type=Path,
        metavar="DIR",
        help="result of llmeval overlap (default: that of the run's session, if it had one)",
    )


def stored_overlap(run: Run, folder: Path | None) -> OverlapReport | None:
    """Return the overlap in a folder, or else that of the run's session; None without.

    Raises ConfigError if it is of other data.
    """
    place = run.path if folder is None and (run.path / DOCUMENT).is_file() else folder
    if place is None:
        return None
    return load_overlap(place, {result.benchmark: result.data_hash for result in run.planned})


def whole_number(text: str) -> int:
    """Parse a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def any_run(name: str) -> Run:
    """Load the run that an argument described by ``ANY_RUN`` names."""
    return load_baseline(str(run_folder(name)) if name == LATEST else name, BASELINES)


def print_size(file: Path) -> None:
    """Print the name and the size of a file that was written."""
    size = file.stat().st_size
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{math.ceil(size / 1000):,} kB"
    print_line(f"wrote {file} ({shown})")
