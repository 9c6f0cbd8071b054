"""NonsenseQA: 1,000 generated questions of random words, whose answers cannot be known.

An accuracy above a quarter can only come from positions, labels or the shots, hence a two-sided
gate: ``accuracy = { chance = true, confidence = 0.99 }``. The recipe is that of
``pytest_llmeval.sources.nonsense``; the questions of Nowak et al. 2026 were not published.
"""

from __future__ import annotations

from typing import Any

from pytest_llmeval.catalog.matched_protocols import matched_protocols
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU
from pytest_llmeval.sources.nonsense import RECIPE
from pytest_llmeval.sources.nonsense import nonsense

PROTOCOLS = (Protocol("letter", LMEVAL_MMLU, scorer="letter", shots=5), *matched_protocols())


def nonsenseqa() -> Benchmark:
    """Return the benchmark; its items are generated from seed 0, on first use."""
    return Benchmark("nonsenseqa", source=load, protocols=PROTOCOLS, version=RECIPE)


def load(_data_dir: Any = None) -> Dataset:
    """Return the generated items, which are the same on every machine."""
    return nonsense()
