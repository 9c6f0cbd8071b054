"""CMMLU, 67 subjects in Chinese, by letter."""

import pytest

from pytest_llmeval.catalog import cmmlu


@pytest.mark.llmeval(cmmlu())
def test_cmmlu(answer):
    assert answer.correct
