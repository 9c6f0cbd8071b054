"""``llmeval``: what can be done with stored runs, without a model."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from pytest_llmeval.cli.extract import add_commands as add_extract_command
from pytest_llmeval.cli.init import add_commands as add_init_command
from pytest_llmeval.cli.reports import ANY_RUN
from pytest_llmeval.cli.reports import add_allow_mismatch
from pytest_llmeval.cli.reports import add_commands as add_report_commands
from pytest_llmeval.cli.reports import add_run
from pytest_llmeval.cli.reports import whole_number
from pytest_llmeval.cli.sandbox import add_commands as add_sandbox_commands
from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import NotCompared
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import count_states
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import noise_warnings
from pytest_llmeval.reports.ci.github import report_to_job
from pytest_llmeval.reports.ci.workflow_commands import harmless
from pytest_llmeval.reports.notes import failure_lines
from pytest_llmeval.reports.notes import run_notes
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.reports.terminal.summary import say
from pytest_llmeval.reports.terminal.summary import summary_parts
from pytest_llmeval.reports.wording import failed_items_words
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.reports.wording import verdict_words
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs import merge
from pytest_llmeval.runs import save_baseline
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.baseline import NAME
from pytest_llmeval.runs.judged import read_judged
from pytest_llmeval.runs.judging import check_thresholds
from pytest_llmeval.runs.judging import chosen_baseline
from pytest_llmeval.runs.judging import judge_run
from pytest_llmeval.runs.newest import LATEST
from pytest_llmeval.runs.newest import run_folder
from pytest_llmeval.storage.response_cache import ResponseCache

USAGE_ERROR = 4
"""pytest's exit code for a user's mistake; the other codes are pytest's too."""


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in the command line with pytest's exit code instead of argparse's."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.format_usage()}{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 (passed), 1 (a gate failed) or 4 (a user's mistake)."""
    options = make_parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        # A log that cannot hold a character must not cost the verdict.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = options.command(options)
    except ConfigError as error:
        print(harmless(f"llmeval: {error}"), file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        # Whoever read the output has gone (`| head`): nobody is left to tell, and no verdict to give.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # A name too long for the file system, a folder that may not be read, a full disk.
        reason = f"{error.filename or 'output'}: {error.strerror or error}"
        print(harmless(f"llmeval: {reason}"), file=sys.stderr)
        return USAGE_ERROR
    return code


def make_parser() -> _Parser:
    """The parser of all commands."""
    parser = _Parser(
        prog="llmeval", description="What can be done with stored runs, without a model."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    gate = commands.add_parser("gate", help="judge a stored run again")
    add_run(gate)
    gate.add_argument("thresholds", type=Path, nargs="?", default=Path("thresholds.toml"))
    gate.add_argument(
        "--baseline",
        metavar="RUN",
        help=f"compare with it (default: the run's own): {ANY_RUN}, or none",
    )
    add_allow_mismatch(gate)
    gate.add_argument("--allow-undecided", action="store_true")
    gate.set_defaults(command=_gate)

    add_report_commands(commands)

    baseline = commands.add_parser("baseline", help="save a run's outcomes as a small file for git")
    add_run(baseline)
    baseline.add_argument("name", metavar="NAME")
    baseline.add_argument("--folder", type=Path, default=BASELINES)
    baseline.set_defaults(command=_baseline)

    shards = commands.add_parser("merge", help="join the shards of one run (--llm-shard I/N)")
    shards.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    shards.add_argument("--out", type=Path, required=True, metavar="DIR")
    shards.set_defaults(command=_merge)

    cache = commands.add_parser("cache", help="what a response cache holds, or make room in it")
    cache.add_argument("action", choices=("info", "prune"))
    cache.add_argument("file", type=Path, metavar="FILE")
    cache.add_argument("--older-than", type=whole_number, metavar="DAYS", help="prune these only")
    cache.set_defaults(command=_cache)

    add_extract_command(commands)
    add_sandbox_commands(commands)
    add_init_command(commands)
    return parser


def _gate(options: argparse.Namespace) -> int:
    if options.run.endswith(".toml"):  # the thresholds alone
        options.run, options.thresholds = LATEST, Path(options.run)
    run = load_run(run_folder(options.run))
    thresholds = load_thresholds(options.thresholds)
    results = run.results()
    found = collected_benchmarks(
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
    check_thresholds(thresholds, found, earlier, {model: model for model in models})
    named = chosen_baseline(options.baseline or run.manifest.get("baseline"), thresholds)
    judged = judge_run(
        run,
        thresholds,
        named if isinstance(named, NotCompared) else load_baseline(named, BASELINES),
        earlier=earlier,
        allow_undecided=options.allow_undecided,
        allow_mismatch=options.allow_mismatch,
    )
    notes = [
        *([failed_items_words(judged.items_failed)] if judged.items_failed else []),
        *noise_warnings(thresholds, found),
        *run_notes(run),
    ]
    job = report_to_job(lambda: judged, os.environ)
    print_parts(
        summary_parts(
            results,
            judged.verdicts,
            [*notes, *job.notes],
            run.path,
            judged.compared,
            judged.pairs,
            failures=failure_lines(run.records),
        )
    )
    for annotation in job.annotations:
        print(annotation)
    return 1 if judged.verdict == "fail" else 0


def _baseline(options: argparse.Namespace) -> int:
    name = options.name.removesuffix(".json")
    if not NAME.fullmatch(name):
        raise ConfigError(f"baseline name {options.name!r}: use letters, digits, '_', '.', '-'")
    run = load_run(run_folder(options.run))
    file = options.folder / f"{name}.json"
    verb = "replaced" if file.exists() else "saved"
    save_baseline(run, file)
    say(f"{verb} {file} ({file.stat().st_size / 1000:,.0f} kB): {_contents(run)}")
    for problem in _doubts(run):
        say(f"warning: {problem}")
    return 0


def _doubts(run: Run) -> Iterator[str]:
    """What speaks against comparing later runs with this one."""
    judged = read_judged(run.path)
    if judged.verdict == "fail":
        words = verdict_words(judged.verdict, count_states(judged.verdicts), judged.items_failed)
        yield f"this run is red. {words}"
    if judged.errors:
        are = "answer is an error" if judged.errors == 1 else "answers are errors"
        yield f"{judged.errors:,} {are}, which no later run is compared with"
    if unfinished := unfinished_words(run.manifest):
        yield unfinished


def _merge(options: argparse.Namespace) -> int:
    runs = [load_run(path) for path in options.runs]
    folder = merge(runs, options.out)
    say(f"merged {len(runs)} shards into {folder.path}: {_contents(load_run(folder.path))}")
    return 0


def _cache(options: argparse.Namespace) -> int:
    if not options.file.is_file():
        raise ConfigError(f"{options.file}: no such response cache")
    cache = ResponseCache(options.file)
    if options.action == "prune":
        days = options.older_than
        removed = cache.prune(older_than=None if days is None else days * 86_400)
        say(f"removed {removed:,} responses from {options.file}")
        return 0
    info = cache.info()
    say(f"{options.file}: {sum(info.responses.values()):,} responses, {info.bytes / 1e6:.1f} MB")
    for model, count in sorted(info.responses.items()):
        say(f"  model {model}: {count:,}")
    return 0


def _contents(run: Run) -> str:
    """Results with what is missing of them: ``mmlu[letter] 14,042 items, 3 errors``."""
    texts = []
    for one in run.measurements():
        counts = one.result.counts
        text = f"{one.name} {len(one.items):,} items"
        text += f", {counts.error:,} errors" if counts.error else ""
        text += f", {counts.missing:,} answers not asked for" if counts.missing else ""
        texts.append(text)
    return "; ".join(texts)
