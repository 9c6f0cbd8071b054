"""Small bars: a gate's value beside its bound, and the outcomes of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from pytest_llmeval.reports.html.plots.axes import scale
from pytest_llmeval.reports.html.svg import box
from pytest_llmeval.reports.html.svg import circle
from pytest_llmeval.reports.html.svg import drawing
from pytest_llmeval.reports.html.svg import line


def bullet(gate: Mapping[str, Any]) -> Markup | None:
    """A gate's measured value with its interval on the way to its bound; None without a value."""
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
    """Correct, wrong, unparsed, errors and not run as parts of one bar."""
    total = sum(counts.values()) or 1
    x, parts = 0.0, []
    for name, count in counts.items():
        width = 640 * count / total
        if count:
            parts.append(box(x, 0, max(width, 1.5), 18, f"part {name}", f"{name}: {count:,}"))
        x += width
    return drawing(640, 18, "outcomes", *parts, cls="outcomes", stretched=True)
