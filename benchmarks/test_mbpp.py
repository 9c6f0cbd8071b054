"""MBPP with the three shots of its authors; ``mbpp_sanitized`` is the part checked by hand."""

import pytest

from pytest_llmeval.catalog import mbpp


@pytest.mark.llmeval(mbpp())
def test_mbpp(answer):
    assert answer.correct
