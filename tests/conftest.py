"""What all tests share. Hypothesis profiles: `pytest tests/metrics --hypothesis-profile=thorough` for the long one."""

from __future__ import annotations

import pytest
from hypothesis import settings

# No deadlines: the first call of a function may import scipy.
settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile("quick")


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs inside a test must not tell the job of the tests themselves."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
