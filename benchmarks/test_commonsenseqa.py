"""CommonsenseQA, by letter. ``--llm-protocol cloze`` compares the texts of the options."""

import pytest

from pytest_llmeval.catalog import commonsenseqa


@pytest.mark.llmeval(commonsenseqa())
def test_commonsenseqa(answer):
    assert answer.correct
