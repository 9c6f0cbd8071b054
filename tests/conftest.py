"""Fixtures of all tests. Hypothesis profiles: `pytest tests/metrics --hypothesis-profile=thorough` for the long one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from support.paths import DATA

# No deadlines: the first call of a function may import scipy.
settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile("quick")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public benchmark files and recorded outputs, which is not in the repository."""
    if not (DATA / "mmlu").is_dir():
        pytest.skip(f"no public data: {DATA}/mmlu does not exist (set LLMEVAL_DATA)")
    return DATA


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what runs inside a test from writing to the CI job of the tests themselves."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
