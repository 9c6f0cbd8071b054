"""Plots with two axes: pass@k, calibration, positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from pytest_llmeval.reports.html.plots.rows import Scale
from pytest_llmeval.reports.html.plots.rows import scale
from pytest_llmeval.reports.html.plots.rows import ticks
from pytest_llmeval.reports.html.svg import box
from pytest_llmeval.reports.html.svg import circle
from pytest_llmeval.reports.html.svg import drawing
from pytest_llmeval.reports.html.svg import line
from pytest_llmeval.reports.html.svg import polyline
from pytest_llmeval.reports.html.svg import text

_LEFT, _RIGHT, _HIGH, _LOW = 38, 320, 20, 300


def pass_curve(series: Mapping[str, Mapping[str, Any]]) -> Markup:
    """pass@k and pass^k over k, each with its band; ``series``: name → k → value, interval."""
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
    across, up = scale(0, 1, _LEFT, _RIGHT), scale(0, 1, _LOW, _HIGH)
    parts = _frame(up)
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
    middle = (_LEFT + _RIGHT) / 2
    parts.append(text(middle, _LOW + 36, "confidence", "tick", text_anchor="middle"))
    parts.append(text(_LEFT, _HIGH - 8, "share that is right", "tick"))
    return drawing(_RIGHT + 20, _LOW + 46, "share of right answers over confidence", *parts)


def position_bars(positions: Sequence[Mapping[str, Any]]) -> Markup:
    """Share of the answers at every position, with what would be without a preference."""
    most = max([0.4, *(max(p["share"], p["expected"], p["recall"] or 0) for p in positions)])
    up = scale(0, min(1.0, math.ceil(most * 10) / 10), _LOW, _HIGH)
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
