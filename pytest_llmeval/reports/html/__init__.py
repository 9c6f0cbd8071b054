"""The HTML report: one file that opens without a network and holds all there is to look at."""

from __future__ import annotations

from pytest_llmeval.reports.html.write import write_report

__all__ = ["write_report"]
