"""Metrics, as pure functions without I/O.

Proportions are floats in [0, 1]. Undefined values are ``None`` (never NaN, which is not JSON).
Invalid arguments (a negative count, more right answers than items, a NaN) raise ``ValueError``.
"""

from __future__ import annotations

from pytest_llmeval.metrics.bias.audit import ArmResult
from pytest_llmeval.metrics.bias.audit import Audit
from pytest_llmeval.metrics.bias.audit import FamilyResult
from pytest_llmeval.metrics.bias.audit import audit_table
from pytest_llmeval.metrics.bias.audit import diagnose
from pytest_llmeval.metrics.bias.positions import ArmAnswer
from pytest_llmeval.metrics.bias.positions import CopyResult
from pytest_llmeval.metrics.bias.positions import PositionResult
from pytest_llmeval.metrics.bias.positions import arm_answer
from pytest_llmeval.metrics.bias.positions import cochran_q
from pytest_llmeval.metrics.bias.positions import consistency_rate
from pytest_llmeval.metrics.bias.positions import majority_choice
from pytest_llmeval.metrics.bias.positions import recall_std
from pytest_llmeval.metrics.bias.positions import variance_ratio
from pytest_llmeval.metrics.calibration import Calibration
from pytest_llmeval.metrics.calibration import calibration
from pytest_llmeval.metrics.calibration import choice_confidence
from pytest_llmeval.metrics.clean import CleanResult
from pytest_llmeval.metrics.clean import clean_gain
from pytest_llmeval.metrics.clean import divide
from pytest_llmeval.metrics.comparison import Comparison
from pytest_llmeval.metrics.comparison import Difference
from pytest_llmeval.metrics.comparison import compare_items
from pytest_llmeval.metrics.intervals import bootstrap_interval
from pytest_llmeval.metrics.intervals import effective_size
from pytest_llmeval.metrics.intervals import macro_effective_size
from pytest_llmeval.metrics.intervals import macro_interval
from pytest_llmeval.metrics.intervals import pass_at_k_interval
from pytest_llmeval.metrics.intervals import pass_hat_k_interval
from pytest_llmeval.metrics.intervals import score_interval
from pytest_llmeval.metrics.intervals import stratified_accuracy
from pytest_llmeval.metrics.intervals import stratified_effective_size
from pytest_llmeval.metrics.intervals import stratified_interval
from pytest_llmeval.metrics.intervals import tally_interval
from pytest_llmeval.metrics.paired_tests import detectable_drop
from pytest_llmeval.metrics.paired_tests import detectable_paired_drop
from pytest_llmeval.metrics.paired_tests import holm
from pytest_llmeval.metrics.paired_tests import mcnemar
from pytest_llmeval.metrics.paired_tests import paired_interval
from pytest_llmeval.metrics.paired_tests import sign_flip
from pytest_llmeval.metrics.paired_tests import smallest_significant
from pytest_llmeval.metrics.paired_tests import stratified_change
from pytest_llmeval.metrics.proportions import accuracy
from pytest_llmeval.metrics.proportions import exact_interval
from pytest_llmeval.metrics.proportions import macro_accuracy
from pytest_llmeval.metrics.proportions import macro_standard_error
from pytest_llmeval.metrics.proportions import normalized_gain
from pytest_llmeval.metrics.proportions import standard_error
from pytest_llmeval.metrics.proportions import wilson_interval
from pytest_llmeval.metrics.result import ALL_TIED_LIMIT
from pytest_llmeval.metrics.result import ALL_TIED_SHOWN
from pytest_llmeval.metrics.result import Counts
from pytest_llmeval.metrics.result import ItemOutcomes
from pytest_llmeval.metrics.result import Result
from pytest_llmeval.metrics.result import aggregate
from pytest_llmeval.metrics.samples import SampleSpread
from pytest_llmeval.metrics.samples import Tally
from pytest_llmeval.metrics.samples import VarianceComponents
from pytest_llmeval.metrics.samples import clustered_standard_error
from pytest_llmeval.metrics.samples import mean_pass_at_k
from pytest_llmeval.metrics.samples import mean_pass_hat_k
from pytest_llmeval.metrics.samples import pass_at_k
from pytest_llmeval.metrics.samples import pass_hat_k
from pytest_llmeval.metrics.samples import sample_spread
from pytest_llmeval.metrics.samples import variance_components
from pytest_llmeval.metrics.summary import summarize
from pytest_llmeval.metrics.weighted import FirstOutcomes
from pytest_llmeval.metrics.weighted import Hybrid
from pytest_llmeval.metrics.weighted import hybrid_name
from pytest_llmeval.metrics.weighted import hybrid_or_reason
from pytest_llmeval.metrics.weighted import hybrid_score
from pytest_llmeval.metrics.weighted import hybrid_weights

__all__ = [
    "ALL_TIED_LIMIT",
    "ALL_TIED_SHOWN",
    "ArmAnswer",
    "ArmResult",
    "Audit",
    "Calibration",
    "CleanResult",
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
    "arm_answer",
    "audit_table",
    "bootstrap_interval",
    "calibration",
    "choice_confidence",
    "clean_gain",
    "clustered_standard_error",
    "cochran_q",
    "compare_items",
    "consistency_rate",
    "detectable_drop",
    "detectable_paired_drop",
    "diagnose",
    "divide",
    "effective_size",
    "exact_interval",
    "holm",
    "hybrid_name",
    "hybrid_or_reason",
    "hybrid_score",
    "hybrid_weights",
    "macro_accuracy",
    "macro_effective_size",
    "macro_interval",
    "macro_standard_error",
    "majority_choice",
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
