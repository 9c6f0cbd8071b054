"""Gates of ``thresholds.toml`` and the verdicts on them."""

from __future__ import annotations

from pytest_llmeval.gates.bounds import Bound
from pytest_llmeval.gates.clean import Overlaps
from pytest_llmeval.gates.judge import errors_allowed
from pytest_llmeval.gates.judge import judge
from pytest_llmeval.gates.name_checks import CollectedBenchmark
from pytest_llmeval.gates.name_checks import EarlierNames
from pytest_llmeval.gates.name_checks import KnownNames
from pytest_llmeval.gates.name_checks import check_names
from pytest_llmeval.gates.name_checks import collected_benchmarks
from pytest_llmeval.gates.name_checks import unknown_models
from pytest_llmeval.gates.regression import FIRST_RUN
from pytest_llmeval.gates.regression import NO_BASELINE
from pytest_llmeval.gates.regression import Comparisons
from pytest_llmeval.gates.regression import NotCompared
from pytest_llmeval.gates.sensitivity import noise_warnings
from pytest_llmeval.gates.thresholds import Thresholds
from pytest_llmeval.gates.thresholds import load_thresholds
from pytest_llmeval.gates.thresholds import parse_thresholds
from pytest_llmeval.gates.verdict import STATUSES_WITHOUT_VALUE
from pytest_llmeval.gates.verdict import State
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import count_states
from pytest_llmeval.gates.verdict import group_subject_verdicts
from pytest_llmeval.gates.verdict import overall_verdict
from pytest_llmeval.gates.verdict import sort_worst_first
from pytest_llmeval.gates.verdict import undecided_run_verdict
from pytest_llmeval.gates.verdict import verdict_heading
from pytest_llmeval.gates.verdict import verdict_line
from pytest_llmeval.gates.verdict import verdict_reason

__all__ = [
    "FIRST_RUN",
    "NO_BASELINE",
    "STATUSES_WITHOUT_VALUE",
    "Bound",
    "CollectedBenchmark",
    "Comparisons",
    "EarlierNames",
    "KnownNames",
    "NotCompared",
    "Overlaps",
    "State",
    "Thresholds",
    "Verdict",
    "check_names",
    "collected_benchmarks",
    "count_states",
    "errors_allowed",
    "group_subject_verdicts",
    "judge",
    "load_thresholds",
    "noise_warnings",
    "overall_verdict",
    "parse_thresholds",
    "sort_worst_first",
    "undecided_run_verdict",
    "unknown_models",
    "verdict_heading",
    "verdict_line",
    "verdict_reason",
]
