"""HTML report: one self-contained file that needs no network."""

from __future__ import annotations

from pytest_llmeval.reports.html.data import report_data
from pytest_llmeval.reports.html.page import render_page
from pytest_llmeval.reports.html.sources import Sources
from pytest_llmeval.reports.html.sources import load_sources

__all__ = ["Sources", "html_report", "load_sources"]


def html_report(sources: Sources) -> str:
    """Return the page; equal sources give equal text, and it can always be encoded as UTF-8."""
    return render_page(report_data(sources))
