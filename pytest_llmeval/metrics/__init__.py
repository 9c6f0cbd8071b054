"""Records to numbers: pure functions without I/O.

Proportions are floats in [0, 1]; what is undefined is ``None`` (never NaN, which is not JSON);
nonsense (a negative count, more right answers than items, a NaN) is a ``ValueError``.
"""

from __future__ import annotations

from .answers import Answer
from .answers import answered
from .audit import ArmResult
from .audit import Audit
from .audit import FamilyResult
from .audit import audit_table
from .bias import cochran_q
from .bias import consistency_rate
from .bias import majority
from .bias import recall_std
from .bias import variance_ratio
from .calibration import Calibration
from .calibration import calibration
from .calibration import choice_confidence
from .comparison import Comparison
from .comparison import Difference
from .comparison import compare_items
from .diagnosis import diagnose
from .hybrid import FirstOutcomes
from .hybrid import Hybrid
from .hybrid import hybrid_name
from .hybrid import hybrid_of
from .hybrid import hybrid_score
from .hybrid import hybrid_weights
from .intervals import bootstrap_interval
from .intervals import effective_size
from .intervals import macro_effective_size
from .intervals import macro_interval
from .intervals import pass_at_k_interval
from .intervals import pass_hat_k_interval
from .intervals import score_interval
from .intervals import stratified_accuracy
from .intervals import stratified_effective_size
from .intervals import stratified_interval
from .intervals import tally_interval
from .paired import holm
from .paired import mcnemar
from .paired import paired_interval
from .paired import sign_flip
from .paired import stratified_change
from .positions import CopyResult
from .positions import PositionResult
from .power import detectable_drop
from .power import detectable_paired_drop
from .power import smallest_significant
from .proportions import accuracy
from .proportions import exact_interval
from .proportions import macro_accuracy
from .proportions import macro_standard_error
from .proportions import normalized_gain
from .proportions import standard_error
from .proportions import wilson_interval
from .result import ALL_TIED_LIMIT
from .result import ALL_TIED_SHOWN
from .result import Counts
from .result import ItemOutcomes
from .result import Result
from .result import aggregate
from .samples import SampleSpread
from .samples import Tally
from .samples import VarianceComponents
from .samples import clustered_standard_error
from .samples import mean_pass_at_k
from .samples import mean_pass_hat_k
from .samples import pass_at_k
from .samples import pass_hat_k
from .samples import sample_spread
from .samples import variance_components
from .summary import summarize

__all__ = [
    "ALL_TIED_LIMIT",
    "ALL_TIED_SHOWN",
    "Answer",
    "ArmResult",
    "Audit",
    "Calibration",
    "Comparison",
    "CopyResult",
    "Counts",
    "Difference",
    "FamilyResult",
    "FirstOutcomes",
    "Hybrid",
    "ItemOutcomes",
    "PositionResult",
    "Result",
    "SampleSpread",
    "Tally",
    "VarianceComponents",
    "accuracy",
    "aggregate",
    "answered",
    "audit_table",
    "bootstrap_interval",
    "calibration",
    "choice_confidence",
    "clustered_standard_error",
    "cochran_q",
    "compare_items",
    "consistency_rate",
    "detectable_drop",
    "detectable_paired_drop",
    "diagnose",
    "effective_size",
    "exact_interval",
    "holm",
    "hybrid_name",
    "hybrid_of",
    "hybrid_score",
    "hybrid_weights",
    "macro_accuracy",
    "macro_effective_size",
    "macro_interval",
    "macro_standard_error",
    "majority",
    "mcnemar",
    "mean_pass_at_k",
    "mean_pass_hat_k",
    "normalized_gain",
    "paired_interval",
    "pass_at_k",
    "pass_at_k_interval",
    "pass_hat_k",
    "pass_hat_k_interval",
    "recall_std",
    "sample_spread",
    "score_interval",
    "sign_flip",
    "smallest_significant",
    "standard_error",
    "stratified_accuracy",
    "stratified_change",
    "stratified_effective_size",
    "stratified_interval",
    "summarize",
    "tally_interval",
    "variance_components",
    "variance_ratio",
    "wilson_interval",
]
