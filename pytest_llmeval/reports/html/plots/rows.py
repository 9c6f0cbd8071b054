"""Plots with a row for each subject: bars, drops, and a few values on one axis.

Each exists twice: for a wide page with names next to the plot, and for a phone with names above it
and all text at its full size. The style sheet shows one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from pytest_llmeval.reports.html.svg import PHONE
from pytest_llmeval.reports.html.svg import WIDE
from pytest_llmeval.reports.html.svg import box
from pytest_llmeval.reports.html.svg import circle
from pytest_llmeval.reports.html.svg import drawing
from pytest_llmeval.reports.html.svg import fit
from pytest_llmeval.reports.html.svg import line
from pytest_llmeval.reports.html.svg import mark
from pytest_llmeval.reports.html.svg import pick
from pytest_llmeval.reports.html.svg import readable
from pytest_llmeval.reports.html.svg import tag
from pytest_llmeval.reports.html.svg import text

Scale = Callable[[float], float]


def scale(low: float, high: float, left: float, right: float) -> Scale:
    """Return the linear map of ``low`` to ``high`` onto ``left`` to ``right``, clamped."""
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return left + (min(max(value, low), high) - low) / span * (right - left)

    return place


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers from ``low`` to ``high``, including the ends if they are round."""
    raw = (high - low) / max(1, about)
    power = 10 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next((m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999), power * 10)
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [round((first + n) * step, 10) for n in range(count)]


_TOP = 26
_BESIDE, _ABOVE = 36, 28  # columns of a name next to its plot, and above it


@dataclass(frozen=True)
class _Layout:
    """Layout of a row, in pixels."""

    left: float
    """Left end of the plot."""
    right: float
    """Right end of the plot."""
    width: float
    """Width of the drawing."""
    row: float
    """Height of a row."""
    cls: str = "plot wide-only"

    @property
    def above(self) -> bool:
        """True if names and numbers are above the plot instead of next to it."""
        return self.width == PHONE

    def height(self, rows: int) -> float:
        return _TOP + self.row * rows + 8

    def middle(self, number: int) -> float:
        """Return the y coordinate of a row's plot."""
        top = _TOP + self.row * number
        return top + self.row - 12 if self.above else top + self.row / 2

    def words(self, number: int) -> float:
        """Return the y coordinate of the baseline of a row's name and numbers."""
        return _TOP + self.row * number + 15 if self.above else self.middle(number) + 4

    def number(self, y: float, content: str, cls: str, more: str = "") -> Markup:
        """Return the numbers after a row, or at the end of the name's line if names are above."""
        if not self.above:
            value = text(self.right + 12, y, content, cls)
            end = text(self.width - 8, y, more, "tick", text_anchor="end") if more else ""
            return tag("g", value, end)
        end = text(self.width - 4, y, more, "tick", text_anchor="end") if more else ""
        value = text(self.width - (72 if more else 4), y, content, cls, text_anchor="end")
        return tag("g", value, end)


_WIDE = _Layout(270, 520, WIDE, 20)
_NARROW = _Layout(10, PHONE - 10, PHONE, 38, "plot phone-only")


def subject_bars(
    rows: Sequence[Mapping[str, Any]], chance: float | None, result: int, area: Mapping[str, int]
) -> Markup:
    """Plot the accuracy of every subject with its interval, baseline (tick) and chance (line).

    ``rows``: ``subject``, ``accuracy``, ``interval``, ``n``, ``baseline`` (or None), sorted.
    ``area``: subject → number of its area, for the colour of its dot.
    """
    return _both(lambda layout: _subject_bars(layout, rows, chance, result, area))


