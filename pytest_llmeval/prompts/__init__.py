"""Item → prompt text: one module per family of published formats, each holding Templates."""

from __future__ import annotations

from pytest_llmeval.prompts.cloze import CLOZE
from pytest_llmeval.prompts.cmmlu import LMEVAL_CMMLU
from pytest_llmeval.prompts.commonsenseqa import LMEVAL_COMMONSENSEQA
from pytest_llmeval.prompts.gsm8k import GSM8K_COT
from pytest_llmeval.prompts.gsm8k import GSM8K_ZERO_SHOT
from pytest_llmeval.prompts.gsm8k import LMEVAL_GSM8K
from pytest_llmeval.prompts.hellaswag import LMEVAL_HELLASWAG
from pytest_llmeval.prompts.hendrycks import HENDRYCKS
from pytest_llmeval.prompts.humaneval import HUMANEVAL
from pytest_llmeval.prompts.humaneval import HUMANEVAL_CHAT
from pytest_llmeval.prompts.humaneval import HUMANEVAL_INSTRUCT
from pytest_llmeval.prompts.include import INCLUDE
from pytest_llmeval.prompts.include import LMEVAL_INCLUDE
from pytest_llmeval.prompts.lmeval import LMEVAL_MMLU
from pytest_llmeval.prompts.mbpp import MBPP
from pytest_llmeval.prompts.mbpp import MBPP_CHAT
from pytest_llmeval.prompts.mbpp import MBPP_INSTRUCT
from pytest_llmeval.prompts.mgsm import MGSM_DIRECT
from pytest_llmeval.prompts.mgsm import MGSM_NATIVE_COT
from pytest_llmeval.prompts.mmlu_pro import LMEVAL_MMLU_PRO
from pytest_llmeval.prompts.mmlu_pro import MMLU_PRO
from pytest_llmeval.prompts.truthfulqa import LMEVAL_TRUTHFULQA
from pytest_llmeval.prompts.winogrande import LMEVAL_WINOGRANDE

__all__ = [
    "CLOZE",
    "GSM8K_COT",
    "GSM8K_ZERO_SHOT",
    "HENDRYCKS",
    "HUMANEVAL",
    "HUMANEVAL_CHAT",
    "HUMANEVAL_INSTRUCT",
    "INCLUDE",
    "LMEVAL_CMMLU",
    "LMEVAL_COMMONSENSEQA",
    "LMEVAL_GSM8K",
    "LMEVAL_HELLASWAG",
    "LMEVAL_INCLUDE",
    "LMEVAL_MMLU",
    "LMEVAL_MMLU_PRO",
    "LMEVAL_TRUTHFULQA",
    "LMEVAL_WINOGRANDE",
    "MBPP",
    "MBPP_CHAT",
    "MBPP_INSTRUCT",
    "MGSM_DIRECT",
    "MGSM_NATIVE_COT",
    "MMLU_PRO",
]
