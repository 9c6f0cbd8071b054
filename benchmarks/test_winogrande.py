"""WinoGrande by partial evaluation: which name makes the rest of the sentence likelier."""

import pytest

from pytest_llmeval.catalog import winogrande


@pytest.mark.llmeval(winogrande())
def test_winogrande(answer):
    assert answer.correct
