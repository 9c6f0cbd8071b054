"""History of the runs of a folder: metrics and verdicts over time.

A series connects comparable runs: of the same benchmark and scorer, with the same protocol and the
same version of the data. The model may change along a series; if a run has several models, each has
its own series.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from pytest_llmeval.core import RunError
from pytest_llmeval.reports.formatting import gain_interval
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import truncate
from pytest_llmeval.reports.terminal.tables import open_table
from pytest_llmeval.reports.wording import stopped_words
from pytest_llmeval.runs.baseline import read_baseline
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.judging import result_name

_BARS = "▁▂▃▄▅▆▇█"
_NAME = 40
_STYLES = {"pass": "green", "fail": "red"}

Interval = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """Value of one run."""

    run: str
    started: str
    model: str
    value: float
    interval: Interval | None
    """95 % interval."""
    n: int
    verdict: str
    """Verdict of the run's gates."""
    baseline: str | None = None
    """Name of the baseline that the run is saved as."""
    note: str = ""
    """Reason why the value is not that of the whole benchmark, or empty."""


@dataclass(frozen=True)
class SeriesBound:
    """Bound of the gate in the newest run that was judged."""

    min: float | None
    max: float | None


@dataclass(frozen=True)
class Series:
    """One metric of one result over time."""

    result: str
    """Such as ``mmlu[letter]``."""
    protocol: str
    fingerprint: str
    data: str
    """Hash of the benchmark's data."""
    model: str | None
    """None unless the runs have several models."""
    metric: str
    points: tuple[Point, ...]
    """Oldest first."""
    bound: SeriesBound | None = None

    @property
    def title(self) -> str:
        """``mmlu[letter] accuracy``, followed by the model if there are several."""
        return f"{self.result} {self.metric}" + (f" of {self.model}" if self.model else "")


_Key = tuple[str, str, str, str | None, str]
"""Result, protocol fingerprint, data hash, model and metric of a series."""


def read_history(folder: Path) -> tuple[list[JudgedRun], list[str]]:
    """Return the runs of a folder, oldest first, and a message for every unreadable run.

    Raises RunError if the folder contains no run, and OSError for an impossible name.
    """
    runs, problems = [], []
    for file in _matching(folder, "*/run.json"):
        try:
            runs.append(read_judged_run(file.parent))
        except RunError as error:
            problems.append(str(error))
    if not runs and not problems:
        raise RunError(f"{folder} contains no runs")
    runs.sort(key=lambda run: (str(run.manifest.get("started", "")), run.path.name))
    return runs, problems


