"""HumanEval, gone on with as code. ``--llm-protocol chat`` asks a chat model for the function.

``--llm-protocol official_sampled --llm-samples 20`` for pass@k.
"""

import pytest

from pytest_llmeval.catalog import humaneval


@pytest.mark.llmeval(humaneval())
def test_humaneval(answer):
    assert answer.correct
