"""The packaged starter benchmark, under two scorers: two results, two sets of gates."""

import pytest

from pytest_llmeval.catalog import starter


@pytest.mark.llmeval(starter(), protocol="letter")
def test_starter_letter(answer):
    assert answer.correct


@pytest.mark.llmeval(starter(), protocol="cloze")
def test_starter_cloze(answer):
    assert answer.correct
