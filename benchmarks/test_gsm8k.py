"""GSM8K with the eight examples of Wei et al. ``--llm-protocol lmeval`` asks as lm-eval does."""

import pytest

from pytest_llmeval.catalog import gsm8k


@pytest.mark.llmeval(gsm8k())
def test_gsm8k(answer):
    assert answer.correct
