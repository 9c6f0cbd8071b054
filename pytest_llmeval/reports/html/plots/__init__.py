"""Plots of the report: functions from plain numbers to SVG drawings."""

from __future__ import annotations

from pytest_llmeval.reports.html.plots.axes import pass_curve
from pytest_llmeval.reports.html.plots.axes import position_bars
from pytest_llmeval.reports.html.plots.axes import radar
from pytest_llmeval.reports.html.plots.axes import reliability
from pytest_llmeval.reports.html.plots.rows import bullet
from pytest_llmeval.reports.html.plots.rows import drop_plot
from pytest_llmeval.reports.html.plots.rows import outcome_bar
from pytest_llmeval.reports.html.plots.rows import subject_bars
from pytest_llmeval.reports.html.plots.rows import summary_rows

__all__ = [
    "bullet",
    "drop_plot",
    "outcome_bar",
    "pass_curve",
    "position_bars",
    "radar",
    "reliability",
    "subject_bars",
    "summary_rows",
]
