"""``llmeval export`` and ``llmeval history``: a stored run as data, and runs over time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_llmeval.core import RunError
from pytest_llmeval.reports.export import export
from pytest_llmeval.reports.formats import require
from pytest_llmeval.reports.history import baseline_names
from pytest_llmeval.reports.history import history_parts
from pytest_llmeval.reports.history import make_series
from pytest_llmeval.reports.history import read_history
from pytest_llmeval.reports.history_html import history_html
from pytest_llmeval.reports.terminal import print_parts


def add_commands(commands: Any) -> None:
    """Add ``export`` to the subparsers of ``llmeval``."""
    one = commands.add_parser("export", help="write a stored run as json or parquet")
    one.add_argument("run", type=Path, metavar="RUN")
    one.add_argument("--format", choices=("json", "parquet"), default="json")
    one.add_argument(
        "--out", type=Path, metavar="FILE", help="by default export.json or .parquet in the run"
    )
    one.set_defaults(command=_export)

    many = commands.add_parser("history", help="the runs of a folder over time")
    many.add_argument("folder", type=Path, metavar="DIR")
    many.add_argument("--html", type=Path, metavar="FILE", help="draw them into a file too")
    many.add_argument(
        "--baselines", type=Path, default=Path("baselines"), metavar="DIR", help="named baselines"
    )
    many.set_defaults(command=_history)


def _export(options: argparse.Namespace) -> int:
    require(options.format, "llmeval export")
    file = export(options.run, options.format, options.out)
    print(f"wrote {file} ({file.stat().st_size / 1000:,.0f} kB)")
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
        print(f"wrote {options.html}")
    return 0
