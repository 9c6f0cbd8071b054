"""MMLU-Pro, 14 categories, with reasoning. ``--llm-protocol letter`` compares the letters only."""

import pytest

from pytest_llmeval.catalog import mmlu_pro


@pytest.mark.llmeval(mmlu_pro())
def test_mmlu_pro(answer):
    assert answer.correct
