"""Fixtures shared by the scorers' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.paths import DATA


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public data files and recorded outputs, no part of the repository."""
    if not (DATA / "outputs").is_dir():
        pytest.skip(f"no recorded outputs: {DATA}/outputs does not exist (set LLMEVAL_DATA)")
    return DATA
