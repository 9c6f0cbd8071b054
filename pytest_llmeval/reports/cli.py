"""``llmeval report``, ``export`` and ``history``: a stored run told again, and runs over time."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from pytest_llmeval.core import RunError
from pytest_llmeval.reports.comparison import comparison_json
from pytest_llmeval.reports.formats import Material
from pytest_llmeval.reports.formats import require
from pytest_llmeval.reports.formats import write
from pytest_llmeval.reports.history import baseline_names
from pytest_llmeval.reports.history import history_parts
from pytest_llmeval.reports.history import make_series
from pytest_llmeval.reports.history import read_history
from pytest_llmeval.reports.history_html import history_html
from pytest_llmeval.reports.terminal import print_parts
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.baseline import BASELINES


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``llmeval``."""
    report = commands.add_parser("report", help="write a stored run for people to read")
    report.add_argument("run", type=Path, metavar="RUN")
    report.add_argument("--format", choices=("html", "markdown", "codequality"), default="html")
    report.add_argument(
        "--baseline",
        metavar="RUN",
        help="compare with it: run folder, baseline file, or name of a baseline in baselines/",
    )
    report.add_argument(
        "--allow-mismatch", action="store_true", help="compare even what differs; without a verdict"
    )
    _add_out(report)
    report.set_defaults(command=_report)

    one = commands.add_parser("export", help="write a stored run for other programs")
    one.add_argument("run", type=Path, metavar="RUN")
    one.add_argument("--format", choices=("json", "parquet"), default="json")
    _add_out(one)
    one.set_defaults(command=_export)

    many = commands.add_parser("history", help="the runs of a folder over time")
    many.add_argument("folder", type=Path, metavar="DIR")
    many.add_argument("--html", type=Path, metavar="FILE", help="draw them into a file too")
    many.add_argument(
        "--baselines", type=Path, default=BASELINES, metavar="DIR", help="named baselines"
    )
    many.set_defaults(command=_history)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="instead of the file that --llm-report leaves"
    )


def _report(options: argparse.Namespace) -> int:
    require(options.format, "llmeval report")
    material = Material(options.run)
    if options.baseline is not None:
        baseline = load_baseline(options.baseline, BASELINES)
        allowed = options.allow_mismatch
        found = compare(baseline, load_run(options.run), allow_mismatch=allowed)
        material = Material(options.run, baseline, comparison_json(found))
    _write(options, material)
    return 0


def _export(options: argparse.Namespace) -> int:
    require(options.format, "llmeval export")
    _write(options, Material(options.run))
    return 0


def _write(options: argparse.Namespace, material: Material) -> None:
    file = write(options.format, material, options.out)
    size = file.stat().st_size
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{math.ceil(size / 1000):,} kB"
    print(f"wrote {file} ({shown})")


def _history(options: argparse.Namespace) -> int:
    runs, problems = read_history(options.folder)
    series = make_series(runs, baseline_names(options.baselines))
    print_parts(history_parts(runs, series, problems))
    if options.html is not None:
        try:
            options.html.write_text(history_html(f"History of {options.folder}", series), "utf-8")
        except OSError as error:
            raise RunError(f"cannot write {options.html}: {error.strerror or error}") from None
        print(f"wrote {options.html}")
    return 0
