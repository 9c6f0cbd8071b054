"""The plots of the report, each a function from plain numbers to an SVG drawing."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from .shown import cut
from .svg import box
from .svg import circle
from .svg import drawing
from .svg import line
from .svg import pick
from .svg import polyline
from .svg import tag
from .svg import text
from .svg import ticks

_ROW = 19
_NAME = 235
_PLOT = 280
_NUMBER = 130
_TOP = 26

Scale = Callable[[float], float]


def _scale(low: float, high: float, left: float, right: float) -> Scale:
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return left + (min(max(value, low), high) - low) / span * (right - left)

    return place


def readable(subject: str) -> str:
    """A subject's name for people: ``college mathematics``."""
    return cut(subject.replace("_", " "), 44)


# Rows: bars and drops --------------------------------------------------------------------


def subject_bars(
    rows: Sequence[Mapping[str, Any]], chance: float | None, result: int, area: Mapping[str, int]
) -> Markup:
    """Accuracy of every subject with its interval, the baseline as a tick, chance as a line.

    ``rows``: ``subject``, ``accuracy``, ``interval``, ``n``, ``baseline`` (or None), sorted.
    ``area``: subject → number of its area, for the colour of its dot.
    """
    height = _TOP + _ROW * len(rows) + 8
    place = _scale(0, 1, _NAME, _NAME + _PLOT)
    parts = [_axis(place, 0, 1, height)]
    if chance is not None:
        parts.append(line(place(chance), _TOP - 4, place(chance), height - 6, "chance"))
        parts.append(
            text(place(chance), _TOP - 16, "chance", "tick chance-text", text_anchor="middle")
        )
    for number, row in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        name, value = row["subject"], row["accuracy"]
        parts.append(_label(name, y, result, area.get(name)))
        if value is None:
            parts.append(
                text(_NAME + 6, y + 4, "no answers" if not row["errors"] else "errors", "tick")
            )
            continue
        low, high = row["interval"]
        title = f"{name}: {value:.4f} [{low:.4f}, {high:.4f}], {row['n']:,} answers"
        parts.append(box(_NAME, y - 6, place(value) - _NAME, 12, "bar", title))
        parts.append(_whisker(place(low), place(high), y))
        if row["baseline"] is not None:
            x = place(row["baseline"])
            parts.append(line(x, y - 8, x, y + 8, "baseline"))
        parts.append(text(_NAME + _PLOT + 12, y + 4, f"{value:.3f}", "number"))
        parts.append(
            text(_NAME + _PLOT + _NUMBER - 8, y + 4, f"n {row['n']:,}", "tick", text_anchor="end")
        )
    return drawing(
        _NAME + _PLOT + _NUMBER,
        height,
        f"accuracy of {len(rows)} subjects with 95 % intervals",
        *parts,
    )


def drop_plot(rows: Sequence[Mapping[str, Any]], result: int) -> Markup:
    """The drop of every subject with its interval, largest first, significant ones filled.

    ``rows``: ``subject``, ``drop``, ``interval``, ``adjusted``, ``significant``, ``newly_wrong``,
    ``newly_right``.
    """
    ends = [abs(end) for row in rows for end in row["interval"]]
    most = max(0.05, min(1.0, max(ends, default=0.05)))
    height = _TOP + _ROW * len(rows) + 8
    place = _scale(-most, most, _NAME, _NAME + _PLOT)
    parts = [_axis(place, -most, most, height, sign=True)]
    parts.append(line(place(0), _TOP - 4, place(0), height - 6, "zero"))
    for number, row in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        drop, (low, high) = row["drop"], row["interval"]
        kind = "worse" if drop > 0 else "better"
        sure = kind if row["significant"] else "unsure"
        title = (
            f"{row['subject']}: drop {drop:+.4f} [{low:+.4f}, {high:+.4f}],"
            f" p {row['adjusted']:.3g} (Holm), {row['newly_wrong']} newly wrong,"
            f" {row['newly_right']} newly right"
        )
        parts.append(_label(row["subject"], y, result, None))
        parts.append(line(place(low), y, place(high), y, f"whisker {sure}"))
        parts.append(circle(place(drop), y, 4.5, f"dot {sure}", title))
        shown = f"{drop:+.3f}" if round(drop, 3) else "0"
        parts.append(text(_NAME + _PLOT + 12, y + 4, shown, f"number {sure}-text"))
        flips = f"−{row['newly_wrong']} +{row['newly_right']}"
        parts.append(text(_NAME + _PLOT + _NUMBER - 8, y + 4, flips, "tick", text_anchor="end"))
    return drawing(
        _NAME + _PLOT + _NUMBER,
        height,
        f"drop against the baseline in {len(rows)} subjects",
        *parts,
    )


