"""Questions without meaning: whoever is better than chance has found another way to answer."""

import pytest

from pytest_llmeval.catalog import nonsenseqa


@pytest.mark.llmeval(nonsenseqa())
def test_nonsenseqa(answer):
    assert answer.correct
