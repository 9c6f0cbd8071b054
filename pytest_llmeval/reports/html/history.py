"""History of a folder as one HTML file without scripts, with a line chart for every metric."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from html import escape

from pytest_llmeval.reports.formatting import interval
from pytest_llmeval.reports.formatting import one_line
from pytest_llmeval.reports.formatting import truncate
from pytest_llmeval.reports.html.plots.rows import scale
from pytest_llmeval.reports.html.plots.rows import ticks
from pytest_llmeval.reports.html.svg import mark
from pytest_llmeval.reports.terminal.history import Point
from pytest_llmeval.reports.terminal.history import Series

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 12, 28

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #6a737d; --rule: #d8dee4;
  --line: #0a66c2; --red: #c62828; --bound: #b26a00; --paper: #fff }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --quiet: #9aa4ae; --rule: #39414a;
  --line: #6cb2ff; --red: #ff7b72; --bound: #f0b35a; --paper: #15181c } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin: 2rem 0 .2rem }
h1, h2, p { overflow-wrap: anywhere }
p, caption { color: var(--quiet); margin: .2rem 0; text-align: left }
svg { width: 100%; height: auto; overflow: visible }
svg text { fill: var(--quiet); font-size: 11px }
@media (max-width: 700px) { svg text { font-size: 22px } table { display: block; overflow-x: auto } }
.rule { stroke: var(--rule) } .line { fill: none; stroke: var(--line); stroke-width: 2 }
.bar { stroke: var(--line); opacity: .55 } .dot { fill: var(--line) } .fail { fill: var(--red) }
.kept { fill: none; stroke: var(--ink); stroke-width: 1.5 }
.bound { stroke: var(--bound); stroke-dasharray: 5 4 }
table { border-collapse: collapse; width: 100%; font-size: .85rem }
td, th { border-top: 1px solid var(--rule); padding: .15rem .6rem .15rem 0; text-align: left;
  overflow-wrap: anywhere; min-width: 5rem }
th, td:first-child { white-space: nowrap }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
"""


def history_html(title: str, series: Sequence[Series]) -> str:
    """Return the page, which loads no resources and runs no scripts; all names are escaped."""
    body = "\n".join(map(_section, series)) or "<p>No run to show.</p>"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{_text(title)}</h1>\n"
        "<p>Bars are 95 % intervals. Red diamond: a gate of the run failed. Ring: saved as a baseline."
        " Dashed: the bound of the gate.</p>\n"
        f"{body}\n</body></html>\n"
    )


def _section(series: Series) -> str:
    rows = "\n".join(_row(point) for point in series.points)
    return (
        f"<h2>{_text(series.title)}</h2>\n"
        f"<p>protocol {_text(series.protocol)}, {_text(series.fingerprint)}; data {_text(series.data)}</p>\n"
        f"{_chart(series)}\n"
        "<details><summary>as a table</summary><table><thead><tr><th>started</th><th>run</th>"
        "<th>model</th><th>value</th><th>95 % interval</th><th>answers</th><th>gates</th>"
        f"<th></th></tr></thead><tbody>\n{rows}\n</tbody></table></details>"
    )


def _row(point: Point) -> str:
    marks = [f"baseline {point.baseline}"] if point.baseline else []
    marks += [point.note] if point.note else []
    return (
        f"<tr><td>{_text(_day(point))}</td><td>{_text(point.run)}</td><td>{_text(point.model)}</td>"
        f'<td class="n">{point.value:.4f}</td><td class="n">{interval(point.interval, none="")}</td>'
        f'<td class="n">{point.n:,}</td><td>{_text(point.verdict)}</td>'
        f"<td>{_text('; '.join(marks))}</td></tr>"
    )


def _chart(series: Series) -> str:
    """Return the line with its intervals; runs are in order, at equal distances."""
    label = f"{series.title} over {len(series.points)} runs"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_text(label)}">'
        f"{''.join(_marks(series))}</svg>"
    )


def _marks(series: Series) -> Iterator[str]:
    low, high = _range(series)
    up, right = scale(low, high, _HEIGHT - _BOTTOM, _TOP), _WIDTH - _RIGHT
    for value in ticks(low, high):
        y = up(value)
        yield f'<line class="rule" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.12g}</text>'
    for side in () if series.bound is None else (series.bound.min, series.bound.max):
        if side is not None:
            y = up(side)
            yield f'<line class="bound" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    last = len(series.points) - 1
    across = scale(0, last, _LEFT + 12, right - 12) if last else lambda n: (_LEFT + right) / 2
    places = [(across(n), up(point.value), point) for n, point in enumerate(series.points)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    yield f'<polyline class="line" points="{line}"/>'
    for x, y, point in places:
        yield f"<g><title>{_text(_point_title(point))}</title>"
        if point.interval is not None:
            bottom, top = map(up, point.interval)
            yield f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
        if point.baseline:
            yield f'<circle class="kept" cx="{x:.1f}" cy="{y:.1f}" r="8"/>'
        failed = point.verdict == "fail"
        yield f"{mark(x, y, 5 if failed else 4, 3 if failed else 0, 'dot fail' if failed else 'dot')}</g>"
    floor = _HEIGHT - 8
    yield f'<text x="{_LEFT}" y="{floor}">{_text(_day(series.points[0]))}</text>'
    if last:
        newest = _text(_day(series.points[-1]))
        yield f'<text x="{right}" y="{floor}" text-anchor="end">{newest}</text>'


def _point_title(point: Point) -> str:
    parts = [point.run, point.model, f"{point.value:.4f}", f"gates: {point.verdict}"]
    parts += [f"baseline {point.baseline}"] if point.baseline else []
    return ", ".join([*parts, *([point.note] if point.note else [])])


def _range(series: Series) -> tuple[float, float]:
    """Return the range of the axis: values, intervals and bounds, with a margin."""
    values = [point.value for point in series.points]
    values += [limit for point in series.points for limit in point.interval or ()]
    if series.bound is not None:
        values += [side for side in (series.bound.min, series.bound.max) if side is not None]
    low, high = min(values), max(values)
    margin = (high - low) * 0.06 or 0.01
    return low - margin, high + margin


def _day(point: Point) -> str:
    return point.started[:16].replace("T", " ")


def _text(text: str) -> str:
    return escape(one_line(truncate(text, 300, "cut")))