def summary_rows(rows: Sequence[Mapping[str, Any]], chance: float | None) -> Markup:
    """A few values with intervals on one axis: micro, macro, areas, gain.

    ``rows``: ``name``, ``value``, ``interval`` (or None), ``baseline`` (or None), ``cls``.
    """
    lowest = min(
        [0.0, *(row["value"] for row in rows), *(r["interval"][0] for r in rows if r["interval"])]
    )
    low = math.floor(lowest * 10) / 10
    left, width, number = 170, 330, 150
    height = _TOP + 26 * len(rows) + 6
    place = _scale(low, 1, left, left + width)
    parts = [_axis(place, low, 1, height)]
    if chance is not None:
        parts.append(line(place(chance), _TOP - 4, place(chance), height - 6, "chance"))
    for position, row in enumerate(rows):
        y = _TOP + 26 * position + 13
        parts.append(text(left - 12, y + 4, row["name"], "name", text_anchor="end"))
        parts.append(line(left, y, left + width, y, "guide"))
        if row["interval"] is not None:
            a, b = (place(end) for end in row["interval"])
            parts.append(box(a, y - 5, b - a, 10, f"range {row['cls']}"))
        if row["baseline"] is not None:
            x = place(row["baseline"])
            parts.append(line(x, y - 9, x, y + 9, "baseline"))
        parts.append(circle(place(row["value"]), y, 5, f"dot {row['cls']}"))
        told = f"{row['value']:.4f}"
        if row["interval"] is not None:
            told += f" [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"
        parts.append(text(left + width + 12, y + 4, told, "number"))
    return drawing(left + width + number + 20, height, "accuracy, macro accuracy and gain", *parts)


def _axis(place: Scale, low: float, high: float, height: float, sign: bool = False) -> Markup:
    parts = []
    for value in ticks(low, high):
        x = place(value)
        parts.append(line(x, _TOP - 4, x, height - 6, "guide"))
        shown = f"{value + 0.0:+g}" if sign and value else f"{value:g}"
        parts.append(text(x, _TOP - 8 if sign else _TOP - 6, shown, "tick", text_anchor="middle"))
    return tag("g", *parts)


def _label(subject: str, y: float, result: int, area: int | None) -> Markup:
    name = text(_NAME - 16, y + 4, readable(subject), "name", text_anchor="end")
    dot = [] if area is None else [circle(_NAME - 7, y, 3.5, f"area{area}")]
    return tag("g", pick(name, result, subject), *dot)


def _whisker(low: float, high: float, y: float) -> Markup:
    return tag(
        "g",
        line(low, y, high, y, "whisker"),
        line(low, y - 3, low, y + 3, "whisker"),
        line(high, y - 3, high, y + 3, "whisker"),
    )


# Radar -----------------------------------------------------------------------------------