def _matching(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder by name; none if there is no folder.

    Raises OSError for a name that the file system refuses, which ``glob`` ignores from Python 3.13 on.
    """
    with contextlib.suppress(FileNotFoundError):
        folder.stat()
    return sorted(folder.glob(pattern))


def baseline_names(folder: Path) -> dict[str, str]:
    """Return run name → names of the baselines in a folder that are copies of it."""
    names: dict[str, list[str]] = {}
    for file in _matching(folder, "*.json"):
        try:
            run = read_baseline(file).manifest.get("run")
        except RunError:
            continue  # another JSON file
        names.setdefault(str(run), []).append(file.stem)
    return {run: ", ".join(baselines) for run, baselines in names.items()}


def make_series(runs: Sequence[JudgedRun], baselines: Mapping[str, str]) -> list[Series]:
    """Return a series for every metric of every result, in the order of appearance.

    Results of runs that stopped early are left out: they are no estimates of the same precision, and
    on average too far from their bounds.
    """
    lines: dict[_Key, list[Point]] = {}
    bounds: dict[_Key, SeriesBound | None] = {}
    names: dict[str, str] = {}  # fingerprint → name of the protocol, which may be renamed
    for run in runs:
        for result in run.results:
            if result.get("stopped"):
                continue
            key = (
                result_name(result),
                result["protocol_fingerprint"],
                result["data_hash"],
                result["model"] if len(run.models) > 1 else None,
            )
            names[result["protocol_fingerprint"]] = result["protocol"]
            for metric, value, interval in _metrics(result):
                lines.setdefault((*key, metric), []).append(
                    _point(run, result, value, interval, baselines)
                )
                if run.verdicts:
                    bounds[*key, metric] = _bound(run, result, metric)
    return [
        Series(key[0], names[key[1]], *key[1:], tuple(points), bounds.get(key))
        for key, points in lines.items()
    ]


def _metrics(result: Mapping[str, Any]) -> Iterator[tuple[str, float, Interval | None]]:
    """Yield the metrics of a result with their intervals; none if errors make it incomplete."""
    if result["accuracy"] is None:
        return
    yield "accuracy", result["accuracy"], _interval(result["wilson95"])
    if len(result["subjects"]) > 1 and result["macro_accuracy"] is not None:
        yield "macro_accuracy", result["macro_accuracy"], _interval(result["macro_interval95"])
    if result["normalized_gain"] is not None and result["chance"] is not None:
        limits = gain_interval(result["wilson95"], result["chance"])
        yield "normalized_gain", result["normalized_gain"], limits
    for name in ("pass@k", "pass^k"):
        for k, entry in (result.get(name) or {}).items():
            if entry is not None and k != "1":
                metric = name.removesuffix("k") + k
                yield metric, entry["value"], _interval(entry["interval95"])


def _interval(value: Sequence[float] | None) -> Interval | None:
    return None if value is None else (value[0], value[1])


def _point(
    run: JudgedRun,
    result: Mapping[str, Any],
    value: float,
    interval: Interval | None,
    baselines: Mapping[str, str],
) -> Point:
    note = ""
    if result["sampled"] is not None:
        note = f"sampled {result['sampled']['items']:,} of {result['items']:,} items"
    elif result["missing"]:
        note = f"only {result['answered']:,} of {result['n_total']:,} answers"
    return Point(
        run.path.name,
        str(run.manifest.get("started", "")),
        result["model"],
        value,
        interval,
        result["answered"],
        run.verdict,
        baselines.get(run.path.name),
        note,
    )


def _bound(run: JudgedRun, result: Mapping[str, Any], metric: str) -> SeriesBound | None:
    """Return the bound of the gate on the whole result."""
    for verdict in run.verdicts:
        key = (verdict.model, verdict.benchmark, verdict.metric, verdict.subject)
        if key != (result["model"], result["benchmark"], metric, None):
            continue
        if verdict.scorer in (None, result["scorer"]) and (verdict.min, verdict.max) != (
            None,
            None,
        ):
            return SeriesBound(verdict.min, verdict.max)
    return None


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """Return the values as bars of eight heights between ``low`` and ``high``."""
    span = high - low
    steps = [(value - low) / span if span > 0 else 0.5 for value in values]
    return "".join(_BARS[min(7, max(0, int(step * 8)))] for step in steps)


def history_parts(
    runs: Sequence[JudgedRun], series: Sequence[Series], problems: Sequence[str]
) -> Iterator[Any]:
    """Yield the runs as a table, then a line of bars for every metric, as rich renderables."""
    table = open_table()
    for name in ("started", "run", "results", "gates"):
        table.add_column(name, overflow="fold")
    marks = {p.run: p.baseline for entry in series for p in entry.points if p.baseline}
    for run in runs:
        started = str(run.manifest.get("started", ""))[:16].replace("T", " ")
        name = run.path.name
        mark = f" (baseline {marks[name]})" if name in marks else ""
        status = run.manifest.get("status", "finished")
        verdict = run.verdict if status == "finished" else f"{status}: {run.verdict}"
        table.add_row(
            started, Text(f"{name}{mark}"), Text(_numbers(run)), Text(verdict, _style(run.verdict))
        )
    yield table
    for entry in series:
        yield from _series_lines(entry)
    for problem in problems:
        yield Text(problem, style="yellow")


def _style(verdict: str) -> str:
    return _STYLES.get(verdict, "")


def _numbers(run: JudgedRun) -> str:
    return ", ".join(
        f"{result_name(result)} "
        + ("-" if (a := result["accuracy"]) is None else f"{a:.4f}")
        + (f" ({words})" if (words := stopped_words(result)) else "")
        for result in run.results
    )


def _series_lines(series: Series) -> Iterator[Text]:
    """Yield ``mmlu[letter] accuracy ▁▃▅█ 0.2812 … 0.4512 (bound >= 0.28)``, then notes on points.

    Protocol and data are between name and bars, because several series may have the same name.
    """
    values = [point.value for point in series.points]
    low, high = min(values), max(values)
    bound = ""
    if series.bound is not None:
        sides = ((">=", series.bound.min), ("<=", series.bound.max))
        bound = " ".join(f"{sign} {side:g}" for sign, side in sides if side is not None)
    source = f"{series.protocol} {series.fingerprint[:8]}, data {series.data[:8]}"
    text = Text(one_line(f"{series.title} ({source})") + " ")
    for point in series.points:
        text.append(sparkline([point.value], low, high), style=_style(point.verdict))
    text.append(f" {values[0]:.4f}" if len(values) == 1 else f" {values[0]:.4f} … {values[-1]:.4f}")
    text.append(f" (bound {bound})" if bound else "")
    yield text
    for point in series.points:
        if point.note and series.metric == "accuracy":
            name = truncate(one_line(point.run), _NAME, "")
            yield Text(f"  {name}: {point.note}", style="yellow")
