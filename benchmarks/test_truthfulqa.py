"""TruthfulQA, single-true multiple choice (MC1)."""

import pytest

from pytest_llmeval.catalog import truthfulqa


@pytest.mark.llmeval(truthfulqa())
def test_truthfulqa(answer):
    assert answer.correct
