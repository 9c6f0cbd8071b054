"""Fixtures shared by the scorers' tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_DATA = Path(os.environ.get("LLMEVAL_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public data files and recorded outputs, no part of the repository."""
    if not (_DATA / "outputs").is_dir():
        pytest.skip(f"no recorded outputs: {_DATA}/outputs does not exist (set LLMEVAL_DATA)")
    return _DATA
