"""Subjects round a circle."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from pytest_llmeval.reports.formatting import shorten
from pytest_llmeval.reports.html.plots.rows import ticks
from pytest_llmeval.reports.html.svg import PHONE
from pytest_llmeval.reports.html.svg import circle
from pytest_llmeval.reports.html.svg import drawing
from pytest_llmeval.reports.html.svg import line
from pytest_llmeval.reports.html.svg import pick
from pytest_llmeval.reports.html.svg import polyline
from pytest_llmeval.reports.html.svg import readable
from pytest_llmeval.reports.html.svg import tag
from pytest_llmeval.reports.html.svg import text

_LEVEL = 16  # up to so many names stand level round the circle
_LONG, _SHORT = 26, 12  # characters of a name round the circle, on a wide page and on a phone


def radar(
    groups: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], chance: float | None, result: int
) -> Markup:
    """Subjects round a circle, group by group, with the ring of chance and the baseline's outline.

    ``groups``: name of the area (empty for a single group) and its rows: ``subject``,
    ``accuracy`` (None where there is none), ``baseline`` (or None). Twice: for a page that is wide
    enough for the names, and for a phone, where few subjects have short names and many none.
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
    names = [shorten(readable(row["subject"]), longest) if longest else "" for _, row in rows]
    room = 14 + 6.6 * max(map(len, names))
    radius = PHONE / 2 - room if phone else 215
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
        parts.append(circle(*at(n, value / most), 3.4, cls, f"{row['subject']}: {value:.4f}"))
    label = f"accuracy of {len(rows)} subjects round a circle"
    cls = f"plot radar {'phone' if phone else 'wide'}-only"
    return drawing(2 * middle, 2 * centre, label, *parts, cls=cls)


def _sector(
    at: Callable[[float, float], tuple[float, float]], a: float, b: float, cls: str
) -> Markup:
    steps = max(2, round((b - a) * 4))
    edge = [at(a + (b - a) * step / steps, 1) for step in range(steps + 1)]
    return polyline([at(a, 0), *edge], cls, closed=True)


def _spoke_label(place: tuple[float, float], angle: float, name: str, level: bool) -> Markup:
    """A subject's name at the end of its spoke: level where there is room, else along the spoke."""
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
