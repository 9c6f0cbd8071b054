"""The benchmarks that come with the plugin. A function each; nothing is loaded until needed."""

from __future__ import annotations

from pytest_llmeval.catalog.gsm8k import gsm8k
from pytest_llmeval.catalog.humaneval import humaneval
from pytest_llmeval.catalog.mbpp import mbpp
from pytest_llmeval.catalog.mbpp import mbpp_sanitized
from pytest_llmeval.catalog.mgsm import mgsm
from pytest_llmeval.catalog.mmlu import mmlu
from pytest_llmeval.catalog.mmlu_pro import mmlu_pro
from pytest_llmeval.catalog.nonsenseqa import nonsenseqa
from pytest_llmeval.catalog.starter import starter

# Names that thresholds.toml may mention although the run did not ask for them.
NAMES = (
    "gsm8k",
    "humaneval",
    "mbpp",
    "mbpp_sanitized",
    "mgsm",
    "mmlu",
    "mmlu_pro",
    "nonsenseqa",
    "starter",
)

__all__ = [
    "NAMES",
    "gsm8k",
    "humaneval",
    "mbpp",
    "mbpp_sanitized",
    "mgsm",
    "mmlu",
    "mmlu_pro",
    "nonsenseqa",
    "starter",
]
