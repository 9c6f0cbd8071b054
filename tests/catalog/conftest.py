"""Fixtures shared by the catalog's tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_DATA = Path(os.environ.get("LLMEVAL_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture
def data() -> Path:
    """The folder of public data files, which is not part of the repository."""
    if not (_DATA / "mmlu").is_dir():
        pytest.skip(f"no public data: {_DATA}/mmlu does not exist (set LLMEVAL_DATA)")
    return _DATA


@pytest.fixture(autouse=True)
def no_data_folder_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)
