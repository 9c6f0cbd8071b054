"""Where items come from: local files, the hub, packages. Rows in, ``Dataset`` out."""

from __future__ import annotations

from pytest_llmeval.sources.item_ids import safe_id
from pytest_llmeval.sources.jsonl_benchmark import jsonl
from pytest_llmeval.sources.locate import find

__all__ = ["find", "jsonl", "safe_id"]
