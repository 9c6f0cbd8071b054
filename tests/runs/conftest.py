"""A fixture that makes stored runs by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pytest_llmeval.runs import Run
from support import stored_runs


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """``make_run("a", {"art-0": "c"})``: the run ``a`` of one benchmark, not on disk."""
    return partial(stored_runs.make_run, tmp_path)
