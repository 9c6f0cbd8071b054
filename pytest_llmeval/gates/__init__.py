"""thresholds.toml to gates to verdicts."""

from __future__ import annotations

from pytest_llmeval.gates.bounds import Bound
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
from pytest_llmeval.gates.verdict import VALUELESS
from pytest_llmeval.gates.verdict import State
from pytest_llmeval.gates.verdict import Verdict
from pytest_llmeval.gates.verdict import count_states
from pytest_llmeval.gates.verdict import describe
from pytest_llmeval.gates.verdict import fold
from pytest_llmeval.gates.verdict import nothing_decided
from pytest_llmeval.gates.verdict import overall
from pytest_llmeval.gates.verdict import worst_first

__all__ = [
    "FIRST_RUN",
    "NO_BASELINE",
    "VALUELESS",
    "Bound",
    "CollectedBenchmark",
    "Comparisons",
    "EarlierNames",
    "KnownNames",
    "NotCompared",
    "State",
    "Thresholds",
    "Verdict",
    "check_names",
    "collected_benchmarks",
    "count_states",
    "describe",
    "errors_allowed",
    "fold",
    "judge",
    "load_thresholds",
    "noise_warnings",
    "nothing_decided",
    "overall",
    "parse_thresholds",
    "unknown_models",
    "worst_first",
]
