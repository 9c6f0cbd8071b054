"""The benchmarks of the plugin, one function each; data is loaded on first use.

``lm_eval_task`` returns tasks of lm-evaluation-harness.
"""

from __future__ import annotations

from pytest_llmeval.catalog.arc import arc_challenge
from pytest_llmeval.catalog.arc import arc_easy
from pytest_llmeval.catalog.cmmlu import cmmlu
from pytest_llmeval.catalog.commonsenseqa import commonsenseqa
from pytest_llmeval.catalog.gsm8k import gsm8k
from pytest_llmeval.catalog.hellaswag import hellaswag
from pytest_llmeval.catalog.humaneval import humaneval
from pytest_llmeval.catalog.include import include
from pytest_llmeval.catalog.lm_eval import lm_eval_task
from pytest_llmeval.catalog.lm_eval import lm_eval_task_hashes
from pytest_llmeval.catalog.mbpp import mbpp
from pytest_llmeval.catalog.mbpp import mbpp_sanitized
from pytest_llmeval.catalog.mgsm import mgsm
from pytest_llmeval.catalog.mmlu import mmlu
from pytest_llmeval.catalog.mmlu_pro import mmlu_pro
from pytest_llmeval.catalog.nonsenseqa import nonsenseqa
from pytest_llmeval.catalog.starter import starter
from pytest_llmeval.catalog.swebench import swebench_lite
from pytest_llmeval.catalog.swebench import swebench_verified
from pytest_llmeval.catalog.truthfulqa import truthfulqa
from pytest_llmeval.catalog.winogrande import winogrande

__all__ = [
    "NAMES",
    "arc_challenge",
    "arc_easy",
    "cmmlu",
    "commonsenseqa",
    "gsm8k",
    "hellaswag",
    "humaneval",
    "include",
    "lm_eval_task",
    "lm_eval_task_hashes",
    "mbpp",
    "mbpp_sanitized",
    "mgsm",
    "mmlu",
    "mmlu_pro",
    "nonsenseqa",
    "starter",
    "swebench_lite",
    "swebench_verified",
    "truthfulqa",
    "winogrande",
]

_FUNCTIONS = ("lm_eval_task", "lm_eval_task_hashes")
"""Public functions that are no benchmarks."""

NAMES = tuple(name for name in __all__ if name not in ("NAMES", *_FUNCTIONS))
"""Names of the plugin's own benchmarks; ``thresholds.toml`` may name one that a run does not include."""
