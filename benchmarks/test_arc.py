"""ARC, easy and challenging: option texts compared. ``--llm-protocol letter`` asks by letter."""

import pytest

from pytest_llmeval.catalog import arc_challenge
from pytest_llmeval.catalog import arc_easy


@pytest.mark.llmeval(arc_easy())
def test_arc_easy(answer):
    assert answer.correct


@pytest.mark.llmeval(arc_challenge())
def test_arc_challenge(answer):
    assert answer.correct
