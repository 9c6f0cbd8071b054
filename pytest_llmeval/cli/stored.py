"""``llmeval baseline``, ``merge`` and ``cache``: stored outcomes and responses."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_llmeval.cli.arguments import add_run
from pytest_llmeval.cli.arguments import whole_number
from pytest_llmeval.core import ConfigError
from pytest_llmeval.gates import count_states
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.reports.wording import verdict_words
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs import merge
from pytest_llmeval.runs import save_baseline
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.baseline import NAME
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.run import run_folder
from pytest_llmeval.storage.response_cache import ResponseCache


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``llmeval``."""
    baseline = commands.add_parser("baseline", help="save a run's outcomes as a small file for git")
    add_run(baseline)
    baseline.add_argument("name", metavar="NAME")
    baseline.add_argument("--folder", type=Path, default=BASELINES)
    baseline.set_defaults(command=_baseline)

    shards = commands.add_parser("merge", help="join the shards of one run (--llm-shard I/N)")
    shards.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    shards.add_argument("--out", type=Path, required=True, metavar="DIR")
    shards.set_defaults(command=_merge)

    cache = commands.add_parser(
        "cache", help="show the contents of a response cache, or remove responses from it"
    )
    cache.add_argument("action", choices=("info", "prune"))
    cache.add_argument("file", type=Path, metavar="FILE")
    cache.add_argument("--older-than", type=whole_number, metavar="DAYS", help="prune these only")
    cache.set_defaults(command=_cache)


def _baseline(options: argparse.Namespace) -> int:
    name = options.name.removesuffix(".json")
    if not NAME.fullmatch(name):
        raise ConfigError(f"baseline name {options.name!r}: use letters, digits, '_', '.', '-'")
    run = load_run(run_folder(options.run))
    file = options.folder / f"{name}.json"
    verb = "replaced" if file.exists() else "saved"
    save_baseline(run, file)
    print_line(f"{verb} {file} ({file.stat().st_size / 1000:,.0f} kB): {_contents(run)}")
    for problem in _doubts(run):
        print_line(f"warning: {problem}")
    return 0


def _doubts(run: Run) -> Iterator[str]:
    """Yield reasons not to compare later runs with this one."""
    judged = read_judged_run(run.path)
    if judged.verdict == "fail":
        words = verdict_words(judged.verdict, count_states(judged.verdicts), judged.items_failed)
        yield f"this run did not pass: {words}"
    if judged.errors:
        are = "answer is an error" if judged.errors == 1 else "answers are errors"
        yield f"{judged.errors:,} {are}, which no later run is compared with"
    if unfinished := unfinished_words(run.manifest):
        yield unfinished


def _merge(options: argparse.Namespace) -> int:
    runs = [load_run(path) for path in options.runs]
    folder = merge(runs, options.out)
    print_line(f"merged {len(runs)} shards into {folder.path}: {_contents(load_run(folder.path))}")
    return 0


def _cache(options: argparse.Namespace) -> int:
    if not options.file.is_file():
        raise ConfigError(f"{options.file}: no such response cache")
    cache = ResponseCache(options.file)
    if options.action == "prune":
        days = options.older_than
        removed = cache.prune(older_than=None if days is None else days * 86_400)
        print_line(f"removed {removed:,} responses from {options.file}")
        return 0
    info = cache.info()
    print_line(
        f"{options.file}: {sum(info.responses.values()):,} responses, {info.bytes / 1e6:.1f} MB"
    )
    for model, count in sorted(info.responses.items()):
        print_line(f"  model {model}: {count:,}")
    return 0


def _contents(run: Run) -> str:
    """Return results with errors and missing answers: ``mmlu[letter] 14,042 items, 3 errors``."""
    texts = []
    for measurement in run.measurements():
        counts = measurement.result.counts
        text = f"{measurement.name} {len(measurement.items):,} items"
        text += f", {counts.error:,} errors" if counts.error else ""
        text += f", {counts.missing:,} answers not requested" if counts.missing else ""
        texts.append(text)
    return "; ".join(texts)
