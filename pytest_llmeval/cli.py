"""``llmeval``: what can be done with stored runs, without a model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from pytest_llmeval.catalog import NAMES
from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import overall
from pytest_llmeval.reports.terminal import summary_parts
from pytest_llmeval.runs import load_run
from pytest_llmeval.scorers import SCORERS

USAGE_ERROR = 4
"""pytest's exit code for a user's mistake; the other codes are pytest's too."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 (passed), 1 (a gate failed) or 4 (a user's mistake)."""
    parser = argparse.ArgumentParser(prog="llmeval", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    gate = commands.add_parser("gate", help="judge a stored run again")
    gate.add_argument("run", type=Path, metavar="RUN")
    gate.add_argument("thresholds", type=Path, nargs="?", default=Path("thresholds.toml"))
    gate.add_argument("--allow-undecided", action="store_true")
    gate.set_defaults(command=_gate)

    show = commands.add_parser("show", help="show a stored run")
    show.add_argument("run", type=Path, metavar="RUN")
    show.add_argument("--protocol", action="store_true", help="print its protocols in full")
    show.set_defaults(command=_show)

    options = parser.parse_args(arguments)
    try:
        code: int = options.command(options)
    except ConfigError as error:
        print(f"llmeval: {error}", file=sys.stderr)
        return USAGE_ERROR
    return code


def _gate(options: argparse.Namespace) -> int:
    run = load_run(options.run)
    thresholds = load_thresholds(options.thresholds)
    results = run.results()
    found = collected_benchmarks(
        (result.benchmark, result.scorer, result.subjects, result.chance) for result in results
    )
    check_names(thresholds, NAMES, found, known_scorers=SCORERS)
    models = list(dict.fromkeys(result.model for result in results))
    collected = [planned["benchmark"] for planned in run.manifest["results"]]
    verdicts = judge(thresholds, results, models, collected)
    console = Console(highlight=False)
    for part in summary_parts(results, verdicts, (), run.path):
        console.print(part)
    return 1 if overall(verdicts, options.allow_undecided) == "fail" else 0


def _show(options: argparse.Namespace) -> int:
    run = load_run(options.run)
    if options.protocol:
        for planned in run.manifest["results"]:
            name = f"{planned['benchmark']}[{planned['scorer']}]"
            print(f"{name}, protocol {planned['fingerprint']}, data {planned['data_hash']}")
            print(json.dumps(planned["protocol"], indent=2, ensure_ascii=False))
        return 0
    console = Console(highlight=False)
    verdicts = None
    for part in summary_parts(run.results(), verdicts, (), run.path):
        console.print(part)
    return 0
