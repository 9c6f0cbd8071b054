"""Sources of items: readers of local files, the hub and packages that return a ``Dataset``."""

from __future__ import annotations

from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.jsonl_benchmark import jsonl
from pytest_llmeval.sources.locate import benchmark_folder

__all__ = ["benchmark_folder", "jsonl", "safe_id"]
