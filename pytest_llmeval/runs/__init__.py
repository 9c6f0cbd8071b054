"""Runs on disk: the folder, its records, and reading a run back."""

from __future__ import annotations

from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run

__all__ = ["Run", "load_run"]
