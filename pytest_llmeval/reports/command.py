"""``llmeval report``: the HTML report of a stored run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_llmeval.core import ConfigError
from pytest_llmeval.reports.comparison import comparison_json
from pytest_llmeval.reports.formats import require
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import load_run

_BASELINES = Path("baselines")


def add_commands(commands: Any) -> None:
    """Add ``report`` to the subparsers of ``llmeval``."""
    report = commands.add_parser("report", help="write the HTML report of a stored run")
    report.add_argument("run", type=Path, metavar="RUN")
    report.add_argument(
        "--baseline",
        metavar="RUN",
        help="compare with it: run folder, baseline file, or name of a baseline in baselines/",
    )
    report.add_argument(
        "--allow-mismatch", action="store_true", help="compare even what differs; without a verdict"
    )
    report.add_argument("--out", type=Path, metavar="FILE", help="instead of RUN/report.html")
    report.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    require("html", "llmeval report")
    from pytest_llmeval.reports.html import write_report

    baseline, comparison = None, None
    if options.baseline is not None:
        baseline = load_baseline(options.baseline, _BASELINES)
        allowed = options.allow_mismatch
        found = compare(baseline, load_run(options.run), allow_mismatch=allowed)
        comparison = comparison_json(found)
    try:
        file = write_report(options.run, baseline, comparison=comparison, out=options.out)
    except OSError as error:
        raise ConfigError(f"--out {options.out}: {error.strerror or error}") from None
    print(f"wrote {file} ({file.stat().st_size / 1e6:.1f} MB)")
    return 0
