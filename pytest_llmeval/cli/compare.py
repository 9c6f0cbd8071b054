"""``llmeval compare``: stored runs item by item."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pytest_llmeval.cli.arguments import ANY_RUN
from pytest_llmeval.cli.arguments import add_allow_mismatch
from pytest_llmeval.cli.arguments import any_run
from pytest_llmeval.cli.arguments import whole_number
from pytest_llmeval.core import ConfigError
from pytest_llmeval.reports.terminal.comparison import FLIPS
from pytest_llmeval.reports.terminal.comparison import comparison_markdown
from pytest_llmeval.reports.terminal.comparison import comparison_parts
from pytest_llmeval.reports.terminal.leaderboard import leaderboard_json
from pytest_llmeval.reports.terminal.leaderboard import leaderboard_markdown
from pytest_llmeval.reports.terminal.leaderboard import leaderboard_parts
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import leaderboards
from pytest_llmeval.runs.run import LATEST
from pytest_llmeval.storage.folder import run_name


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``llmeval``."""
    both = commands.add_parser(
        "compare",
        help="compare stored runs item by item; more than two make a table per comparable group",
    )
    both.add_argument("baseline", metavar="BASELINE", help=ANY_RUN)
    both.add_argument(
        "candidates", metavar="RUN", nargs="*", help=f"{ANY_RUN} (default: the newest run)"
    )
    both.add_argument("--format", choices=("terminal", "json", "markdown"), default="terminal")
    both.add_argument(
        "--flips", type=whole_number, default=FLIPS, metavar="N", help="changed items to list"
    )
    add_allow_mismatch(both)
    both.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> int:
    names = [options.baseline, *(options.candidates or [LATEST])]
    runs = [any_run(name) for name in names]
    if not options.candidates and runs[0].path.resolve() == runs[1].path.resolve():
        raise ConfigError(f"{run_name(runs[0].path)} would be compared with itself")
    allowed, flips = options.allow_mismatch, options.flips
    if len(runs) > 2:
        tables = leaderboards(runs, allow_mismatch=allowed)
        parts, value = leaderboard_parts(tables), leaderboard_json(tables)
        markdown = leaderboard_markdown(tables)
    else:
        comparison = compare(*runs, allow_mismatch=allowed)
        parts, value = comparison_parts(comparison, flips), comparison.as_json()
        markdown = comparison_markdown(comparison, flips)
    if options.format == "json":
        print_line(_json(value))
    elif options.format == "markdown":
        print_line(markdown.removesuffix("\n"))
    else:
        print_parts(parts)
    return 0


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
