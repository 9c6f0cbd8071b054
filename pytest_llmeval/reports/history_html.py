"""The history of a folder as one HTML file without scripts: a line chart for every metric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence
from html import escape

from pytest_llmeval.reports.history import Point
from pytest_llmeval.reports.history import Series
from pytest_llmeval.reports.text import cut
from pytest_llmeval.reports.text import one_line

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
p, caption { color: var(--quiet); margin: .2rem 0; text-align: left }
svg { width: 100%; height: auto } svg text { fill: var(--quiet); font-size: 11px }
.rule { stroke: var(--rule) } .line { fill: none; stroke: var(--line); stroke-width: 2 }
.bar { stroke: var(--line); opacity: .55 } .dot { fill: var(--line) } .fail { fill: var(--red) }
.kept { fill: none; stroke: var(--ink); stroke-width: 1.5 }
.bound { stroke: var(--bound); stroke-dasharray: 5 4 }
table { border-collapse: collapse; width: 100%; font-size: .85rem }
td, th { border-top: 1px solid var(--rule); padding: .15rem .6rem .15rem 0; text-align: left;
  overflow-wrap: anywhere }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
"""


def history_html(title: str, series: Sequence[Series]) -> str:
    """The page. Nothing is loaded and nothing runs; every name is text."""
    body = "\n".join(_section(one) for one in series)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{_text(title)}</h1>\n"
        "<p>Bars are 95 % intervals. Red: a gate of the run failed. Ring: kept as a baseline."
        " Dashed: the bound of the gate.</p>\n"
        f"{body}\n</body></html>\n"
    )


def _section(one: Series) -> str:
    rows = "\n".join(_row(point) for point in one.points)
    return (
        f"<h2>{_text(f'{one.result} {one.metric}')}</h2>\n"
        f"<p>protocol {_text(one.protocol)}, {_text(one.fingerprint)}</p>\n"
        f"{_chart(one)}\n"
        "<details><summary>as a table</summary><table><thead><tr><th>started</th><th>run</th>"
        "<th>model</th><th>value</th><th>95 % interval</th><th>answers</th><th>gates</th>"
        f"<th></th></tr></thead><tbody>\n{rows}\n</tbody></table></details>"
    )


def _row(point: Point) -> str:
    marks = [f"baseline {point.baseline}"] if point.baseline else []
    marks += [point.note] if point.note else []
    interval = "" if point.interval is None else "[{:.4f}, {:.4f}]".format(*point.interval)
    return (
        f"<tr><td>{_text(_day(point))}</td><td>{_text(point.run)}</td><td>{_text(point.model)}</td>"
        f'<td class="n">{point.value:.4f}</td><td class="n">{interval}</td>'
        f'<td class="n">{point.n:,}</td><td>{_text(point.verdict)}</td>'
        f"<td>{_text('; '.join(marks))}</td></tr>"
    )


def _chart(one: Series) -> str:
    """The line with its intervals; runs stand at equal distances, in their order."""
    low, high = _range(one)
    label = f"{one.result} {one.metric} over {len(one.points)} runs"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_text(label)}">'
        f"{''.join(_marks(one, low, high))}</svg>"
    )


def _marks(one: Series, low: float, high: float) -> Iterator[str]:
    right = _WIDTH - _RIGHT
    for value in _ticks(low, high):
        y = _y(value, low, high)
        yield f'<line class="rule" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.12g}</text>'
    for side in () if one.bound is None else (one.bound.min, one.bound.max):
        if side is not None:
            y = _y(side, low, high)
            yield f'<line class="bound" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
    xs = [_x(number, len(one.points)) for number in range(len(one.points))]
    line = " ".join(
        f"{x},{_y(point.value, low, high)}" for x, point in zip(xs, one.points, strict=True)
    )
    yield f'<polyline class="line" points="{line}"/>'
    for x, point in zip(xs, one.points, strict=True):
        yield f"<g><title>{_text(_told(point))}</title>"
        y = _y(point.value, low, high)
        if point.interval is not None:
            top, bottom = (_y(limit, low, high) for limit in reversed(point.interval))
            yield f'<line class="bar" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
        if point.baseline:
            yield f'<circle class="kept" cx="{x}" cy="{y}" r="8"/>'
        kind = "dot fail" if point.verdict == "fail" else "dot"
        yield f'<circle class="{kind}" cx="{x}" cy="{y}" r="4"/></g>'
    if one.points:
        floor = _HEIGHT - 8
        yield f'<text x="{_LEFT}" y="{floor}">{_text(_day(one.points[0]))}</text>'
    if len(one.points) > 1:
        last = _text(_day(one.points[-1]))
        yield f'<text x="{right}" y="{floor}" text-anchor="end">{last}</text>'


def _told(point: Point) -> str:
    parts = [point.run, point.model, f"{point.value:.4f}", f"gates: {point.verdict}"]
    parts += [f"baseline {point.baseline}"] if point.baseline else []
    return ", ".join([*parts, *([point.note] if point.note else [])])


def _range(one: Series) -> tuple[float, float]:
    """What the axis covers: values, intervals and bounds, with a little air."""
    values = [point.value for point in one.points]
    values += [limit for point in one.points for limit in point.interval or ()]
    if one.bound is not None:
        values += [side for side in (one.bound.min, one.bound.max) if side is not None]
    low, high = min(values), max(values)
    air = (high - low) * 0.06 or 0.01
    return low - air, high + air


def _ticks(low: float, high: float) -> list[float]:
    """Round values in the range, four to nine of them."""
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(s * size for s in (5, 2, 1) if (high - low) / (s * size) >= 4)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _x(number: int, count: int) -> float:
    span = _WIDTH - _LEFT - _RIGHT - 24
    return round(_LEFT + 12 + (span * number / (count - 1) if count > 1 else span / 2), 1)


def _y(value: float, low: float, high: float) -> float:
    return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low), 1)


def _day(point: Point) -> str:
    return point.started[:16].replace("T", " ")


def _text(text: str) -> str:
    return escape(one_line(cut(text, 300, "cut")))
