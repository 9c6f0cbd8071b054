"""A Docker sandbox for the tests, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_llmeval.sandbox import Sandbox
from support.opened_sandbox import opened
from support.paths import DATA


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A Docker sandbox that is kept for the whole session."""
    with opened("docker", timeout_scale=1.0) as sandbox:
        yield sandbox


@pytest.fixture
def humaneval_file() -> Path:
    path = DATA / "humaneval" / "HumanEval.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no public data: {path.parent} does not exist (set LLMEVAL_DATA)")
    return path


@pytest.fixture
def mbpp_file() -> Path:
    path = DATA / "mbpp" / "mbpp.jsonl"
    if not path.is_file():
        pytest.skip(f"no public data: {path.parent} does not exist (set LLMEVAL_DATA)")
    return path
