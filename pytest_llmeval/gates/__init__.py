"""thresholds.toml to gates to verdicts."""

from __future__ import annotations

from .fold import fold
from .judge import Verdict
from .judge import describe
from .judge import judge
from .judge import overall
from .names import CollectedBenchmark
from .names import check_names
from .names import collected_benchmarks
from .thresholds import Bound
from .thresholds import Thresholds
from .thresholds import load_thresholds
from .thresholds import parse_thresholds

__all__ = [
    "Bound",
    "CollectedBenchmark",
    "Thresholds",
    "Verdict",
    "check_names",
    "collected_benchmarks",
    "describe",
    "fold",
    "judge",
    "load_thresholds",
    "overall",
    "parse_thresholds",
]
