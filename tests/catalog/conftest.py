"""Fixtures shared by the catalog's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.paths import DATA


@pytest.fixture
def data() -> Path:
    """The folder of public data files, which is not part of the repository."""
    if not (DATA / "mmlu").is_dir():
        pytest.skip(f"no public data: {DATA}/mmlu does not exist (set LLMEVAL_DATA)")
    return DATA


@pytest.fixture(autouse=True)
def no_data_folder_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLMEVAL_DATA", raising=False)
