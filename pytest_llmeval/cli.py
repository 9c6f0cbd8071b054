"""``llmeval``: what can be done with stored runs, without a model."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NoReturn

from pytest_llmeval.catalog import NAMES
from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import Outcome
from pytest_llmeval.gates import Thresholds
from pytest_llmeval.gates import check_names
from pytest_llmeval.gates import collected_benchmarks
from pytest_llmeval.gates import errors_allowed
from pytest_llmeval.gates import judge
from pytest_llmeval.gates import load_thresholds
from pytest_llmeval.gates import noise_warnings
from pytest_llmeval.gates import nothing_decided
from pytest_llmeval.gates import overall
from pytest_llmeval.gates import unused_models
from pytest_llmeval.reports import comparison as reports
from pytest_llmeval.reports.cli import add_commands as add_report_commands
from pytest_llmeval.reports.judged import JudgedRun
from pytest_llmeval.reports.league import league_json
from pytest_llmeval.reports.league import league_markdown
from pytest_llmeval.reports.league import league_parts
from pytest_llmeval.reports.runner import harmless
from pytest_llmeval.reports.telling import tell
from pytest_llmeval.reports.terminal import print_parts
from pytest_llmeval.reports.terminal import say
from pytest_llmeval.reports.terminal import summary_parts
from pytest_llmeval.reports.words import failed_items_words
from pytest_llmeval.runs import Measurement
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import league
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs import merge
from pytest_llmeval.runs import save_baseline
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.baseline import NAME
from pytest_llmeval.runs.cache import ResponseCache
from pytest_llmeval.runs.debiased import DEBIASED
from pytest_llmeval.runs.hybrids import first_outcomes
from pytest_llmeval.runs.hybrids import hybrid_line
from pytest_llmeval.runs.hybrids import hybrids
from pytest_llmeval.runs.measurement import disagreements
from pytest_llmeval.runs.pairs import pairs
from pytest_llmeval.sandbox.command import add_commands as add_sandbox_commands
from pytest_llmeval.scaffold import add_commands as add_init_command
from pytest_llmeval.scorers import SCORERS

USAGE_ERROR = 4
"""pytest's exit code for a user's mistake; the other codes are pytest's too."""

_ANY_RUN = "run folder, baseline file, or name of a baseline in baselines/"


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in the command line with pytest's exit code instead of argparse's."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.format_usage()}{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 (passed), 1 (a gate failed) or 4 (a user's mistake)."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        # A log that cannot hold a character must not cost the verdict.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = options.command(options)
    except ConfigError as error:
        print(harmless(f"llmeval: {error}"), file=sys.stderr)
        return USAGE_ERROR
    return code


