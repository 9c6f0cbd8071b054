"""MGSM, 11 languages, reasoning in the language of the question."""

import pytest

from pytest_llmeval.catalog import mgsm


@pytest.mark.llmeval(mgsm())
def test_mgsm(answer):
    assert answer.correct
