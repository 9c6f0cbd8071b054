"""The benchmarks that come with the plugin. A function each; nothing is loaded until needed."""

from __future__ import annotations

from pytest_llmeval.catalog.mmlu import mmlu
from pytest_llmeval.catalog.starter import starter

# Names that thresholds.toml may mention although the run did not ask for them.
NAMES = ("mmlu", "starter")

__all__ = ["NAMES", "mmlu", "starter"]
