"""HellaSwag: the likeliest ending per character. ``--llm-protocol lmeval`` has ``acc`` beside it."""

import pytest

from pytest_llmeval.catalog import hellaswag


@pytest.mark.llmeval(hellaswag())
def test_hellaswag(answer):
    assert answer.correct
