"""Templates of published prompt formats, with one module per family of formats."""

from __future__ import annotations

from pytest_llmeval.prompts.chain_of_thought import GSM8K_COT
from pytest_llmeval.prompts.chain_of_thought import GSM8K_ZERO_SHOT
from pytest_llmeval.prompts.chain_of_thought import LMEVAL_GSM8K
from pytest_llmeval.prompts.chain_of_thought import LMEVAL_MMLU_PRO
from pytest_llmeval.prompts.chain_of_thought import MGSM_DIRECT
from pytest_llmeval.prompts.chain_of_thought import MGSM_NATIVE_COT
from pytest_llmeval.prompts.chain_of_thought import MMLU_PRO
from pytest_llmeval.prompts.code import HUMANEVAL
from pytest_llmeval.prompts.code import HUMANEVAL_CHAT
from pytest_llmeval.prompts.code import HUMANEVAL_INSTRUCT
from pytest_llmeval.prompts.code import MBPP
from pytest_llmeval.prompts.code import MBPP_CHAT
from pytest_llmeval.prompts.code import MBPP_INSTRUCT
from pytest_llmeval.prompts.continuations import LMEVAL_HELLASWAG
from pytest_llmeval.prompts.continuations import LMEVAL_TRUTHFULQA
from pytest_llmeval.prompts.continuations import LMEVAL_WINOGRANDE
from pytest_llmeval.prompts.multiple_choice import CLOZE
from pytest_llmeval.prompts.multiple_choice import HENDRYCKS
from pytest_llmeval.prompts.multiple_choice import INCLUDE
from pytest_llmeval.prompts.multiple_choice import LMEVAL_CMMLU
from pytest_llmeval.prompts.multiple_choice import LMEVAL_COMMONSENSEQA
from pytest_llmeval.prompts.multiple_choice import LMEVAL_INCLUDE
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU

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
