"""MMLU, 57 subjects. ``--llm-protocol hendrycks`` asks it the way of the original script."""

import pytest

from pytest_llmeval.catalog import mmlu


@pytest.mark.llmeval(mmlu())
def test_mmlu(answer):
    assert answer.correct
