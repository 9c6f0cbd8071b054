"""Plots on axes: pass@k, calibration, positions, and subjects around a circle."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from pytest_llmeval.reports.html.plots.rows import Scale
from pytest_llmeval.reports.html.plots.rows import scale
from pytest_llmeval.reports.html.plots.rows import ticks
from pytest_llmeval.reports.html.svg import PHONE
from pytest_llmeval.reports.html.svg import WIDE
from pytest_llmeval.reports.html.svg import box
from pytest_llmeval.reports.html.svg import circle
from pytest_llmeval.reports.html.svg import columns
from pytest_llmeval.reports.html.svg import drawing
from pytest_llmeval.reports.html.svg import fit
from pytest_llmeval.reports.html.svg import line
from pytest_llmeval.reports.html.svg import mark
from pytest_llmeval.reports.html.svg import pick
from pytest_llmeval.reports.html.svg import polyline
from pytest_llmeval.reports.html.svg import readable
from pytest_llmeval.reports.html.svg import tag
from pytest_llmeval.reports.html.svg import text

_LEFT, _RIGHT, _HIGH, _LOW = 38, 320, 20, 300


def pass_curve(series: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Plot pass@k and pass^k over k with bands; ``series``: name → k → value, interval."""
    ks = sorted({int(k) for values in series.values() for k in values})
    across = {
        k: _LEFT + 20 + (_RIGHT - _LEFT - 40) * n / max(1, len(ks) - 1) for n, k in enumerate(ks)
    }
    up = scale(0, 1, _LOW, _HIGH)
    parts = _frame(up)
    for k, x in across.items():
        parts.append(text(x, _LOW + 18, str(k), "tick", text_anchor="middle"))
    parts.append(text((_LEFT + _RIGHT) / 2, _LOW + 36, "k", "tick", text_anchor="middle"))
    for number, (name, values) in enumerate(series.items()):
        defined = [(int(k), entry) for k, entry in values.items() if entry is not None]
        cls = ("micro", "macro")[number % 2]
        lows = [(across[k], up(entry["interval95"][0])) for k, entry in defined]
        highs = [(across[k], up(entry["interval95"][1])) for k, entry in defined]
        parts.append(polyline([*lows, *reversed(highs)], f"band {cls}", closed=True))
        parts.append(polyline([(across[k], up(e["value"])) for k, e in defined], f"curve {cls}"))
        for k, entry in defined:
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
        if defined:
            k, entry = defined[-1]
            parts.append(text(across[k] + 12, up(entry["value"]) + 4, name, f"name {cls}-text"))
    return drawing(_RIGHT + 60, _LOW + 46, "pass@k over k", *parts)


def reliability(diagram: Mapping[str, Any]) -> Markup:
    """Plot accuracy over confidence by bin; the area of a dot is the bin's share of answers."""
    across, up = scale(0, 1, _LEFT, _RIGHT), scale(0, 1, _LOW, _HIGH)
    parts = _frame(up)
    parts.append(line(across(0), up(0), across(1), up(1), "chance"))
    for value in ticks(0, 1):
        parts.append(text(across(value), _LOW + 18, f"{value:g}", "tick", text_anchor="middle"))
    for bin in diagram["bins"]:
        x, y = across(bin["confidence"]), up(bin["accuracy"])
        low, high = bin["interval"]
        parts.append(line(x, y, x, up(bin["confidence"]), "gap"))
        parts.append(line(x, up(low), x, up(high), "whisker"))
        share = bin["items"] / diagram["items"]
        title = (
            f"confidence {bin['low']:.1f} to {bin['high']:.1f}: {bin['items']:,} answers,"
            f" mean {bin['confidence']:.3f}, right {bin['accuracy']:.3f} [{low:.3f}, {high:.3f}]"
        )
        parts.append(circle(x, y, 3 + 12 * math.sqrt(share), "dot micro soft", title))
    middle = (_LEFT + _RIGHT) / 2
    parts.append(text(middle, _LOW + 36, "confidence", "tick", text_anchor="middle"))
    parts.append(text(_LEFT, _HIGH - 8, "accuracy", "tick"))
    return drawing(_RIGHT + 20, _LOW + 46, "share of right answers over confidence", *parts)


def position_bars(positions: Sequence[Mapping[str, Any]]) -> Markup:
    """Plot the share of answers at every position, and the share expected without preference."""
    most = max([0.4, *(max(p["share"], p["expected"], p["recall"] or 0) for p in positions)])
    up = scale(0, min(1.0, math.ceil(most * 10) / 10), _LOW, _HIGH)
    slot = min(96.0, (_RIGHT - _LEFT) / max(1, len(positions)))
    right = _LEFT + slot * len(positions)
    top = min(1.0, math.ceil(most * 10) / 10)
    parts = _frame(up, right, top)
    for number, position in enumerate(positions):
        x = _LEFT + slot * number + slot * 0.16
        width = slot * 0.3
        name, share, expected = position["position"], position["share"], position["expected"]
        significant = position["p_value"] < 0.01
        cls = "worse" if significant else "micro"
        title = f"{name}: {share:.1%} of answers, {expected:.1%} expected"
        y = up(share)
        parts.append(box(x, y, width, _LOW - y, f"column {cls}", title))
        if position["recall"] is not None:
            y = up(position["recall"])
            title = f"recall {position['recall']:.1%}"
            parts.append(box(x + width + 4, y, width, _LOW - y, "column macro", title))
        y = up(expected)
        parts.append(line(x - 6, y, x + 2 * width + 10, y, "chance"))
        parts.append(
            text(
                x + width,
                _LOW + 18,
                f"{name} *" if significant else name,
                "name",
                text_anchor="middle",
            )
        )
    return drawing(right + 10, _LOW + 30, "share of answers by position", *parts)


