"""Arguments that several commands of ``llmeval`` have."""

from __future__ import annotations

import argparse

from pytest_llmeval.runs import Run
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.newest import LATEST
from pytest_llmeval.runs.newest import RUNS
from pytest_llmeval.runs.newest import run_folder

ANY_RUN = f"run folder, baseline file, name of a baseline in baselines/, or {LATEST}"
"""What an argument takes that names a run to compare."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the run that a command is about; without it, the newest."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default=LATEST,
        help=f"run folder (default: {LATEST}, the newest in {RUNS}/)",
    )


def add_allow_mismatch(parser: argparse.ArgumentParser) -> None:
    """Add what lets a command compare unlike runs."""
    parser.add_argument(
        "--allow-mismatch", action="store_true", help="compare even what differs; without a verdict"
    )


def whole_number(text: str) -> int:
    """Reads a whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def any_run(name: str) -> Run:
    """The run that a name of ``ANY_RUN`` means."""
    return load_baseline(str(run_folder(name)) if name == LATEST else name, BASELINES)
