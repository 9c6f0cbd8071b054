"""A Docker sandbox for the tests, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_llmeval.sandbox import Sandbox
from support.forwarded_engine import ForwardedEngine
from support.opened_sandbox import opened


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A Docker sandbox that is kept for the whole session."""
    with opened("docker", timeout_scale=1.0) as sandbox:
        yield sandbox


@pytest.fixture
def humaneval_file(data: Path) -> Path:
    return data / "humaneval" / "HumanEval.jsonl.gz"


@pytest.fixture
def mbpp_file(data: Path) -> Path:
    return data / "mbpp" / "mbpp.jsonl"


@pytest.fixture
def forwarded_engine(tmp_path: Path) -> Iterator[ForwardedEngine]:
    engine = ForwardedEngine(tmp_path / "engine.sock")
    yield engine
    engine.close()
