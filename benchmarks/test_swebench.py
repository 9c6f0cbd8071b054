"""SWE-bench Verified. ``--llm-model replay:preds.jsonl`` evaluates the patches of an agent.

``--llm-protocol official`` for numbers that compare with the leaderboard.
"""

import pytest

from pytest_llmeval.catalog import swebench_verified


@pytest.mark.llmeval(swebench_verified())
def test_swebench_verified(answer):
    assert answer.correct
