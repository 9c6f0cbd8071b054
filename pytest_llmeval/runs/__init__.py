"""Runs on disk: the folder, its records, reading a run back, comparing runs, joining shards."""

from __future__ import annotations

from pytest_llmeval.runs.baseline import load_baseline
from pytest_llmeval.runs.baseline import save_baseline
from pytest_llmeval.runs.compare import RunComparison
from pytest_llmeval.runs.compare import compare
from pytest_llmeval.runs.differences import MismatchError
from pytest_llmeval.runs.league import League
from pytest_llmeval.runs.league import league
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.merge import merge
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run

__all__ = [
    "League",
    "Measurement",
    "MismatchError",
    "Run",
    "RunComparison",
    "compare",
    "league",
    "load_baseline",
    "load_run",
    "merge",
    "save_baseline",
]
