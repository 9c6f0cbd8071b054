"""``llmeval show``, ``compare``, ``report``, ``export`` and ``history``: stored runs told again."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import RunError
from pytest_llmeval.gates import count_states
from pytest_llmeval.reports.html.history import history_html
from pytest_llmeval.reports.notes import failure_lines
from pytest_llmeval.reports.notes import models_of
from pytest_llmeval.reports.notes import run_notes
from pytest_llmeval.reports.registry import Material
from pytest_llmeval.reports.registry import require
from pytest_llmeval.reports.registry import write
from pytest_llmeval.reports.terminal.comparison import FLIPS
from pytest_llmeval.reports.terminal.comparison import comparison_markdown
from pytest_llmeval.reports.terminal.comparison import comparison_parts
from pytest_llmeval.reports.terminal.history import baseline_names
from pytest_llmeval.reports.terminal.history import history_parts
from pytest_llmeval.reports.terminal.history import make_series
from pytest_llmeval.reports.terminal.history import read_history
from pytest_llmeval.reports.terminal.leaderboard import league_json
from pytest_llmeval.reports.terminal.leaderboard import league_markdown
from pytest_llmeval.reports.terminal.leaderboard import league_parts
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.reports.terminal.summary import say
from pytest_llmeval.reports.terminal.summary import summary_parts
from pytest_llmeval.reports.wording import model_words
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.reports.wording import verdict_words
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import compare
from pytest_llmeval.runs import league
from pytest_llmeval.runs import load_baseline
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.baseline import BASELINES
from pytest_llmeval.runs.judged import read_judged
from pytest_llmeval.runs.newest import LATEST
from pytest_llmeval.runs.newest import RUNS
from pytest_llmeval.runs.newest import run_folder
from pytest_llmeval.storage.folder import run_name

ANY_RUN = f"run folder, baseline file, name of a baseline in baselines/, or {LATEST}"
"""What an argument takes that names a run to compare."""


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``llmeval``."""
    show = commands.add_parser("show", help="show a stored run: results, gates, comparison")
    add_run(show)
    show.add_argument("--protocol", action="store_true", help="print its protocols in full")
    show.set_defaults(command=_show)

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

    report = commands.add_parser("report", help="write a stored run for people to read")
    add_run(report)
    report.add_argument("--format", choices=("html", "markdown", "codequality"), default="html")
    report.add_argument("--baseline", metavar="RUN", help=f"compare with it: {ANY_RUN}")
    add_allow_mismatch(report)
    _add_out(report)
    report.set_defaults(command=_report)

    one = commands.add_parser("export", help="write a stored run for other programs")
    add_run(one)
    one.add_argument("--format", choices=("json", "parquet"), default="json")
    _add_out(one)
    one.set_defaults(command=_export)

    many = commands.add_parser("history", help="the runs of a folder over time")
    many.add_argument("folder", type=Path, nargs="?", default=RUNS, metavar="DIR")
    many.add_argument("--html", type=Path, metavar="FILE", help="draw them into a file too")
    many.add_argument(
        "--baselines", type=Path, default=BASELINES, metavar="DIR", help="named baselines"
    )
    many.set_defaults(command=_history)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the run that a command is about; without it, the newest."""
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default=LATEST,
        help=f"run folder (default: {LATEST}, the newest in {RUNS}/)",
    )


def add_allow_mismatch(parser: argparse.ArgumentParser) -> None:
    """Add what lets a command compare unlike runs."""
    parser.add_argument(
        "--allow-mismatch", action="store_true", help="compare even what differs; without a verdict"
    )


def whole_number(text: str) -> int:
    """Reads a whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="instead of the file that --llm-report leaves"
    )


def _show(options: argparse.Namespace) -> int:
    run = load_run(run_folder(options.run))
    if options.protocol:
        for text in _protocols(run):
            say(text)
        return 0
    judged = read_judged(run.path)
    measurements = run.measurements()
    results = [one.result for one in measurements]
    head = [
        f"{verdict_words(judged.verdict, count_states(judged.verdicts), judged.items_failed)}",
        *_models(run),
    ]
    if unfinished := unfinished_words(run.manifest):
        head.append(unfinished)
    gates = judged.verdicts or None
    summary = summary_parts(
        results,
        gates,
        run_notes(run),
        run.path,
        judged.compared,
        judged.pairs,
        failures=failure_lines(run.records),
    )
    print_parts([*map(Text, head), *summary])
    return 0


def _models(run: Run) -> Iterator[str]:
    """A line for every model, with the fingerprint of its weights."""
    own = bool(run.manifest["own_model"])
    for model, fingerprint in models_of(run.measurements()).items():
        words = model_words(model, own)
        weights = f", weights {fingerprint}" if fingerprint else ""
        yield f"model {model}{f' ({words})' if words else ''}{weights}"


def _compare(options: argparse.Namespace) -> int:
    names = [options.baseline, *(options.candidates or [LATEST])]
    runs = [_any_run(name) for name in names]
    if not options.candidates and runs[0].path.resolve() == runs[1].path.resolve():
        raise ConfigError(f"{run_name(runs[0].path)} would be compared with itself")
    allowed, flips = options.allow_mismatch, options.flips
    if len(runs) > 2:
        tables = league(runs, allow_mismatch=allowed)
        parts, value = league_parts(tables), league_json(tables)
        markdown = league_markdown(tables)
    else:
        found = compare(*runs, allow_mismatch=allowed)
        parts, value = comparison_parts(found, flips), found.as_json()
        markdown = comparison_markdown(found, flips)
    if options.format == "json":
        say(_json(value))
    elif options.format == "markdown":
        say(markdown.removesuffix("\n"))
    else:
        print_parts(parts)
    return 0


def _any_run(name: str) -> Run:
    """The run that a name of ``ANY_RUN`` means."""
    return load_baseline(str(run_folder(name)) if name == LATEST else name, BASELINES)


def _report(options: argparse.Namespace) -> int:
    require(options.format, "llmeval report")
    folder = run_folder(options.run)
    material = Material(folder)
    if options.baseline is not None:
        baseline = _any_run(options.baseline)
        allowed = options.allow_mismatch
        found = compare(baseline, load_run(folder), allow_mismatch=allowed)
        material = Material(folder, baseline, found.as_json())
    _write(options, material)
    return 0


def _export(options: argparse.Namespace) -> int:
    require(options.format, "llmeval export")
    _write(options, Material(run_folder(options.run)))
    return 0


def _write(options: argparse.Namespace, material: Material) -> None:
    file = write(options.format, material, options.out)
    size = file.stat().st_size
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{math.ceil(size / 1000):,} kB"
    say(f"wrote {file} ({shown})")


def _history(options: argparse.Namespace) -> int:
    runs, problems = read_history(options.folder)
    series = make_series(runs, baseline_names(options.baselines))
    print_parts(history_parts(runs, series, problems))
    if options.html is not None:
        try:
            options.html.write_text(history_html(f"History of {options.folder}", series), "utf-8")
        except OSError as error:
            raise RunError(f"cannot write {options.html}: {error.strerror or error}") from None
        say(f"wrote {options.html}")
    return 0


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
                        "excluded": planned.excluded,
                    },
                    "seed": run.manifest.get("seed"),
                    "limit": run.manifest.get("limit"),
                    "models": models,
                }
            )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
