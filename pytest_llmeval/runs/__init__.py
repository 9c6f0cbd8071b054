"""Stored runs: results from records, verdicts, comparison, leaderboards, baselines and merging."""

from __future__ import annotations

from pytest_llmeval.runs.baseline import load_baseline
from pytest_llmeval.runs.baseline import save_baseline
from pytest_llmeval.runs.comparison import MismatchError
from pytest_llmeval.runs.comparison import RunComparison
from pytest_llmeval.runs.comparison import compare
from pytest_llmeval.runs.judging import JudgedRun
from pytest_llmeval.runs.judging import judge_run
from pytest_llmeval.runs.judging import read_judged_run
from pytest_llmeval.runs.leaderboard import Leaderboard
from pytest_llmeval.runs.leaderboard import leaderboards
from pytest_llmeval.runs.measurement import Measurement
from pytest_llmeval.runs.merge import merge
from pytest_llmeval.runs.run import Run
from pytest_llmeval.runs.run import load_run

__all__ = [
    "JudgedRun",
    "Leaderboard",
    "Measurement",
    "MismatchError",
    "Run",
    "RunComparison",
    "compare",
    "judge_run",
    "leaderboards",
    "load_baseline",
    "load_run",
    "merge",
    "read_judged_run",
    "save_baseline",
]
