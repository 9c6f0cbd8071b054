"""``llmeval show``: a stored run with its results, gates and comparison."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from pytest_llmeval.cli.arguments import add_run
from pytest_llmeval.gates import count_states
from pytest_llmeval.reports.terminal.summary import print_line
from pytest_llmeval.reports.terminal.summary import print_parts
from pytest_llmeval.reports.terminal.summary import summary_parts
from pytest_llmeval.reports.wording import failure_lines
from pytest_llmeval.reports.wording import model_fingerprints
from pytest_llmeval.reports.wording import model_words
from pytest_llmeval.reports.wording import run_notes
from pytest_llmeval.reports.wording import unfinished_words
from pytest_llmeval.reports.wording import verdict_headline
from pytest_llmeval.runs import Run
from pytest_llmeval.runs import load_run
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.run import run_folder


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of ``llmeval``."""
    show = commands.add_parser("show", help="show a stored run: results, gates, comparison")
    add_run(show)
    show.add_argument("--protocol", action="store_true", help="print its protocols in full")
    show.set_defaults(command=_show)


def _show(options: argparse.Namespace) -> int:
    run = load_run(run_folder(options.run))
    if options.protocol:
        for text in _protocols(run):
            print_line(text)
        return 0
    judged = read_judged_run(run.path)
    measurements = run.measurements()
    results = [measurement.result for measurement in measurements]
    head = [
        verdict_headline(judged.verdict, count_states(judged.verdicts), judged.items_failed),
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
        judged.run_comparison,
        judged.pairs,
        failures=failure_lines(run.records),
        allowed=judged.verdict == "pass",
    )
    print_parts([*map(Text, head), *summary])
    return 0


def _models(run: Run) -> Iterator[str]:
    """Yield a line for every model, with the fingerprint of its weights."""
    for model, fingerprint in model_fingerprints(run.measurements()).items():
        words = model_words(model, run.manifest)
        weights = f", weights {fingerprint}" if fingerprint else ""
        yield f"model {model}{f' ({words})' if words else ''}{weights}"


def _protocols(run: Run) -> Iterable[str]:
    """Yield every protocol behind the run's scores, in full."""
    for planned in run.planned:
        for variant in planned.variants:
            answered = [
                measurement
                for measurement in run.measurements()
                if measurement.result.benchmark == planned.benchmark
                and measurement.fingerprint == variant.fingerprint
            ]
            if not answered:
                continue
            name, data = answered[0].name, planned.data_hash
            yield f"{name}, protocol {variant.fingerprint}, data {data}"
            models = {
                measurement.result.model: measurement.model_fingerprint for measurement in answered
            }
            yield _json(
                {
                    "protocol": variant.protocol,
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
