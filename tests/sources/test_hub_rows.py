"""The hub's errors in one line (what it gives is tested with the benchmark that uses it)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.core import DataError
from pytest_llmeval.sources.hub import load_rows


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[hub\]'"):
        load_rows("some/set", None, "test", "main")


def test_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="'llmeval/no-such-set' at revision abc") as caught:
        load_rows("llmeval/no-such-set", "all", "test", "abc")
    assert "\n" not in str(caught.value)


def test_a_folder_without_data(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    with pytest.raises(DataError, match="cannot be loaded") as caught:
        load_rows(str(tmp_path), "all", "test", "abc")
    assert "\n" not in str(caught.value)