def _parser() -> _Parser:
    parser = _Parser(prog="llmeval", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    gate = commands.add_parser("gate", help="judge a stored run again")
    gate.add_argument("run", type=Path, metavar="RUN")
    gate.add_argument("thresholds", type=Path, nargs="?", default=Path("thresholds.toml"))
    gate.add_argument("--baseline", metavar="RUN", help=f"compare with it: {_ANY_RUN}")
    _add_allow_mismatch(gate)
    gate.add_argument("--allow-undecided", action="store_true")
    gate.add_argument("--notify", metavar="CMD_OR_URL", help="tell the verdict, as --llm-notify")
    gate.set_defaults(command=_gate)

    show = commands.add_parser("show", help="show a stored run")
    show.add_argument("run", type=Path, metavar="RUN")
    show.add_argument("--protocol", action="store_true", help="print its protocols in full")
    show.set_defaults(command=_show)

    both = commands.add_parser(
        "compare", help="compare stored runs item by item; more than two make a league table"
    )
    both.add_argument("baseline", metavar="BASELINE", help=_ANY_RUN)
    both.add_argument("candidates", metavar="RUN", nargs="+", help=_ANY_RUN)
    both.add_argument("--format", choices=("terminal", "json", "markdown"), default="terminal")
    both.add_argument(
        "--flips", type=_count, default=reports.FLIPS, metavar="N", help="changed items to list"
    )
    _add_allow_mismatch(both)
    both.set_defaults(command=_compare)

    baseline = commands.add_parser("baseline", help="save a run's outcomes as a small file for git")
    baseline.add_argument("run", type=Path, metavar="RUN")
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
    cache.add_argument("--older-than", type=_count, metavar="DAYS", help="prune these only")
    cache.set_defaults(command=_cache)

    add_report_commands(commands)
    add_sandbox_commands(commands)
    add_init_command(commands)
    return parser


def _add_allow_mismatch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-mismatch", action="store_true", help="compare even what differs; without a verdict"
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _gate(options: argparse.Namespace) -> int:
    run = load_run(options.run)
    thresholds = load_thresholds(options.thresholds)
    measurements = run.measurements()
    results = [one.result for one in measurements]
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
    check_names(thresholds, NAMES, found, known_scorers={*SCORERS, *DEBIASED})
    models = list(dict.fromkeys(result.model for result in results))
    comparison = None
    if options.baseline is not None:
        baseline = load_baseline(options.baseline, BASELINES)
        comparison = compare(baseline, run, allow_mismatch=options.allow_mismatch)
    verdicts = judge(
        thresholds,
        results,
        models=models,
        collected=[planned["benchmark"] for planned in run.manifest["results"]],
        comparisons=None if comparison is None else comparison.for_gates(),
        outcomes=first_outcomes(measurements),
    )
    nothing = nothing_decided(verdicts, options.thresholds.name)
    if nothing is not None and not options.allow_undecided:
        verdicts.append(nothing)
    items_failed = _items_failed(thresholds, measurements)
    notes = [
        *([failed_items_words(items_failed)] if items_failed else []),
        *unused_models(thresholds, models),
        *noise_warnings(thresholds, found),
        *disagreements(measurements),
        *_hybrid_lines(run, measurements),
    ]
    verdict = "fail" if items_failed else overall(verdicts, options.allow_undecided)
    compared = pairs(measurements, lambda: run.records)

    def judged() -> JudgedRun:
        metrics = run.metrics()
        return JudgedRun(
            path=run.path,
            manifest=run.manifest,
            results=metrics["results"],
            hybrids=metrics.get("hybrids", ()),
            pairs=metrics.get("pairs", ()),
            verdict=verdict,
            verdicts=verdicts,
            thresholds=options.thresholds.name,
            comparison=None if comparison is None else reports.comparison_json(comparison),
            items_failed=items_failed,
        )

    told = tell(judged, options.notify, os.environ)
    print_parts(
        summary_parts(results, verdicts, [*notes, *told.notes], run.path, comparison, compared)
    )
    for command in told.commands:
        print(command)
    return 1 if verdict == "fail" else 0


def _items_failed(thresholds: Thresholds, measurements: Iterable[Measurement]) -> int:
    """Items with errors that the file does not allow for, which turn a session red too."""
    return sum(
        Outcome.ERROR in item.outcomes and not errors_allowed(thresholds, one.result, item.subject)
        for one in measurements
        if not one.scored_again
        for item in one.items.values()
    )


def _hybrid_lines(run: Run, measurements: Iterable[Measurement]) -> Iterable[str]:
    return map(hybrid_line, hybrids(measurements, run.manifest.get("hybrid", {})))


def _show(options: argparse.Namespace) -> int:
    run = load_run(options.run)
    if options.protocol:
        for text in _protocols(run):
            say(text)
        return 0
    measurements = run.measurements()
    results = [one.result for one in measurements]
    notes = [*disagreements(measurements), *_hybrid_lines(run, measurements)]
    compared = pairs(measurements, lambda: run.records)
    print_parts(summary_parts(results, None, notes, run.path, pairs=compared))
    return 0


def _compare(options: argparse.Namespace) -> int:
    names = [options.baseline, *options.candidates]
    runs = [load_baseline(name, BASELINES) for name in names]
    allowed, flips = options.allow_mismatch, options.flips
    if len(runs) > 2:
        tables = league(runs, allow_mismatch=allowed)
        parts, value = league_parts(tables), league_json(tables)
        markdown = league_markdown(tables)
    else:
        found = compare(*runs, allow_mismatch=allowed)
        parts, value = reports.comparison_parts(found, flips), reports.comparison_json(found)
        markdown = reports.comparison_markdown(found, flips)
    if options.format == "json":
        say(_json(value))
    elif options.format == "markdown":
        say(markdown.removesuffix("\n"))
    else:
        print_parts(parts)
    return 0


def _baseline(options: argparse.Namespace) -> int:
    if not NAME.fullmatch(options.name):
        raise ConfigError(f"baseline name {options.name!r}: use letters, digits, '_', '.', '-'")
    run = load_run(options.run)
    file = options.folder / f"{options.name}.json"
    verb = "replaced" if file.exists() else "saved"
    save_baseline(run, file)
    say(f"{verb} {file} ({file.stat().st_size / 1000:,.0f} kB): {_contents(run)}")
    return 0


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
    """The results of a run with what is missing of them: ``mmlu[letter] 14,042 items, 3 errors``."""
    texts = []
    for one in run.measurements():
        counts = one.result.counts
        text = f"{one.name} {len(one.items):,} items"
        text += f", {counts.error:,} errors" if counts.error else ""
        text += f", {counts.missing:,} answers not asked for" if counts.missing else ""
        texts.append(text)
    return "; ".join(texts)


def _protocols(run: Run) -> Iterable[str]:
    """Every protocol that the run's numbers rest on, in full."""
    for planned in run.planned:
        for way in planned.ways:
            answered = [
                one
                for one in run.measurements()
                if one.result.benchmark == planned.benchmark and one.fingerprint == way.fingerprint
            ]
            if not answered:
                continue
            name, data = answered[0].name, planned.data_hash
            yield f"{name}, protocol {way.fingerprint}, data {data}"
            models = {one.result.model: one.model_fingerprint for one in answered}
            yield _json(
                {
                    "protocol": way.protocol,
                    "shots_of_the_first_item": planned.shots,
                    "benchmark": {
                        "name": planned.benchmark,
                        "version": planned.version,
                        "data": data,
                        "items": sum(planned.subjects.values()),
                    },
                    "seed": run.manifest.get("seed"),
                    "limit": run.manifest.get("limit"),
                    "models": models,
                }
            )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
