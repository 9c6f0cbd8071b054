"""``llmeval swebench``: see whether instances are resolved by their own patches, here."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmeval.catalog.swebench import swebench_rows
from pytest_llmeval.cli.arguments import whole_number
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Item
from pytest_llmeval.core import Outcome
from pytest_llmeval.core import Score
from pytest_llmeval.core.errors import suggestion
from pytest_llmeval.evaluation.jobs import TrialRunner
from pytest_llmeval.evaluation.jobs import read_trial_limits
from pytest_llmeval.reports.formatting import escape_workflow_commands
from pytest_llmeval.sandbox.swebench import Trial
from pytest_llmeval.scorers import Jobs
from pytest_llmeval.scorers import get_scorer

_SCORERS = ("resolved", "resolved_official")


def add_commands(commands: Any) -> None:
    """Add ``swebench`` to the subparsers of ``llmeval``."""
    swebench = commands.add_parser("swebench", help="check instances of SWE-bench")
    actions = swebench.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser(
        "check", help="run every instance's gold patch several times, and list those that fail"
    )
    check.add_argument(
        "rows", type=Path, metavar="ROWS", help="file of rows, or folder of a published set"
    )
    check.add_argument("-k", type=whole_number, default=3, metavar="N", help="runs of each (3)")
    check.add_argument(
        "--only", nargs="+", default=[], metavar="ID", help="check only these instances"
    )
    check.add_argument("--scorer", choices=_SCORERS, default=_SCORERS[0])
    check.add_argument(
        "--trials", metavar="LIMIT=VALUE,…", help="limits of the containers, as --llm-trials"
    )
    check.add_argument(
        "--output",
        type=Path,
        default=Path("flaky.json"),
        metavar="FILE",
        help="list of ids to exclude (flaky.json)",
    )
    check.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    if options.k < 1:
        raise ConfigError("-k 0: at least one run of each was expected")
    items = {item.id: item for item in swebench_rows(options.rows).source(None).items}
    for name in options.only:
        if name not in items:
            raise ConfigError(f"--only {name}: no such instance{suggestion(name, items)}")
    chosen = [items[name] for name in options.only or items]
    limits = read_trial_limits(options.trials, "--trials") if options.trials else {}
    jobs = get_scorer(options.scorer).jobs
    assert jobs is not None
    with closing(TrialRunner(limits)) as trials:
        failing: list[str] = []
        errors = 0
        for item, scores in _scored(trials, jobs, chosen, options.k):
            wrong = [score for score in scores if score.outcome is Outcome.WRONG]
            broken = [score for score in scores if score.outcome is Outcome.ERROR]
            if wrong:
                failing.append(item.id)
                # What is known so far is on disk, should the check be interrupted.
                _write(options.output, failing)
            elif broken:
                errors += 1
            if wrong or broken:
                reason = wrong[0].answer if wrong else broken[0].error
                times = f"{options.k - len(wrong) - len(broken)} of {options.k}"
                print(
                    escape_workflow_commands(f"{item.id}: resolved in {times} runs: {reason}"),
                    flush=True,
                )
    _write(options.output, failing)
    kept = len(chosen) - len(failing) - errors
    print(
        f"{kept:,} of {len(chosen):,} instances are resolved by their gold patch in all {options.k}"
        f" runs; {len(failing):,} to be excluded: {options.output}"
    )
    if errors:
        print(f"{errors:,} could not be run, and are not in the list")
    return 1 if failing or errors else 0


def _write(file: Path, ids: Sequence[str]) -> None:
    file.write_text(json.dumps(sorted(ids), indent=1) + "\n", encoding="utf-8")


def _scored(
    trials: TrialRunner, jobs: Jobs, items: Sequence[Item], times: int
) -> Iterator[tuple[Item, list[Score]]]:
    """Yield items with the scores of their gold patches, each once all of its runs have ended."""
    made: dict[str, tuple[Item, Trial]] = {}
    for item in items:
        gold = jobs.reference(item)
        for number in range(times):
            trial = replace(gold, id=f"{gold.id} {number}")
            made[trial.id] = item, trial
    scores: dict[str, list[Score]] = {item.id: [] for item in items}
    for result in trials.run(trial for _, trial in made.values()):
        item, trial = made[result.id]
        scores[item.id].append(jobs.score_of(item, trial, result))
        if len(scores[item.id]) == times:
            yield item, scores[item.id]
