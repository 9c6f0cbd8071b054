"""``llmeval import``: the log of another harness as a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_llmeval.gates import NO_BASELINE
from pytest_llmeval.interop.log import ImportOptions
from pytest_llmeval.interop.reading import FORMATS
from pytest_llmeval.interop.reading import read_log
from pytest_llmeval.interop.run_writer import write_run
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.reports.terminal.summary import summary_parts
from pytest_llmeval.reports.wording import failure_lines
from pytest_llmeval.reports.wording import run_notes
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.judging import judge_run


def add_commands(commands: Any) -> None:
    """Add the command to the subparsers of ``llmeval``."""
    parser = commands.add_parser(
        "import", help="make a run of another harness's log, for gates, baselines and reports"
    )
    parser.add_argument("log", type=Path, metavar="LOG", help=FORMATS)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="run folder to create"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="name of the benchmark (default: the log's own)"
    )
    parser.add_argument(
        "--subject", metavar="FIELD", help="field of the items' metadata that is their subject"
    )
    parser.add_argument(
        "--scorer",
        nargs="+",
        default=(),
        metavar="NAME",
        help="scorers to import (default: all with verdicts of 0 and 1)",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="name of the model, where the log has a path; where it has several, which to import",
    )
    parser.add_argument(
        "--selection-is-benchmark",
        action="store_true",
        help="of a log that was limited: its items are the whole benchmark",
    )
    parser.set_defaults(command=_import)


def _import(options: argparse.Namespace) -> int:
    facts = ImportOptions(
        name=options.name,
        subject=options.subject,
        scorers=tuple(options.scorer),
        model=options.model,
        selection_is_benchmark=options.selection_is_benchmark,
    )
    log = read_log(options.log, facts)
    folder = write_run(log, options.out, str(options.log))
    run = load_run(folder.path)
    judge_run(run, None, NO_BASELINE).write(folder)
    print_parts(
        summary_parts(
            run.results(), None, run_notes(run), run.path, failures=failure_lines(run.records)
        )
    )
    return 0
