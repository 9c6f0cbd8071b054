"""The plots of the report, each a function from plain numbers to an SVG drawing."""

from __future__ import annotations

from .bars import bullet
from .bars import outcome_bar
from .curves import pass_curve
from .curves import position_bars
from .curves import reliability
from .radar import radar
from .rows import drop_plot
from .rows import subject_bars
from .rows import summary_rows

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