def _subject_bars(
    layout: _Layout,
    rows: Sequence[Mapping[str, Any]],
    chance: float | None,
    result: int,
    area: Mapping[str, int],
) -> Markup:
    height = layout.height(len(rows))
    place = scale(0, 1, layout.left, layout.right)
    parts = [_axis(place, 0, 1, height)]
    if chance is not None:
        parts.append(line(place(chance), _TOP - 4, place(chance), height - 6, "chance"))
        parts.append(
            text(place(chance), _TOP - 16, "chance", "tick chance-text", text_anchor="middle")
        )
    for number, row in enumerate(rows):
        y, words = layout.middle(number), layout.words(number)
        name, value = row["subject"], row["accuracy"]
        parts.append(_label(layout, number, name, result, area.get(name)))
        if value is None:
            missing = "no answers" if not row["errors"] else "errors"
            parts.append(text(layout.left + 6, y + 4, missing, "tick"))
            continue
        low, high = row["interval"] or (value, value)
        title = f"{name}: {value:.4f} [{low:.4f}, {high:.4f}], {row['n']:,} answers"
        parts.append(box(layout.left, y - 6, place(value) - layout.left, 12, "bar", title))
        parts.append(_whisker(place(low), place(high), y))
        if row["baseline"] is not None:
            x = place(row["baseline"])
            parts.append(line(x, y - 8, x, y + 8, "baseline"))
        parts.append(layout.number(words, f"{value:.3f}", "number", f"n {row['n']:,}"))
    label = f"accuracy of {len(rows)} subjects with 95 % intervals"
    return drawing(layout.width, height, label, *parts, cls=layout.cls)


def drop_plot(rows: Sequence[Mapping[str, Any]], result: int) -> Markup:
    """Plot the drop of every subject with its interval, largest first, significant ones filled.

    ``rows``: ``subject``, ``drop``, ``interval``, ``adjusted``, ``significant``, ``newly_wrong``,
    ``newly_right``.
    """
    return _both(lambda layout: _drop_plot(layout, rows, result))


def _drop_plot(layout: _Layout, rows: Sequence[Mapping[str, Any]], result: int) -> Markup:
    ends = [abs(end) for row in rows for end in row["interval"]]
    most = max(0.05, min(1.0, max(ends, default=0.05)))
    height = layout.height(len(rows))
    place = scale(-most, most, layout.left, layout.right)
    parts = [_axis(place, -most, most, height, sign=True)]
    parts.append(line(place(0), _TOP - 4, place(0), height - 6, "zero"))
    for number, row in enumerate(rows):
        y = layout.middle(number)
        drop, (low, high) = row["drop"], row["interval"]
        kind = "worse" if drop > 0 else "better"
        certainty = kind if row["significant"] else "unsure"
        title = (
            f"{row['subject']}: drop {drop:+.4f} [{low:+.4f}, {high:+.4f}],"
            f" p {row['adjusted']:.3g} (Holm), {row['newly_wrong']} newly wrong,"
            f" {row['newly_right']} newly right"
        )
        parts.append(_label(layout, number, row["subject"], result, None))
        parts.append(line(place(low), y, place(high), y, f"whisker {certainty}"))
        parts.append(circle(place(drop), y, 4.5, f"dot {certainty}", title))
        value = f"{drop:+.3f}" if round(drop, 3) else "0"
        flips = f"−{row['newly_wrong']} +{row['newly_right']}"
        parts.append(layout.number(layout.words(number), value, f"number {certainty}-text", flips))
    label = f"drop against the baseline in {len(rows)} subjects"
    return drawing(layout.width, height, label, *parts, cls=layout.cls)


def summary_rows(rows: Sequence[Mapping[str, Any]], chance: float | None) -> Markup:
    """Plot a few values with intervals on one axis: micro, macro, areas, gain.

    ``rows``: ``name``, ``value``, ``interval`` (or None), ``baseline`` (or None), ``cls``, ``shape``
    (number of the shape of its dot).
    """
    wide = replace(_WIDE, left=185, right=475, row=26)
    return _summary_rows(wide, rows, chance) + _summary_rows(_NARROW, rows, chance)


