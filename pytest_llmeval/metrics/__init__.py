"""Records to numbers: pure functions without I/O.

Proportions are floats in [0, 1]; what is undefined is ``None`` (never NaN, which is not JSON);
nonsense (a negative count, more right answers than items, a NaN) is a ``ValueError``.
"""

from __future__ import annotations

from .paired import holm
from .paired import mcnemar
from .proportions import accuracy
from .proportions import macro_accuracy
from .proportions import normalized_gain
from .proportions import standard_error
from .proportions import wilson_interval
from .result import Counts
from .result import Result
from .result import aggregate
from .result import summarize
from .samples import pass_at_k
from .samples import pass_hat_k

__all__ = [
    "Counts",
    "Result",
    "accuracy",
    "aggregate",
    "holm",
    "macro_accuracy",
    "mcnemar",
    "normalized_gain",
    "pass_at_k",
    "pass_hat_k",
    "standard_error",
    "summarize",
    "wilson_interval",
]
