"""A Docker sandbox for the tests, or the reason why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox import open_sandbox

_DATA = Path(os.environ.get("LLMEVAL_DATA") or Path(__file__).parents[3] / "shared" / "data")


def opened(kind: str, **limits: Any) -> Sandbox:
    """A sandbox of `kind`; a skip without one, a failure where one is required."""
    try:
        return open_sandbox(kind, **limits)
    except ConfigError as error:
        if os.environ.get("LLMEVAL_REQUIRE_SANDBOX"):
            pytest.fail(f"LLMEVAL_REQUIRE_SANDBOX is set, and {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A Docker sandbox that is kept for the whole session."""
    with opened("docker", timeout_scale=1.0) as sandbox:
        yield sandbox


@pytest.fixture
def humaneval_file() -> Path:
    path = _DATA / "humaneval" / "HumanEval.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no public data: {path.parent} does not exist (set LLMEVAL_DATA)")
    return path


@pytest.fixture
def mbpp_file() -> Path:
    path = _DATA / "mbpp" / "mbpp.jsonl"
    if not path.is_file():
        pytest.skip(f"no public data: {path.parent} does not exist (set LLMEVAL_DATA)")
    return path
