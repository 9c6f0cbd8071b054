"""A sandbox for a test, or the reason why there is none."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pytest_llmeval.core import ConfigError
from pytest_llmeval.sandbox import Sandbox
from pytest_llmeval.sandbox import open_sandbox


def opened(kind: str, **limits: Any) -> Sandbox:
    """A sandbox of `kind`; a skip without one, a failure where one is required."""
    try:
        return open_sandbox(kind, **limits)
    except ConfigError as error:
        if os.environ.get("LLMEVAL_REQUIRE_SANDBOX"):
            pytest.fail(f"LLMEVAL_REQUIRE_SANDBOX is set, and {error}", pytrace=False)
        pytest.skip(str(error))