def radar(
    groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], chance: float | None, result: int
) -> Markup:
    """Subjects round a circle, group by group, with the ring of chance and the baseline's outline.

    ``groups``: name of the area (empty for a single group) and its rows: ``subject``,
    ``accuracy`` (None where there is none), ``baseline`` (or None).
    """
    rows = [(number, row) for number, (_, members) in enumerate(groups) for row in members]
    values = [v for _, r in rows for v in (r["accuracy"], r["baseline"]) if v is not None]
    most = max(0.4, math.ceil(max([chance or 0, *values]) * 5 - 1e-9) / 5)
    names = [_around(row["subject"]) for _, row in rows]
    radius = 215
    middle = radius + 14 + 6.6 * max(map(len, names))
    size = 2 * middle

    def at(number: float, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * number / len(rows) - math.pi / 2
        return middle + radius * share * math.cos(angle), middle + radius * share * math.sin(angle)

    def ring(share: float, cls: str) -> Markup:
        return tag("circle", cx=middle, cy=middle, r=radius * share, cls=cls)

    parts: list[Markup] = []
    start = 0
    for number, (name, members) in enumerate(groups):
        if name:
            parts.append(
                _sector(at, start - 0.5, start + len(members) - 0.5, f"sector area{number}")
            )
        start += len(members)
    for value in ticks(0, most, 4)[1:]:
        parts.append(ring(value / most, "guide ring"))
        parts.append(text(middle + 3, middle - radius * value / most + 11, f"{value:g}", "tick"))
    for number, (_, row) in enumerate(rows):
        parts.append(line(middle, middle, *at(number, 1), "guide"))
        parts.append(_spoke_label(at(number, 1.035), 360 * number / len(rows) - 90, row, result))
    if chance is not None:
        parts.append(ring(chance / most, "chance ring"))
    before = [
        (n, row["baseline"]) for n, (_, row) in enumerate(rows) if row["baseline"] is not None
    ]
    if len(before) > 2:
        parts.append(
            polyline((at(n, v / most) for n, v in before), "baseline outline", closed=True)
        )
    now = [(n, row["accuracy"]) for n, (_, row) in enumerate(rows) if row["accuracy"] is not None]
    if len(now) > 2:
        parts.append(polyline((at(n, v / most) for n, v in now), "outline", closed=True))
    for n, value in now:
        area, row = rows[n]
        cls = f"dot area{area}" if groups[0][0] else "dot micro"
        parts.append(circle(*at(n, value / most), 3.4, cls, f"{row['subject']}: {value:.4f}"))
    return drawing(
        size, size, f"accuracy of {len(rows)} subjects round a circle", *parts, cls="plot radar"
    )


def _sector(
    at: Callable[[float, float], tuple[float, float]], a: float, b: float, cls: str
) -> Markup:
    steps = max(2, round((b - a) * 4))
    edge = [at(a + (b - a) * step / steps, 1) for step in range(steps + 1)]
    return polyline([at(a, 0), *edge], cls, closed=True)


def _around(subject: str) -> str:
    """A name short enough to stand round a circle."""
    return cut(readable(subject), 26)


def _spoke_label(
    place: tuple[float, float], angle: float, row: Mapping[str, Any], result: int
) -> Markup:
    x, y = place
    flipped = 90 < angle % 360 < 270
    turn = angle + 180 if flipped else angle
    name = text(
        x,
        y,
        _around(row["subject"]),
        "spoke",
        text_anchor="end" if flipped else "start",
        dominant_baseline="middle",
        transform=f"rotate({turn:.1f} {x:.1f} {y:.1f})",
    )
    return pick(name, result, row["subject"])


# Curves ----------------------------------------------------------------------------------

_LEFT, _RIGHT, _HIGH, _LOW = 48, 470, 20, 300


def pass_curve(series: Mapping[str, Mapping[str, Any]]) -> Markup:
    """pass@k and pass^k over k, each with its band; ``series``: name → k → value, interval."""
    ks = sorted({int(k) for values in series.values() for k in values})
    across = {
        k: _LEFT + 20 + (_RIGHT - _LEFT - 40) * n / max(1, len(ks) - 1) for n, k in enumerate(ks)
    }
    up = _scale(0, 1, _LOW, _HIGH)
    parts = _frame(up)
    for k, x in across.items():
        parts.append(text(x, _LOW + 18, str(k), "tick", text_anchor="middle"))
    parts.append(text((_LEFT + _RIGHT) / 2, _LOW + 36, "k", "tick", text_anchor="middle"))
    for number, (name, values) in enumerate(series.items()):
        known = [(int(k), entry) for k, entry in values.items() if entry is not None]
        cls = ("micro", "macro")[number % 2]
        lows = [(across[k], up(entry["interval95"][0])) for k, entry in known]
        highs = [(across[k], up(entry["interval95"][1])) for k, entry in known]
        parts.append(polyline([*lows, *reversed(highs)], f"band {cls}", closed=True))
        parts.append(polyline([(across[k], up(e["value"])) for k, e in known], f"curve {cls}"))
        for k, entry in known:
            title = f"{name.replace('k', str(k))} {entry['value']:.4f}"
            parts.append(circle(across[k], up(entry["value"]), 4.5, f"dot {cls}", title))
            below = 18 if number else -10
            parts.append(
                text(
                    across[k],
                    up(entry["value"]) + below,
                    f"{entry['value']:.3f}",
                    "number",
                    text_anchor="middle",
                )
            )
        if known:
            k, entry = known[-1]
            parts.append(text(across[k] + 12, up(entry["value"]) + 4, name, f"name {cls}-text"))
    return drawing(_RIGHT + 60, _LOW + 46, "pass@k over k", *parts)


def reliability(found: Mapping[str, Any]) -> Markup:
    """Confidence against accuracy, bin by bin; the size of a dot is the bin's share of answers."""
    across, up = _scale(0, 1, _LEFT, _RIGHT - 90), _scale(0, 1, _LOW, _HIGH)
    parts = _frame(up, _RIGHT - 90)
    parts.append(line(across(0), up(0), across(1), up(1), "chance"))
    for value in ticks(0, 1):
        parts.append(text(across(value), _LOW + 18, f"{value:g}", "tick", text_anchor="middle"))
    for one in found["bins"]:
        x, y = across(one["confidence"]), up(one["accuracy"])
        low, high = one["interval"]
        parts.append(line(x, y, x, up(one["confidence"]), "gap"))
        parts.append(line(x, up(low), x, up(high), "whisker"))
        share = one["items"] / found["items"]
        title = (
            f"confidence {one['low']:.1f} to {one['high']:.1f}: {one['items']:,} answers,"
            f" mean {one['confidence']:.3f}, right {one['accuracy']:.3f} [{low:.3f}, {high:.3f}]"
        )
        parts.append(circle(x, y, 3 + 12 * math.sqrt(share), "dot micro soft", title))
    middle = (_LEFT + _RIGHT - 90) / 2
    parts.append(text(middle, _LOW + 36, "confidence", "tick", text_anchor="middle"))
    parts.append(text(_LEFT, _HIGH - 8, "share that is right", "tick"))
    return drawing(_RIGHT - 70, _LOW + 46, "share of right answers over confidence", *parts)


def position_bars(positions: Sequence[Mapping[str, Any]]) -> Markup:
    """Share of the answers at every position, with what would be without a preference."""
    most = max([0.4, *(max(p["share"], p["expected"], p["recall"] or 0) for p in positions)])
    up = _scale(0, min(1.0, math.ceil(most * 10) / 10), _LOW, _HIGH)
    slot = min(96.0, (_RIGHT - _LEFT) / max(1, len(positions)))
    right = _LEFT + slot * len(positions)
    top = min(1.0, math.ceil(most * 10) / 10)
    parts = _frame(up, right, top)
    for number, one in enumerate(positions):
        x = _LEFT + slot * number + slot * 0.16
        width = slot * 0.3
        odd = "worse" if one["p_value"] < 0.01 else "micro"
        title = f"{one['position']}: {one['share']:.1%} of answers, {one['expected']:.1%} expected"
        y = up(one["share"])
        parts.append(box(x, y, width, _LOW - y, f"column {odd}", title))
        if one["recall"] is not None:
            y = up(one["recall"])
            parts.append(
                box(
                    x + width + 4, y, width, _LOW - y, "column macro", f"recall {one['recall']:.1%}"
                )
            )
        y = up(one["expected"])
        parts.append(line(x - 6, y, x + 2 * width + 10, y, "chance"))
        parts.append(text(x + width, _LOW + 18, one["position"], "name", text_anchor="middle"))
    return drawing(right + 10, _LOW + 30, "share of answers by position", *parts)


def _frame(up: Scale, right: float = _RIGHT, top: float = 1.0) -> list[Markup]:
    parts = []
    for value in ticks(0, top):
        parts.append(line(_LEFT, up(value), right, up(value), "guide"))
        parts.append(text(_LEFT - 8, up(value) + 4, f"{value:g}", "tick", text_anchor="end"))
    return parts


# Small ones ------------------------------------------------------------------------------


def bullet(gate: Mapping[str, Any]) -> Markup | None:
    """A gate's measured value with its interval on the way to its bound; None without a value."""
    value, low, high = gate["measured"], gate["min"], gate["max"]
    bounds = [bound for bound in (low, high) if bound is not None]
    if value is None or not bounds:
        return None
    ends = [value, *bounds, *(gate["interval"] or ())]
    span = (max(ends) - min(ends)) or 1.0
    left, right = min(ends) - 0.2 * span, max(ends) + 0.2 * span
    place = _scale(left, right, 0, 180)
    parts = [box(0, 9, 180, 4, "track")]
    start = 0.0 if low is None else place(low)
    end = 180.0 if high is None else place(high)
    if low != high:
        parts.append(box(start, 9, end - start, 4, "allowed"))
    status = {"pass": "good", "fail": "worse"}.get(gate["status"], "unsure")
    if gate["interval"] is not None:
        a, b = (place(x) for x in gate["interval"])
        parts.append(box(a, 7, max(b - a, 1.0), 8, f"range {status}"))
    for bound in bounds:
        parts.append(line(place(bound), 2, place(bound), 20, "bound"))
    parts.append(circle(place(value), 11, 4.5, f"dot {status}"))
    return drawing(180, 22, f"{gate['words']}: measured value and bound", *parts, cls="bullet")


def outcome_bar(counts: Mapping[str, int]) -> Markup:
    """Correct, wrong, unparsed, errors and not run as parts of one bar."""
    total = sum(counts.values()) or 1
    x, parts = 0.0, []
    for name, count in counts.items():
        width = 640 * count / total
        if count:
            parts.append(box(x, 0, max(width, 1.5), 18, f"part {name}", f"{name}: {count:,}"))
        x += width
    return drawing(640, 18, "outcomes", *parts, cls="outcomes", stretched=True)
