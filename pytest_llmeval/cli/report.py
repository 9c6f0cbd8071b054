"""``llmeval report`` and ``history``: stored runs for people, and over time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_llmeval.cli.arguments import ANY_RUN
from pytest_llmeval.cli.arguments import add_allow_mismatch
from pytest_llmeval.cli.arguments import add_overlap
from pytest_llmeval.cli.arguments import add_run
from pytest_llmeval.cli.arguments import any_run
from pytest_llmeval.cli.arguments import print_size
from pytest_llmeval.cli.arguments import stored_overlap
from pytest_llmeval.core import RunError
from pytest_llmeval.reports.html.history import history_html
from pytest_llmeval.reports.registry import ReportInput
from pytest_llmeval.reports.registry import check_installed
from pytest_llmeval.reports.registry import write_report
from pytest_llmeval.reports.terminal.history import baseline_names
from pytest_llmeval.reports.terminal.history import history_parts
from pytest_llmeval.reports.terminal.history import make_series
from pytest_llmeval.reports.terminal.history import read_history
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.run import RUNS
from pytest_llmeval.runs.run import run_folder


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``llmeval``."""
    report = commands.add_parser("report", help="write a stored run for people to read")
    add_run(report)
    report.add_argument("--format", choices=("html", "markdown", "codequality"), default="html")
    report.add_argument("--baseline", metavar="RUN", help=f"compare with it: {ANY_RUN}")
    add_overlap(report)
    add_allow_mismatch(report)
    report.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="file to write (default: the one that --llm-report writes)",
    )
    report.set_defaults(command=_report)

    many = commands.add_parser("history", help="the runs of a folder over time")
    many.add_argument("folder", type=Path, nargs="?", default=RUNS, metavar="DIR")
    many.add_argument("--html", type=Path, metavar="FILE", help="also write an HTML chart")
    many.add_argument(
        "--baselines", type=Path, default=BASELINES, metavar="DIR", help="named baselines"
    )
    many.set_defaults(command=_history)


def _report(options: argparse.Namespace) -> int:
    check_installed(options.format, "llmeval report")
    folder = run_folder(options.run)
    overlap = None if options.overlap is None else stored_overlap(load_run(folder), options.overlap)
    material = ReportInput(folder, overlap=overlap)
    if options.baseline is not None:
        baseline = any_run(options.baseline)
        allowed = options.allow_mismatch
        comparison = compare(baseline, load_run(folder), allow_mismatch=allowed)
        material = ReportInput(folder, baseline, comparison.as_json(), overlap)
    print_size(write_report(options.format, material, options.out))
    return 0


def _history(options: argparse.Namespace) -> int:
    runs, problems = read_history(options.folder)
    series = make_series(runs, baseline_names(options.baselines))
    print_parts(history_parts(runs, series, problems))
    if options.html is not None:
        try:
            options.html.write_text(history_html(f"History of {options.folder}", series), "utf-8")
        except OSError as error:
            raise RunError(f"cannot write {options.html}: {error.strerror or error}") from None
        print_line(f"wrote {options.html}")
    return 0
