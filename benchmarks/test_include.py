"""INCLUDE, 44 languages, by letter."""

import pytest

from pytest_llmeval.catalog import include


@pytest.mark.llmeval(include())
def test_include(answer):
    assert answer.correct
