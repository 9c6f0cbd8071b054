"""The HTML report: one file that opens without a network and holds all there is to look at."""

from __future__ import annotations

from pytest_llmeval.reports.html.data import report_data
from pytest_llmeval.reports.html.page import render_page
from pytest_llmeval.reports.html.sources import Sources
from pytest_llmeval.reports.html.sources import gather

__all__ = ["Sources", "gather", "html_report"]


def html_report(sources: Sources) -> str:
    """The page. The same sources give the same text; it encodes as UTF-8 whatever is in it."""
    return render_page(report_data(sources))
