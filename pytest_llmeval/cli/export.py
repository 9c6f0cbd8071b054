"""``llmeval export``: a stored run for other programs and services."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_llmeval.cli.arguments import add_run
from pytest_llmeval.cli.arguments import print_size
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.core.installation import install_hint
from pytest_llmeval.reports.registry import ReportInput
from pytest_llmeval.reports.registry import check_installed
from pytest_llmeval.reports.registry import write_report
from pytest_llmeval.reports.result_files import lm_eval_results
from pytest_llmeval.reports.result_files import model_card_results
from pytest_llmeval.reports.result_files import read_data_sets
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.reports.trackers import TRACKERS
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.run import run_folder

_REPORTS = ("json", "parquet")
_FILES = {"lm-eval": "lm_eval_results.json", "model-card": "eval_results.yaml"}
"""Format → name of its file in the run folder."""


def add_commands(commands: Any) -> None:
    """Add the command to the subparsers of ``llmeval``."""
    export = commands.add_parser("export", help="write a stored run for other programs")
    add_run(export)
    export.add_argument("--format", choices=(*_REPORTS, *_FILES, *TRACKERS), default="json")
    export.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="file to write (default: one in the run folder; mlflow and wandb write none)",
    )
    export.add_argument(
        "--dataset",
        action="append",
        default=[],
        metavar="BENCHMARK=ORG/NAME:TASK",
        help="of model-card: the data set of a benchmark on the hub, and its task there; repeatable",
    )
    export.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> int:
    if options.dataset and options.format != "model-card":
        raise ConfigError("--dataset belongs to --format model-card")
    data_sets = read_data_sets(options.dataset)
    if options.format in TRACKERS:
        if options.out is not None:
            raise ConfigError(f"--out: {options.format} writes no file")
        if find_spec(options.format) is None:
            hint = install_hint(options.format)
            raise ConfigError(f"llmeval export: format {options.format!r}: {hint}")
        folder = run_folder(options.run)
        print_line(f"logged {TRACKERS[options.format](load_run(folder), read_judged_run(folder))}")
        return 0
    if options.format in _REPORTS:
        check_installed(options.format, "llmeval export")
        file = write_report(options.format, ReportInput(run_folder(options.run)), options.out)
    else:
        folder = run_folder(options.run)
        run, judged = load_run(folder), read_judged_run(folder)
        file = options.out or folder / _FILES[options.format]
        text = (
            lm_eval_results(run, judged)
            if options.format == "lm-eval"
            else model_card_results(run, judged, data_sets)
        )
        _write(file, text)
    print_size(file)
    return 0


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from None