def _summary_rows(
    layout: _Layout, rows: Sequence[Mapping[str, Any]], chance: float | None
) -> Markup:
    lowest = min(
        [0.0, *(row["value"] for row in rows), *(r["interval"][0] for r in rows if r["interval"])]
    )
    low = math.floor(lowest * 10) / 10
    height = layout.height(len(rows))
    place = scale(low, 1, layout.left, layout.right)
    parts = [_axis(place, low, 1, height)]
    if chance is not None:
        parts.append(line(place(chance), _TOP - 4, place(chance), height - 6, "chance"))
    for number, row in enumerate(rows):
        y, words = layout.middle(number), layout.words(number)
        x, anchor = (layout.left - 6, "start") if layout.above else (layout.left - 12, "end")
        parts.append(text(x, words, row["name"], "name", text_anchor=anchor))
        parts.append(line(layout.left, y, layout.right, y, "guide"))
        if row["interval"] is not None:
            a, b = (place(end) for end in row["interval"])
            parts.append(box(a, y - 5, b - a, 10, f"range {row['cls']}"))
        if row["baseline"] is not None:
            x = place(row["baseline"])
            parts.append(line(x, y - 9, x, y + 9, "baseline"))
        parts.append(mark(place(row["value"]), y, 5, row["shape"], f"dot {row['cls']}"))
        value = f"{row['value']:.4f}"
        if row["interval"] is not None:
            value += f" [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"
        parts.append(layout.number(words, value, "number"))
    label = "accuracy, macro accuracy and gain"
    return drawing(layout.width, height, label, *parts, cls=layout.cls)


def _both(draw: Callable[[_Layout], Markup]) -> Markup:
    return draw(_WIDE) + draw(_NARROW)


def _axis(place: Scale, low: float, high: float, height: float, sign: bool = False) -> Markup:
    parts = []
    for value in ticks(low, high):
        x = place(value)
        parts.append(line(x, _TOP - 4, x, height - 6, "guide"))
        label = f"{value + 0.0:+g}" if sign and value else f"{value:g}"
        parts.append(text(x, _TOP - 8 if sign else _TOP - 6, label, "tick", text_anchor="middle"))
    return tag("g", *parts)


def _label(layout: _Layout, number: int, subject: str, result: int, area: int | None) -> Markup:
    y = layout.words(number)
    if not layout.above:
        words = fit(readable(subject), _BESIDE)
        name = text(layout.left - 18, y, words, "name", text_anchor="end")
        dot = [] if area is None else [mark(layout.left - 8, y - 4, 3.5, area, f"area{area}")]
        return tag("g", pick(name, result, subject), *dot)
    start = 4.0 if area is None else 14.0
    name = text(start, y, fit(readable(subject), _ABOVE), "name")
    dot = [] if area is None else [mark(6, y - 4, 3.5, area, f"area{area}")]
    return tag("g", pick(name, result, subject), *dot)


def _whisker(low: float, high: float, y: float) -> Markup:
    return tag(
        "g",
        line(low, y, high, y, "whisker"),
        line(low, y - 3, low, y + 3, "whisker"),
        line(high, y - 3, high, y + 3, "whisker"),
    )


def bullet(gate: Mapping[str, Any]) -> Markup | None:
    """Plot a gate's measured value, interval and bound; None without a value."""
    value, low, high = gate["measured"], gate["min"], gate["max"]
    bounds = [bound for bound in (low, high) if bound is not None]
    if value is None or not bounds:
        return None
    ends = [value, *bounds, *(gate["interval"] or ())]
    span = (max(ends) - min(ends)) or 1.0
    left, right = min(ends) - 0.2 * span, max(ends) + 0.2 * span
    place = scale(left, right, 0, 180)
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
    """Plot the numbers of correct, wrong, unparsed, error and missing answers as one bar."""
    total = sum(counts.values()) or 1
    x, parts = 0.0, []
    for name, count in counts.items():
        width = 640 * count / total
        if count:
            parts.append(box(x, 0, max(width, 1.5), 18, f"part {name}", f"{name}: {count:,}"))
        x += width
    return drawing(640, 18, "outcomes", *parts, cls="outcomes", stretched=True)
