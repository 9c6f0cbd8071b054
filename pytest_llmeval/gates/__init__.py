"""thresholds.toml to gates to verdicts."""

from __future__ import annotations

from .bounds import Bound
from .fold import VALUELESS
from .fold import count_states
from .fold import fold
from .judge import errors_allowed
from .judge import judge
from .names import CollectedBenchmark
from .names import EarlierNames
from .names import KnownNames
from .names import check_names
from .names import collected_benchmarks
from .names import unknown_models
from .noise import noise_warnings
from .regression import FIRST_RUN
from .regression import NO_BASELINE
from .regression import Comparisons
from .regression import NotCompared
from .thresholds import Thresholds
from .thresholds import load_thresholds
from .thresholds import parse_thresholds
from .verdict import STATES
from .verdict import State
from .verdict import Verdict
from .verdict import describe
from .verdict import nothing_decided
from .verdict import overall
from .verdict import worst_first

__all__ = [
    "FIRST_RUN",
    "NO_BASELINE",
    "STATES",
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
