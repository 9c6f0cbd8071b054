"""The runs of a folder over time: what they measured, and whether their gates were green.

A line is drawn through runs that may be compared: of one benchmark and scorer, under one protocol,
on one version of the data. Numbers of other protocols make another line. The model is what changes
along a line; where a run has several, each has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from pytest_llmeval.core import RunError
from pytest_llmeval.reports.formatting import cut
from pytest_llmeval.reports.formatting import gain_interval
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.terminal.tables import open_table
from pytest_llmeval.runs.baseline import read_baseline
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import name_of
from pytest_llmeval.runs.judging import read_judged

_BARS = "▁▂▃▄▅▆▇█"
_NAME = 40
_STYLES = {"pass": "green", "fail": "red"}

Interval = tuple[float, float]


@dataclass(frozen=True)
class Point:
    """What a run measured. ``interval`` of 95 %, None where there is none.

    ``verdict``: of the run's gates. ``baseline``: the name under which the run is kept as one.
    ``note`` says why the number is none of the whole benchmark, or empty.
    """

    run: str
    started: str
    model: str
    value: float
    interval: Interval | None
    n: int
    verdict: str
    baseline: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Bound:
    """What the newest run that was judged was to keep."""

    min: float | None
    max: float | None


@dataclass(frozen=True)
class Series:
    """One metric of one result over time, oldest first; ``result`` as ``mmlu[letter]``.

    ``data``: hash of the benchmark's data. ``model``: of a line through runs with several models.
    """

    result: str
    protocol: str
    fingerprint: str
    data: str
    model: str | None
    metric: str
    points: tuple[Point, ...]
    bound: Bound | None = None

    @property
    def title(self) -> str:
        """``mmlu[letter] accuracy``, with the model behind it where there are several."""
        return f"{self.result} {self.metric}" + (f" of {self.model}" if self.model else "")


_Key = tuple[str, str, str, str | None, str]
"""Result, the protocol's fingerprint, hash of the data, model and metric: what makes a line."""


def read_history(folder: Path) -> tuple[list[JudgedRun], list[str]]:
    """The runs of a folder, oldest first, and a line for every run that cannot be read.

    Raises RunError where the folder holds no run at all.
    """
    runs, problems = [], []
    for file in sorted(folder.glob("*/run.json")):
        try:
            runs.append(read_judged(file.parent))
        except RunError as error:
            problems.append(str(error))
    if not runs and not problems:
        raise RunError(f"{folder} holds no runs")
    runs.sort(key=lambda run: (str(run.manifest.get("started", "")), run.path.name))
    return runs, problems


def baseline_names(folder: Path) -> dict[str, str]:
    """Name of a run → the baselines it is kept as in a folder of baseline files."""
    names: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*.json")):
        try:
            kept = read_baseline(file).manifest.get("run")
        except RunError:
            continue  # another JSON file
        names.setdefault(str(kept), []).append(file.stem)
    return {run: ", ".join(found) for run, found in names.items()}


def make_series(runs: Sequence[JudgedRun], baselines: Mapping[str, str]) -> list[Series]:
    """Every metric of every result as a line through the runs, in the order of appearance."""
    lines: dict[_Key, list[Point]] = {}
    bounds: dict[_Key, Bound | None] = {}
    names: dict[str, str] = {}  # of protocols; a renamed one is the same
    for run in runs:
        for result in run.results:
            key = (
                name_of(result),
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
    """The metrics that a result has; none where errors leave it incomplete."""
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
        note = f"a draw of {result['sampled']['items']:,} of {result['items']:,} items"
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


def _bound(run: JudgedRun, result: Mapping[str, Any], metric: str) -> Bound | None:
    """The bound that the whole result was judged by."""
    for verdict in run.verdicts:
        about = (verdict.model, verdict.benchmark, verdict.metric, verdict.subject)
        if about != (result["model"], result["benchmark"], metric, None):
            continue
        if verdict.scorer in (None, result["scorer"]) and (verdict.min, verdict.max) != (
            None,
            None,
        ):
            return Bound(verdict.min, verdict.max)
    return None


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """The values as bars of eight heights between ``low`` and ``high``."""
    span = high - low
    steps = [(value - low) / span if span > 0 else 0.5 for value in values]
    return "".join(_BARS[min(7, max(0, int(step * 8)))] for step in steps)


def history_parts(
    runs: Sequence[JudgedRun], series: Sequence[Series], problems: Sequence[str]
) -> Iterator[Any]:
    """The runs as a table, then a line of bars for every metric: rich renderables."""
    table = open_table()
    for name in ("started", "run", "results", "gates"):
        table.add_column(name, overflow="fold")
    marks = {point.run: point.baseline for one in series for point in one.points if point.baseline}
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
    for one in series:
        yield from _drawn(one)
    for problem in problems:
        yield Text(problem, style="yellow")


def _style(verdict: str) -> str:
    return _STYLES.get(verdict, "")


def _numbers(run: JudgedRun) -> str:
    return ", ".join(
        f"{name_of(result)} " + ("-" if (a := result["accuracy"]) is None else f"{a:.4f}")
        for result in run.results
    )


def _drawn(one: Series) -> Iterator[Text]:
    """``mmlu[letter] accuracy ▁▃▅█ 0.2812 … 0.4512 (bound >= 0.28)``, then what is odd about it.

    Between name and bars stand the protocol and the data, which tell lines of one name apart.
    """
    values = [point.value for point in one.points]
    low, high = min(values), max(values)
    bound = ""
    if one.bound is not None:
        sides = ((">=", one.bound.min), ("<=", one.bound.max))
        bound = " ".join(f"{sign} {side:g}" for sign, side in sides if side is not None)
    about = f"{one.protocol} {one.fingerprint[:8]}, data {one.data[:8]}"
    text = Text(one_line(f"{one.title} ({about})") + " ")
    for point in one.points:
        text.append(sparkline([point.value], low, high), style=_style(point.verdict))
    text.append(f" {values[0]:.4f}" if len(values) == 1 else f" {values[0]:.4f} … {values[-1]:.4f}")
    text.append(f" (bound {bound})" if bound else "")
    yield text
    for point in one.points:
        if point.note and one.metric == "accuracy":
            name = cut(one_line(point.run), _NAME, "")
            yield Text(f"  {name}: {point.note}", style="yellow")