def _frame(up: Scale, right: float = _RIGHT, top: float = 1.0) -> list[Markup]:
    parts = []
    for value in ticks(0, top):
        parts.append(line(_LEFT, up(value), right, up(value), "guide"))
        parts.append(text(_LEFT - 8, up(value) + 4, f"{value:g}", "tick", text_anchor="end"))
    return parts


_LEVEL = 16  # maximum of names that are horizontal around the circle
_LONG, _SHORT = 24, 12  # columns of a name around the circle, on a wide page and on a phone


def radar(
    groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], chance: float | None, result: int
) -> Markup:
    """Plot subjects around a circle by group, with the ring of chance and the baseline's outline.

    ``groups``: name of the area (empty for a single group) and its rows: ``subject``, ``accuracy``
    (or None), ``baseline`` (or None). The plot exists twice: for a wide page with names, and for a
    phone with short names for few subjects and none for many.
    """
    return _radar(groups, chance, result, phone=False) + _radar(groups, chance, result, phone=True)


def _radar(
    groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]],
    chance: float | None,
    result: int,
    phone: bool,
) -> Markup:
    rows = [(number, row) for number, (_, members) in enumerate(groups) for row in members]
    values = [v for _, r in rows for v in (r["accuracy"], r["baseline"]) if v is not None]
    most = max(0.4, math.ceil(max([chance or 0, *values]) * 5 - 1e-9) / 5)
    level = len(rows) <= _LEVEL
    longest = (_SHORT if level else 0) if phone else _LONG
    names = [fit(readable(row["subject"]), longest) if longest else "" for _, row in rows]
    room = 14 + 6.6 * max(map(columns, names))
    radius = PHONE / 2 - room if phone else min(215, WIDE / 2 - room)
    middle, centre = radius + room, radius + (32 if level or phone else room)

    def at(number: float, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * number / len(rows) - math.pi / 2
        return middle + radius * share * math.cos(angle), centre + radius * share * math.sin(angle)

    def ring(share: float, cls: str) -> Markup:
        return tag("circle", cx=middle, cy=centre, r=radius * share, cls=cls)

    parts: list[Markup] = []
    start = 0
    for number, (name, members) in enumerate(groups):
        if name and members:
            parts.append(
                _sector(at, start - 0.5, start + len(members) - 0.5, f"sector area{number}")
            )
        start += len(members)
    for value in ticks(0, most, 4)[1:]:
        parts.append(ring(value / most, "guide ring"))
        parts.append(text(middle + 3, centre - radius * value / most + 11, f"{value:g}", "tick"))
    for number, (_, row) in enumerate(rows):
        parts.append(line(middle, centre, *at(number, 1), "guide"))
        if names[number]:
            where, angle = at(number, 1.07 if level else 1.035), 360 * number / len(rows) - 90
            spoke = _spoke_label(where, angle, names[number], level)
            parts.append(pick(spoke, result, row["subject"]))
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
        title = f"{row['subject']}: {value:.4f}"
        parts.append(mark(*at(n, value / most), 3.4, area, cls, title))
    label = f"accuracy of {len(rows)} subjects around a circle"
    cls = f"plot radar {'phone' if phone else 'wide'}-only"
    return drawing(2 * middle, 2 * centre, label, *parts, cls=cls)


def _sector(
    at: Callable[[float, float], tuple[float, float]], a: float, b: float, cls: str
) -> Markup:
    steps = max(2, round((b - a) * 4))
    edge = [at(a + (b - a) * step / steps, 1) for step in range(steps + 1)]
    return polyline([at(a, 0), *edge], cls, closed=True)


def _spoke_label(place: tuple[float, float], angle: float, name: str, level: bool) -> Markup:
    """Return a subject's name at the end of its spoke, horizontal (``level``) or along it."""
    x, y = place
    across = math.cos(math.radians(angle))
    flipped = across < -1e-9
    anchor = "middle" if level and abs(across) < 0.1 else "end" if flipped else "start"
    turn = angle + 180 if flipped else angle
    return text(
        x,
        y,
        name,
        "spoke",
        text_anchor=anchor,
        dominant_baseline="middle",
        transform=None if level else f"rotate({turn:.1f} {x:.1f} {y:.1f})",
    )
