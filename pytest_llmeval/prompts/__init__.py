"""Item → prompt text: one module per family of published formats, each holding Templates."""

from __future__ import annotations

from pytest_llmeval.prompts.cloze import CLOZE
from pytest_llmeval.prompts.hendrycks import HENDRYCKS
from pytest_llmeval.prompts.lmeval import LMEVAL_MMLU

__all__ = ["CLOZE", "HENDRYCKS", "LMEVAL_MMLU"]
