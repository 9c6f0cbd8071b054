"""NonsenseQA: 1,000 generated questions of random words, of which nobody can know the answer.

What a model gets right here beyond a quarter it has from positions, labels or the shots, hence a
gate with two sides: ``accuracy = { chance = true, confidence = 0.99 }``. The recipe is that of
``pytest_llmeval.sources.nonsense``; the questions of Nowak et al. 2026 were not published.
"""

from __future__ import annotations

from typing import Any

from pytest_llmeval.catalog.matched_protocols import matching
from pytest_llmeval.core import Benchmark
from pytest_llmeval.core import Dataset
from pytest_llmeval.core import Protocol
from pytest_llmeval.prompts.multiple_choice import LMEVAL_MMLU
from pytest_llmeval.sources.nonsense import RECIPE
from pytest_llmeval.sources.nonsense import nonsense

PROTOCOLS = (Protocol("letter", LMEVAL_MMLU, scorer="letter", shots=5), *matching())


def nonsenseqa() -> Benchmark:
    """The benchmark; its items are generated when they are first needed, from seed 0."""
    return Benchmark("nonsenseqa", source=load, protocols=PROTOCOLS, version=RECIPE)


def load(_data_dir: Any = None) -> Dataset:
    """The generated items, the same everywhere."""
    return nonsense()
