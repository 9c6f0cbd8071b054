"""Plots of one row a subject: bars, drops, and a few values on one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from pytest_llmeval.reports.axis import Scale
from pytest_llmeval.reports.axis import scale
from pytest_llmeval.reports.axis import ticks

from ..svg import box
from ..svg import circle
from ..svg import drawing
from ..svg import line
from ..svg import pick
from ..svg import readable
from ..svg import tag
from ..svg import text

_ROW = 19
_NAME = 255
_PLOT = 280
_NUMBER = 130
_TOP = 26


def subject_bars(
    rows: Sequence[Mapping[str, Any]], chance: float | None, result: int, area: Mapping[str, int]
) -> Markup:
    """Accuracy of every subject with its interval, the baseline as a tick, chance as a line.

    ``rows``: ``subject``, ``accuracy``, ``interval``, ``n``, ``baseline`` (or None), sorted.
    ``area``: subject → number of its area, for the colour of its dot.
    """
    height = _TOP + _ROW * len(rows) + 8
    place = scale(0, 1, _NAME, _NAME + _PLOT)
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
    place = scale(-most, most, _NAME, _NAME + _PLOT)
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
    place = scale(low, 1, left, left + width)
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
