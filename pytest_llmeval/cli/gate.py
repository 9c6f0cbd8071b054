"""``llmeval gate``: the verdict on a stored run."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from pytest_llmeval.cli.arguments import ANY_RUN
from pytest_llmeval.cli.arguments import add_allow_mismatch
from pytest_llmeval.cli.arguments import add_overlap
from pytest_llmeval.cli.arguments import add_run
from pytest_llmeval.cli.arguments import stored_overlap
from pytest_llmeval.gates import NotCompared
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import noise_warnings
from pytest_llmeval.reports.ci import report_to_job
from pytest_llmeval.reports.overlap import clean_lines
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.reports.terminal.summary import summary_parts
from pytest_llmeval.reports.wording import failure_lines
from pytest_llmeval.reports.wording import run_notes
from pytest_llmeval.reports.wording import verdict_headline
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.judging import baseline_choice
from pytest_llmeval.runs.judging import check_thresholds
from pytest_llmeval.runs.judging import judge_run
from pytest_llmeval.runs.references import load_references
from pytest_llmeval.runs.run import LATEST
from pytest_llmeval.runs.run import run_folder


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``llmeval``."""
    gate = commands.add_parser("gate", help="judge a stored run again")
    add_run(gate)
    gate.add_argument("thresholds", type=Path, nargs="?", default=Path("thresholds.toml"))
    gate.add_argument(
        "--baseline",
        metavar="RUN",
        help=f"compare with it (default: the run's own): {ANY_RUN}, or none",
    )
    add_overlap(gate)
    add_allow_mismatch(gate)
    gate.add_argument("--allow-undecided", action="store_true")
    gate.set_defaults(command=_gate)


def _gate(options: argparse.Namespace) -> int:
    if options.run.endswith(".toml"):  # the thresholds alone
        options.run, options.thresholds = LATEST, Path(options.run)
    run = load_run(run_folder(options.run))
    thresholds = load_thresholds(options.thresholds)
    results = run.results()
    benchmarks = collected_benchmarks(
        (
            result.benchmark,
            result.scorer,
            {subject: result.items(subject) for subject in result.subjects},
            result.chance,
            result.samples,
        )
        for result in results
    )
    earlier = (run.path.parent, BASELINES)
    models = dict.fromkeys(result.model for result in results)
    check_thresholds(thresholds, benchmarks, earlier, {model: model for model in models})
    named = baseline_choice(options.baseline or run.manifest.get("baseline"), thresholds)
    judged = judge_run(
        run,
        thresholds,
        named if isinstance(named, NotCompared) else load_baseline(named, BASELINES),
        earlier=earlier,
        allow_undecided=options.allow_undecided,
        allow_mismatch=options.allow_mismatch,
        overlap=stored_overlap(run, options.overlap),
        references=load_references(thresholds, run.planned, BASELINES),
    )
    notes = [
        *noise_warnings(thresholds, benchmarks),
        *run_notes(run),
        *clean_lines(judged.results),
    ]
    job = report_to_job(lambda: judged, os.environ)
    print_parts(
        summary_parts(
            results,
            judged.verdicts,
            [*notes, *job.notes],
            run.path,
            judged.run_comparison,
            judged.pairs,
            failures=failure_lines(run.records),
            headline=verdict_headline(
                judged.verdict, count_states(judged.verdicts), judged.items_failed
            ),
            allowed=options.allow_undecided,
        )
    )
    for annotation in job.annotations:
        print(annotation)
    return 1 if judged.verdict == "fail" else 0
